"""Answering: who may say what to an open question, checked before it is stored (promises INT)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from workflows.definitions.parameters import FIELD_WORDS, check_parameters
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import check_storable
from workflows.ledger.answering import Answered, Reply
from workflows.ledger.answering import answer as store_answer
from workflows.ledger.auditing import audit
from workflows.models import Interrupt, Run, Vote
from workflows.operations.access import may, require, words_of
from workflows.operations.people import Actor
from workflows.statuses import InterruptKind, InterruptStatus

MOST_COMMENT = 20_000
#: The permission that it needs.
ANSWER = "answer_interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants to say: ``decision`` approved, rejected, or the name of a choice; None where the question
    has neither. ``from_text`` names the fields that are text yet to be converted. ``attempt`` is the one whose question
    was looked at, None the latest: what is asked anew is not answered by what was said before (INT.7)."""

    decision: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    from_text: Collection[str] = ()
    comment: str = ""
    attempt: int | None = None


def answer(run_id: int, visit: int | None, wish: Wish, *, actor: Actor) -> Answered:
    """Answer a question of a run; ``visit`` None takes its only open one.

    1. The person may answer questions of this workflow; the question is found, and something is said to it.
    2. The person may answer it: audience, ``not_by`` (superusers are not exempt). Who may not is audited.
    3. Decision and fields are checked against the question; all problems are reported, and it stays open.
    4. The answer is stored; the driver takes the run on from there.

    Raises ``run.not_found``, ``access.denied``, ``interrupt.not_found``, ``interrupt.ambiguous``,
    ``interrupt.not_allowed``, ``interrupt.invalid``, and what ``ledger.answering.answer`` loses with.
    """
    require(actor, ANSWER, run=run_id)
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    question = find_question(run, visit)
    refuse_when_nothing_is_said(question, wish)
    refuse_when_others_have_answered(run, question, actor.name)
    try:
        refuse_unless_allowed(run, question, actor.name)
    except Refusal:
        told = {"question": f"v{question.visit}.{question.attempt}"}
        now = timezone.now()
        audit(actor=actor.recorded, action="interrupt.answer", at=now, run=run_id, allowed=False, data=told)
        raise
    decision, fields = checked(question, wish)
    return store_answer(
        run_id=run_id,
        visit=question.visit,
        reply=Reply(
            voter=actor.name,
            recorded_by=actor.recorded,
            decision=decision,
            fields=fields,
            comment=wish.comment,
            shown_digest=question.shown_digest,
            attempt=wish.attempt,
        ),
        now=timezone.now(),
    )


def find_question(run: Run, visit: int | None) -> Interrupt:
    """The question of a visit, or the only open one."""
    questions = Interrupt.objects.filter(run=run)
    if visit is not None:
        question: Interrupt | None = questions.filter(visit=visit).order_by("-attempt").first()
        if question is None:
            raise Refusal("interrupt.not_found", run=run.pk, interrupt=f" v{visit}")
        return question
    opened = list(questions.filter(status=InterruptStatus.OPEN).order_by("visit")[:11])
    if not opened:
        last = questions.filter(status=InterruptStatus.ANSWERED).order_by("answered_at").last()
        if last is not None and not run.is_final:
            raise answered_already(run, last)
        raise Refusal("interrupt.not_found", run=run.pk, interrupt="")
    if len(opened) > 1:
        choices = ", ".join(f"v{one.visit}" for one in opened[:10])
        count = questions.filter(status=InterruptStatus.OPEN).count()
        raise Refusal("interrupt.ambiguous", run=run.pk, count=count, choices=choices)
    only: Interrupt = opened[0]
    return only


def refuse_when_nothing_is_said(question: Interrupt, wish: Wish) -> None:
    """Before anything about the person: who forgot the answer should hear that."""
    if wish.decision is None and question.status == InterruptStatus.OPEN:
        problems: list[Problem] = []
        _decision(question, None, problems)
        if problems:
            raise Refusal("interrupt.invalid", count=len(problems), problems=tuple(problems))


def refuse_when_others_have_answered(run: Run, question: Interrupt, person: str) -> None:
    """Who was first matters more than who may. Whoever took part hears how from the ledger."""
    took_part = Vote.objects.filter(run=run, visit=question.visit, attempt=question.attempt, voter=person)
    if question.status == InterruptStatus.ANSWERED and not took_part.exists():
        raise answered_already(run, question)


def answered_already(run: Run, question: Interrupt) -> Refusal:
    at = question.answered_at.isoformat("T", "seconds") if question.answered_at else ""
    return Refusal("interrupt.answered", run=run.pk, interrupt=f"v{question.visit}", by=question.answered_by, at=at)


def refuse_unless_allowed(run: Run, question: Interrupt, person: str) -> None:
    """Audience and exclusions are about the person, not about a role."""
    name = f"v{question.visit}"
    excluded = named(json.loads(question.not_by), run)
    if person in excluded:
        reason = "whoever is named in `not_by` may not decide"
        raise Refusal("interrupt.not_allowed", run=run.pk, interrupt=name, who=person, reason=reason)
    audience = json.loads(question.audience)
    users, groups = named(audience.get("users", []), run), set(audience.get("groups", []))
    if not audience or person in users or groups & groups_of(person):
        return
    asked = [*sorted(users), *(f"group {group}" for group in sorted(groups))]
    reason = f"it is for {', '.join(asked)}" if asked else "it is for nobody"
    advice = f"Whoever it is for answers with `--as {sorted(users)[0] if users else '…'}`." if asked else ""
    raise Refusal("interrupt.not_allowed", run=run.pk, interrupt=name, who=person, reason=reason, advice=advice)


def excuse(run_id: int, visit: int, *, actor: Actor) -> Refusal | None:
    """Why somebody may not answer a question; None if they may. Nothing is written. Raises ``run.not_found``,
    ``interrupt.not_found``."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    question = find_question(run, visit)
    if not may(actor, ANSWER):
        return Refusal("access.denied", actor=actor.name, what=words_of(ANSWER), permission=ANSWER)
    try:
        refuse_unless_allowed(run, question, actor.name)
    except Refusal as refusal:
        return refusal
    return None


def named(people: list[str], run: Run) -> set[str]:
    """Names, with ``requester`` as whoever started the run."""
    return {run.started_by if person == "requester" else person for person in people}


def groups_of(person: str) -> set[str]:
    users = get_user_model()._default_manager.filter(username=person, is_active=True)
    return set(users.filter(groups__name__isnull=False).values_list("groups__name", flat=True))


def checked(question: Interrupt, wish: Wish) -> tuple[str, dict[str, Any]]:
    """Decision and fields as they will be stored. Raises ``interrupt.invalid`` with a problem per field."""
    problems: list[Problem] = []
    decision = _decision(question, wish.decision, problems)
    form = json.loads(question.form)
    result = check_parameters(form, wish.fields, from_text=wish.from_text, words=FIELD_WORDS)
    needs_form = decision != "rejected"
    problems += [problem for problem in result.problems if needs_form or problem.code != "E601"]
    problems += check_storable(wish.comment, "comment")
    if len(wish.comment) > MOST_COMMENT:
        message = f"The comment has {len(wish.comment)} characters; the limit is {MOST_COMMENT}."
        problems.append(Problem(code="E613", path="comment", message=message))
    if problems:
        raise Refusal("interrupt.invalid", count=len(problems), problems=tuple(problems))
    return decision, dict(result.values)


def _decision(question: Interrupt, wanted: str | None, problems: list[Problem]) -> str:
    if question.kind == InterruptKind.APPROVAL:
        allowed = ["approved", "rejected"]
        hint = "`--approve` or `--reject` says it."
    else:
        allowed = [choice["name"] for choice in json.loads(question.choices)]
        hint = f"Choose with `--choice {'|'.join(allowed)}`."
    if not allowed:
        if wanted is not None:
            message = "This question has no choices."
            problems.append(Problem(code="E604", path="choice", message=message, hint="Fill in its fields."))
        return "answered"
    if wanted not in allowed:
        said = f'it is "{wanted}"' if wanted else "nothing was chosen"
        message = f"The answer must be one of {', '.join(allowed)}; {said}."
        problems.append(Problem(code="E604", path="choice", message=message, hint=hint))
    return wanted or ""
