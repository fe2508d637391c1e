"""People: asking a question, taking its answer, letting it expire (promises INT)."""

from __future__ import annotations

from workflows.clock import unix_ms
from workflows.definitions.plan import StepPlan
from workflows.engine import settling
from workflows.engine.contract import Ask
from workflows.engine.draft import Draft
from workflows.engine.reserving import pause
from workflows.facts import InterruptRow, ScopeRow, VisitRow
from workflows.jsonvalue import canonical, decode
from workflows.statuses import AttemptStatus, InterruptStatus, ScopePhase, WaitsFor


def ask(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, asked: Ask) -> None:
    """Commit question, paused attempt and scope together, in the present revision. The deadline counts from now."""
    attempt = pause(draft, visit)
    deadline = None if asked.timeout_ms is None else draft.now_ms + asked.timeout_ms
    question = draft.interrupts[visit.number] = InterruptRow(
        visit=visit.number,
        attempt=attempt.number,
        kind=asked.kind,
        ask=asked.ask,
        shown_digest=draft.keep([dict(entry) for entry in asked.show] or None),
        form=canonical([dict(entry) for entry in asked.form]),
        choices=canonical([dict(entry) for entry in asked.choices]),
        audience=canonical(dict(asked.audience)),
        not_by=canonical(list(asked.not_by)),
        quorum=asked.quorum,
        deadline_ms=deadline,
        remind_ms=asked.remind_ms,
        asked_at=draft.now,
        revision_created=draft.revision,
    )
    draft.event("question_asked", visit=visit.number, attempt=attempt.number, step=step.id, kind=asked.kind)
    draft.change_scope(
        scope,
        phase=ScopePhase.WAITING.value,
        visit=visit.number,
        waits_for=WaitsFor.PEOPLE.value,
        wake_at_ms=next_moment(question, draft.now_ms),
    )


def next_moment(question: InterruptRow, now_ms: int) -> int | None:
    """When something happens to an open question by itself: the next reminder, or its deadline."""
    asked_ms = unix_ms(question.asked_at)
    moments = [] if question.deadline_ms is None else [question.deadline_ms]
    if question.remind_ms:
        reminders = max(0, now_ms - asked_ms) // question.remind_ms
        moments.append(asked_ms + (reminders + 1) * question.remind_ms)
    return min(moments, default=None)


def pass_moment(draft: Draft, scope: ScopeRow) -> None:
    """The moment a question waited for has come: it expires, or people are reminded."""
    assert scope.visit is not None
    question = draft.interrupt(scope.visit)
    assert question is not None
    if question.deadline_ms is not None and question.deadline_ms <= draft.now_ms:
        expire(draft, scope)
    else:
        remind(draft, scope, question)


def remind(draft: Draft, scope: ScopeRow, question: InterruptRow) -> None:
    """Record a reminder, once for each interval; those that passed while nobody looked are one.

    The event's number names the reminder for whoever delivers it, so a delivery that is repeated is the same message.
    """
    draft.begin_revision()
    draft.event("question_reminded", visit=question.visit, attempt=question.attempt, step=scope.step)
    draft.change_scope(scope, wake_at_ms=next_moment(question, draft.now_ms))


def is_answered(draft: Draft, scope: ScopeRow) -> bool:
    question = None if scope.visit is None else draft.interrupt(scope.visit)
    return question is not None and question.status == InterruptStatus.ANSWERED


def take_answer(draft: Draft, scope: ScopeRow) -> None:
    """Settle the visit with exactly the answer that was stored."""
    assert scope.visit is not None
    question = draft.interrupt(scope.visit)
    assert question is not None
    answer = decode(question.answer)
    visit = draft.visit(scope.visit)
    step = draft.plan.steps[visit.step]
    draft.begin_revision()
    attempt = draft.close_attempt(
        draft.attempts(visit.number)[-1], status=AttemptStatus.SUCCEEDED.value, outcome=answer["outcome"]
    )
    settling.finish(
        draft,
        scope,
        step,
        visit,
        outcome=answer["outcome"],
        output_digest=draft.keep(answer["output"]),
        attempts=visit.attempts + 1,
        attempt=attempt.number,
    )


def expire(draft: Draft, scope: ScopeRow) -> None:
    """The deadline has passed and nobody has answered: outcome ``expired``, once."""
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    draft.begin_revision()
    attempt = settling.close_question(draft, visit, InterruptStatus.EXPIRED)
    step = draft.plan.steps[visit.step]
    settling.finish(draft, scope, step, visit, outcome="expired", attempts=visit.attempts + 1, attempt=attempt)
