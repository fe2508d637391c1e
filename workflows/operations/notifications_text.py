"""What messages say: which run, what is the matter in words, what to do, and where. Never a value of the run: no
parameters, no outputs, no text of a question, no message of an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.clock import moment
from workflows.conf import conf
from workflows.engine.paths import visit_path
from workflows.ledger.notifying import Fact
from workflows.models import Interrupt, Run, Visit
from workflows.operations.notifications_audience import ASKING, question_of
from workflows.statuses import InterruptKind

#: How each kind is called where people choose.
WORDS: Mapping[str, str] = {
    "question_asked": "A run waits for an answer or an approval",
    "question_reminded": "Reminders of questions that are still open",
    "run_blocked": "A run is blocked and needs an operator",
    "run_failed": "A run failed",
}
MOST_TITLE = 120
_TO_DO = {
    "question_asked": "Open the question, read it there, and answer.",
    "question_reminded": "Open the question, read it there, and answer.",
    "run_blocked": "Look at why it is blocked, and say how it goes on.",
    "run_failed": "Look at what failed; the run can be opened again from there.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """``url`` leads to a page where something can be done after a login; following it changes nothing."""

    subject: str
    state: str
    to_do: str
    url: str
    lines: tuple[tuple[str, str], ...]


def message_of(fact: Fact, run: Run) -> Message:
    """The words about a fact."""
    question = question_of(fact)
    state = state_words(fact, question)
    title = one_line(run.title)
    lines = [("Workflow", f"{fact.workflow}{_titled(run)}"), ("Run", str(run.pk))]
    if title:
        lines.append(("Title", title))
    if step := _step(fact):
        lines.append(("Step", step))
    if fact.kind == "run_failed" and (code := _error_code(run)):
        lines.append(("Error", code))
    lines.append(("Since", moment_words(question.asked_at if question is not None else fact.at)))
    if question is not None and question.deadline_ms is not None:
        lines.append(("Until", moment_words(moment(question.deadline_ms))))
    subject = f"[Waypost] {fact.workflow} #{run.pk} {state}" + (f": {title}" if title else "")
    return Message(subject=subject, state=state, to_do=_TO_DO[fact.kind], url=page_of(fact), lines=tuple(lines))


def state_words(fact: Fact, question: Interrupt | None) -> str:
    """What is the matter with the run, as the rest of a sentence that begins with it."""
    if fact.kind in ASKING:
        still = "still " if fact.kind == "question_reminded" else ""
        is_approval = question is not None and question.kind == InterruptKind.APPROVAL
        return f"{still}waits for {'an approval' if is_approval else 'an answer'}"
    return "is blocked and waits for an operator" if fact.kind == "run_blocked" else "failed"


def email_text(message: Message, *, name: str) -> str:
    """The body of an e-mail, in plain text. ``name`` is the user name of whoever gets it."""
    width = max(len(label) for label, _ in message.lines) + 1
    facts = "\n".join(f"{label + ':':<{width}} {value}" for label, value in message.lines)
    return (
        f"A run {message.state}.\n\n{facts}\n\n{message.to_do}\n{message.url}\n\n"
        f"-- \nWaypost wrote this to {one_line(name)}. What you are told of is yours to choose:\n{preferences_page()}\n"
    )


def webhook_document(fact: Fact, run: Run, message: Message) -> dict[str, Any]:
    """The body of a webhook: ``type``, ``timestamp`` and ``data``, as Standard Webhooks has it."""
    question = question_of(fact)
    return {
        "type": fact.kind.replace("_", ".", 1),
        "timestamp": fact.at.isoformat().replace("+00:00", "Z"),
        "data": {
            "run": run.pk,
            "event": fact.event,
            "workflow": fact.workflow,
            "title": one_line(run.title),
            "status": str(run.status),
            "state": message.state,
            "to_do": message.to_do,
            "url": message.url,
            "visit": fact.visit,
            "question": str(question.kind) if question is not None else None,
        },
    }


def page_of(fact: Fact) -> str:
    """The page of a fact."""
    path = f"/runs/{fact.run}/"
    if fact.kind in ASKING:
        path += f"questions/{fact.visit}/"
    return conf().base_url + path


def preferences_page() -> str:
    return f"{conf().base_url}/account/notifications/"


def one_line(text: str) -> str:
    """Text of a run as a part of a line: cut, and without what could begin a line, a header or another direction."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    plain = " ".join(plain.split())
    return plain if len(plain) <= MOST_TITLE else plain[: MOST_TITLE - 1] + "…"


def moment_words(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")


def _titled(run: Run) -> str:
    title = one_line(run.workflow.title)
    return f" ({title})" if title and title != run.workflow.name else ""


def _step(fact: Fact) -> str:
    visit = Visit.objects.filter(run_id=fact.run, number=fact.visit).values_list("scope", "step", "round").first()
    return visit_path(visit[0], visit[1], visit[2] or 1) if visit is not None else ""


def _error_code(run: Run) -> str:
    return str(json.loads(run.error).get("code", "")) if run.error else ""
