"""Warnings: what a file may say and probably should not (W102 to W105)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workflows.definitions.kinds import default_access
from workflows.definitions.validation.expressions import cached_analysis
from workflows.definitions.validation.known import Known, part
from workflows.definitions.validation.names import Names
from workflows.definitions.validation.places import Place, texts
from workflows.definitions.validation.report import Report
from workflows.definitions.validation.tree import StepNode, Tree

_INSTRUCTIONS = frozenset({"prompt", "system"})


def check_warnings(
    document: Mapping[str, Any], tree: Tree, places: Iterable[Place], names: Names, known: Known, report: Report
) -> None:
    """Report W102 to W105. ``names`` must have seen every expression."""
    for place in places:
        if place.key in _INSTRUCTIONS and place.step is not None and place.step.kind in ("llm", "agent"):
            _warn_of_answers(place, tree, report)
    for step in tree.steps:
        _warn_of_retried_write(step, known, report)
        if step.kind in ("approval", "question") and "timeout" not in step.raw and step.id is not None:
            message = f'"{step.id}" waits for people without `timeout`; it expires after 7 days.'
            report.add("W104", step.path, message)
    _warn_of_unused(document, names, report)


def _warn_of_answers(place: Place, tree: Tree, report: Report) -> None:
    for path, text in texts(place.value, place.path):
        for info in cached_analysis(text) if "${" in text else ():
            for reference in info.references:
                source = (
                    tree.by_id.get(reference.path[1])
                    if reference.path[0] == "steps" and len(reference.path) > 1
                    else None
                )
                if (
                    source is None
                    or source.kind not in ("llm", "agent")
                    or reference.path[2:3] not in ((), ("output",))
                ):
                    continue
                who = "language model" if source.kind == "llm" else "agent"
                report.add(
                    "W102",
                    path,
                    f'The answer of the {who} "{source.id}" is put into the instructions of '
                    f'"{place.step.id if place.step else ""}". Put it into `context:`.',
                )


def _warn_of_retried_write(step: StepNode, known: Known, report: Report) -> None:
    raw = step.raw
    if "retry" not in raw or raw.get("idempotent") is True or step.id is None:
        return
    if step.kind == "http":
        method = raw.get("method", "GET")
        writes = raw.get("access", default_access(raw)) == "write"
        what = f"http {method}"
    else:
        declared = _declaration(step, known)
        writes = raw.get("access", part(declared, "access") if declared is not None else None) == "write"
        writes = writes and not (declared is not None and part(declared, "idempotent"))
        what = step.kind or ""
    if writes:
        report.add(
            "W103",
            (*step.path, "retry"),
            f'"{step.id}" has `retry` and writes outside ({what}). '
            "Use WAYPOST_IDEMPOTENCY_KEY or make it safe to repeat.",
        )


def _declaration(step: StepNode, known: Known) -> Any:
    call = raw_call if isinstance(raw_call := step.raw.get("call"), str) else ""
    return (known.functions or {}).get(call) if step.kind == "task" else None


def _warn_of_unused(document: Mapping[str, Any], names: Names, report: Report) -> None:
    if any(problem.code.startswith("E4") or problem.code == "E214" for problem in report.problems):
        return  # one of the broken expressions may be where it is meant to be used
    blocks = document.get("blocks")
    holders: list[tuple[str, Any]] = [("", document)]
    holders += list(blocks.items()) if isinstance(blocks, Mapping) else []
    for block, holder in holders:
        params = holder.get("params") if isinstance(holder, Mapping) else None
        for name in params if isinstance(params, Mapping) else ():
            if (block, name) not in names.used_params:
                path = ("blocks", block, "params", name) if block else ("params", name)
                report.add("W105", path, f'Parameter "{name}" is declared but never used.')
