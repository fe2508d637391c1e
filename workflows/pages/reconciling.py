"""Reconcile: a person looks at what is known of an interrupted write and says what became of it (promise ADM.6)."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url

from workflows.errors import Refusal
from workflows.jsonvalue import read_json
from workflows.operations.access import may
from workflows.operations.reconciling import Told, reconcile
from workflows.operations.tellable import Tellable, tellable
from workflows.pages.guard import FORM, actor, page
from workflows.pages.run_context import RunView
from workflows.queries.late_results import LateResult, late_result
from workflows.queries.visit_page import visit_page

DECISIONS = ("happened", "did_not", "stop")
_TEXTS = ("decision", "result", "outcome", "output", "exit_code", "error_code", "message", "reason")
#: Refusals that are about what was typed or about its moment: the form comes back with it.
_ABOUT_THE_FORM = frozenset({"input.invalid", "attempt.invalid_result", "attempt.not_interrupted", "run.terminal"})
_DONE = {
    "happened": "The result is recorded, and the run goes on from it.",
    "did_not": "One more try is authorized, and the run goes on.",
    "stop": "The step is stopped.",
}


@page(methods=FORM)
def reconciling(request: HttpRequest, number: int, visit: int) -> HttpResponse:
    """What is known of the interrupted attempt, and three choices. GET changes nothing."""
    view = RunView(request, number)
    if request.method != "POST":
        return _shown(view, visit)
    typed = {name: request.POST.get(name, "").replace("\r\n", "\n") for name in _TEXTS}
    try:
        told = _told(typed, tellable(number, visit))
        reconcile(number, told, actor=actor(request), visit=visit)
    except Refusal as refusal:
        if refusal.code not in _ABOUT_THE_FORM:
            raise
        return _shown(view, visit, typed=typed, refusal=refusal)
    messages.success(request, _DONE[told.decision])
    return HttpResponseRedirect(resolve_url("pages:run", number))


def _told(typed: dict[str, str], possible: Tellable) -> Told:
    """What was typed, as the operation takes it. Raises ``input.invalid``."""
    decision = typed["decision"]
    reason = typed["reason"]
    match decision:
        case "did_not" | "stop":
            return Told(decision=decision, reason=reason)
        case "happened" if typed["result"] == "failed":
            return Told(decision="happened", reason=reason, error_code=typed["error_code"], message=typed["message"])
        case "happened":
            return Told(
                decision="happened",
                reason=reason,
                outcome=typed["outcome"] or None,
                output=_output(typed["output"], possible),
                exit_code=_exit_code(typed["exit_code"]),
            )
    raise Refusal("input.invalid", reason="Say what became of it: it happened, it did not, or stop.")


def _output(text: str, possible: Tellable) -> Any:
    if possible.output == "text":
        return text
    if possible.output == "lines":
        return text.rstrip("\n").split("\n") if text else []
    if possible.output == "none" or not text.strip():
        return None
    value, problems = read_json(text)
    if problems:
        raise Refusal("input.invalid", reason=f"The output is not JSON: {problems[0].message}")
    return value


def _exit_code(text: str) -> int | None:
    digits = text.strip()
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit() and int(digits) < 256):
        raise Refusal("input.invalid", reason=f'"{digits[:20]}" is no exit code; they are 0 to 255.')
    return int(digits)


def _shown(
    view: RunView, visit: int, *, typed: dict[str, str] | None = None, refusal: Refusal | None = None
) -> HttpResponse:
    run, request = view.run, view.request
    is_hidden = view.hides_values_of(visit)
    found = visit_page(run, visit, request.user, hidden=is_hidden)
    late = late_result(run.pk, visit)
    possible = _possible(run.pk, visit)
    context = {
        "run": run,
        "visit": found,
        "attempt": found.attempts[-1] if found.attempts else None,
        "possible": possible,
        "late": late,
        "is_hidden": is_hidden,
        "typed": typed if typed is not None else _proposed(None if is_hidden else late),
        "refusal": refusal,
        "may_reconcile": may(actor(request), "reconcile_run"),
    }
    status = refusal.http_status if refusal is not None else 200
    return render(request, "runs/reconcile.html", context, status=status)


def _possible(run: int, visit: int) -> Tellable | None:
    """None: there is nothing to decide, or not any more."""
    try:
        return tellable(run, visit)
    except Refusal as refusal:
        if refusal.code != "attempt.not_interrupted":
            raise
        return None


def _proposed(late: LateResult | None) -> dict[str, str]:
    """The form as it comes: what the lost worker reported after all is proposed. Nothing is chosen."""
    empty = dict.fromkeys(_TEXTS, "") | {"result": "ok"}
    if late is None or late.output.is_cut:
        return empty
    return empty | {"outcome": late.outcome, "output": late.output.text if late.output.text != "null" else ""}
