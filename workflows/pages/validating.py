"""Write a workflow in the browser: check it, publish it. What was typed comes back with every problem at its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.validation import Validation
from workflows.errors import Problem, Refusal
from workflows.models import Workflow
from workflows.operations.access import may
from workflows.operations.versions import PUBLISH, publish_text, version_definition
from workflows.operations.workflows import check_files
from workflows.pages.guard import FORM, actor, page, visible_workflow
from workflows.pages.workflows import LOOK
from workflows.queries.graph import Graph, graph_of

#: Lines of the text that are shown around a problem.
_AROUND = 1
_MOST_PROBLEMS = 100
_EXAMPLE = """\
format: 1
name: my_workflow
title: My workflow
params:
  who: { type: string, default: world }

steps:
  - id: greet
    kind: shell
    run: echo "Hello $WHO"
    env: { WHO: "${ params.who }" }

output: ${ steps.greet.output }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem with the lines around it: number, text, and whether it is the one."""

    problem: Problem
    lines: tuple[tuple[int, str, bool], ...] = ()


@page(methods=FORM, needs=LOOK)
def new(request: HttpRequest) -> HttpResponse:
    """Write a workflow that is not there yet."""
    if request.method == "POST":
        return _posted(request, None)
    return _shown(request, None, text=_EXAMPLE, began_from=0)


@page(methods=FORM, needs=LOOK)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a workflow; ``?version=N`` begins with that version, to bring it back or to go on from it."""
    row = visible_workflow(request, name)
    if request.method == "POST":
        return _posted(request, row)
    asked = request.GET.get("version", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else None
    current = version_definition(row)
    begun = version_definition(row, number) if number is not None else current
    return _shown(request, row, text=begun.source, began_from=current.version or 0, version=begun.version)


def _posted(request: HttpRequest, row: Workflow | None) -> HttpResponse:
    text = request.POST.get("source", "").replace("\r\n", "\n").replace("\r", "\n")
    # after a refusal the version is confirmed by a box; without it the old one stays
    began = request.POST.get("began_from") or request.POST.get("began_from_before", "")
    began_from = int(began) if began.isascii() and began.isdigit() and len(began) < 10 else 0
    if request.POST.get("action") == "publish":
        return _published(request, row, text, began_from)
    checked = check_files([text.encode()], viewer=actor(request).user)[0]
    return _shown(
        request,
        row,
        text=text,
        began_from=began_from,
        problems=[*checked.problems, *_misnamed(row, checked)],
        was_checked=True,
        checked=checked,
    )


def _picture(checked: Validation) -> Graph | None:
    """What a text that has no errors looks like."""
    if not checked.is_valid or checked.document is None:
        return None
    return graph_of(compile_plan(freeze(checked.document).document))


def _misnamed(row: Workflow | None, checked: Validation) -> list[Problem]:
    """A check tells already that a text of another name could not be published here."""
    found = checked.document.get("name") if checked.document else None
    if row is None or checked.source is None or not isinstance(found, str) or found == row.name:
        return []
    return [
        Problem(
            code="E103",
            path="name",
            message=f'The name is "{found}", but this page publishes "{row.name}".',
            hint="Keep the name, or publish the text as a new workflow.",
            line=checked.source.position("name")[0],
        )
    ]


def _published(request: HttpRequest, row: Workflow | None, text: str, began_from: int) -> HttpResponse:
    name = row.name if row is not None else None
    try:
        definition, stored = publish_text(text.encode(), actor=actor(request), name=name, began_from=began_from)
    except Refusal as refusal:
        return _shown(
            request,
            row,
            text=text,
            began_from=began_from,
            problems=refusal.problems,
            was_checked=bool(refusal.problems),
            refusal=None if refusal.problems else refusal,
            status=refusal.http_status,
        )
    told = "is published" if stored.created else "is the same plan; it stays current"
    messages.success(request, f"Version {stored.version} of {definition.plan.name} {told}.")
    for warning in definition.warnings[:5]:
        where = f" (line {warning.line})" if warning.line else ""
        messages.warning(request, f"{warning.code}{where}: {warning.message}")
    return redirect("pages:workflow", name=definition.plan.name)


def _shown(
    request: HttpRequest,
    row: Workflow | None,
    *,
    text: str,
    began_from: int,
    version: int | None = None,
    problems: Sequence[Problem] = (),
    was_checked: bool = False,
    refusal: Refusal | None = None,
    checked: Validation | None = None,
    status: int = 200,
) -> HttpResponse:
    lines = text.split("\n")
    findings = [_finding(problem, lines) for problem in problems]
    context = {
        "graph": _picture(checked) if checked is not None else None,
        "workflow": row,
        "text": text,
        "began_from": began_from,
        "version": version,
        "errors": [one for one in findings if one.problem.severity == "error"][:_MOST_PROBLEMS],
        "warnings": [one for one in findings if one.problem.severity == "warning"][:_MOST_PROBLEMS],
        "marked": ",".join(f"{one.problem.line}:{one.problem.severity}" for one in findings if one.problem.line),
        "was_checked": was_checked,
        "refusal": refusal,
        "may_publish": may(actor(request), PUBLISH),
        "rows": min(max(len(lines) + 2, 16), 40),
    }
    return render(request, "workflows/edit.html", context, status=status)


def _finding(problem: Problem, lines: list[str]) -> Finding:
    line = problem.line
    if line is None or not 1 <= line <= len(lines):
        return Finding(problem=problem)
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    return Finding(
        problem=problem,
        lines=tuple((number, lines[number - 1][:300], number == line) for number in range(first, last + 1)),
    )
