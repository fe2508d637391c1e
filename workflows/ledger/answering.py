"""Answer: what a person says to an open question is stored before the run goes on (promises INT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.jsonvalue import canonical
from workflows.ledger.auditing import record_audit
from workflows.ledger.listeners import announce
from workflows.ledger.records import record_event
from workflows.ledger.slots import come_back
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Interrupt, Run, Vote
from workflows.statuses import InterruptKind, InterruptStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A checked answer of one person. ``decision``: approved, rejected, answered, or the name of a choice.

    ``shown_digest`` names what the person was shown, ``attempt`` the asking that they saw (None: whichever is the
    latest); ``recorded_by`` who wrote it down (``shell:root as alice``).
    """

    voter: str
    recorded_by: str
    decision: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    comment: str = ""
    shown_digest: str | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """``settled``: the question is answered; otherwise more approvals are needed. ``new``: said for the first time."""

    run_id: int
    visit: int
    settled: bool
    new: bool
    votes: int
    quorum: int


@ledger_transaction
def answer(*, run_id: int, visit: int, reply: Reply, now: datetime, now_ms: int | None = None) -> Answered:
    """Store what a person says to the latest question of ``visit``.

    1. Under the run's lock: the same person saying the same again succeeds and changes nothing.
    2. The question is open, its deadline has not passed, and it still shows what the person saw.
    3. A vote is recorded. It decides at once (a question, a rejection, the last approval that is needed): the answer
       is stored on the question by compare-and-swap, and the run is woken to use exactly it.

    Loses with ``run.not_found``, ``interrupt.not_found``, ``interrupt.answered`` (who, when), ``interrupt.closed``,
    ``interrupt.changed``, ``interrupt.voted``.
    """
    run = Run.objects.lock(run_id)
    answered = _answer(run, visit, reply, now, database_now_ms() if now_ms is None else now_ms)
    announce(run_id, run.revision)
    return answered


@ledger_transaction
def answer_all(
    *, run_id: int, replies: Sequence[tuple[int, Reply]], now: datetime, now_ms: int | None = None
) -> list[Answered]:
    """Store the answers to several questions of a run, each given by its visit: all of them or none (INT.4).

    Loses with what ``answer`` loses with, at the first question that does not take its answer.
    """
    run = Run.objects.lock(run_id)
    moment_ms = database_now_ms() if now_ms is None else now_ms
    answered = [_answer(run, visit, reply, now, moment_ms) for visit, reply in replies]
    announce(run_id, run.revision)
    return answered


def _answer(run: Run, visit: int, reply: Reply, now: datetime, now_ms: int) -> Answered:
    """One answer, under the lock of its run."""
    run_id = run.pk
    question = Interrupt.objects.filter(run=run, visit=visit).order_by("-attempt").first()
    if question is None:
        raise Refusal("interrupt.not_found", run=run_id, interrupt=f" v{visit}")
    votes = list(Vote.objects.filter(run=run, visit=visit, attempt=question.attempt).order_by("id"))
    mine = next((vote for vote in votes if vote.voter == reply.voter), None)
    if mine is not None and _same(mine, reply):
        settled = question.status == InterruptStatus.ANSWERED
        return _answered(run_id, question, settled=settled, new=False, votes=len(votes))
    _refuse_unless_open(run, question, now_ms)
    if question.shown_digest != reply.shown_digest or reply.attempt not in (None, question.attempt):
        raise Refusal("interrupt.changed", run=run_id, interrupt=f"v{visit}")
    if mine is not None:
        raise Refusal("interrupt.voted", run=run_id, interrupt=f"v{visit}", who=reply.voter, decision=mine.decision)
    votes.append(_record_vote(run, question, reply, now))
    approvals = sum(1 for vote in votes if vote.decision == "approved")
    decides = question.kind == InterruptKind.QUESTION or reply.decision == "rejected" or approvals >= question.quorum
    columns: dict[str, Any] = {}
    if decides:
        _store_answer(run, question, reply, votes, now)
        columns["wake_at_ms"] = database_now_ms()
        come_back(run, columns["wake_at_ms"])
    event = "question_answered" if decides else "vote_recorded"
    record_event(run, event, at=now, actor=reply.recorded_by, visit=visit, attempt=question.attempt, by=reply.voter)
    Run.objects.change(run, **columns)
    _audit(run, question, reply, now)
    return _answered(run_id, question, settled=decides, new=True, votes=len(votes))


def _audit(run: Run, question: Interrupt, reply: Reply, now: datetime) -> None:
    told = {"question": f"v{question.visit}.{question.attempt}", "kind": question.kind, "decision": reply.decision}
    record_audit(actor=reply.recorded_by, action="interrupt.answer", at=now, run=run.pk, data=told)


def _same(vote: Vote, reply: Reply) -> bool:
    said = (vote.decision, vote.comment, vote.answer)
    return said == (reply.decision, reply.comment, canonical(dict(reply.fields)))


def _answered(run_id: int, question: Interrupt, *, settled: bool, new: bool, votes: int) -> Answered:
    return Answered(run_id=run_id, visit=question.visit, settled=settled, new=new, votes=votes, quorum=question.quorum)


def _refuse_unless_open(run: Run, question: Interrupt, now_ms: int) -> None:
    name = f"v{question.visit}"
    if question.status == InterruptStatus.ANSWERED:
        at = question.answered_at.isoformat("T", "seconds") if question.answered_at else ""
        raise Refusal("interrupt.answered", run=run.pk, interrupt=name, by=question.answered_by, at=at)
    if question.status == InterruptStatus.EXPIRED or (question.deadline_ms or now_ms + 1) <= now_ms:
        raise Refusal("interrupt.closed", run=run.pk, interrupt=name, reason="its deadline has passed")
    if question.status == InterruptStatus.CLOSED or run.is_final:
        raise Refusal("interrupt.closed", run=run.pk, interrupt=name, reason=f"the run is {run.status}")


def _record_vote(run: Run, question: Interrupt, reply: Reply, now: datetime) -> Vote:
    vote: Vote = Vote.objects.create(
        run=run,
        visit=question.visit,
        attempt=question.attempt,
        voter=reply.voter,
        recorded_by=reply.recorded_by,
        decision=reply.decision,
        comment=reply.comment,
        answer=canonical(dict(reply.fields)),
        shown_digest=reply.shown_digest,
        voted_at=now,
        revision_created=run.revision + 1,
    )
    return vote


def _store_answer(run: Run, question: Interrupt, reply: Reply, votes: list[Vote], now: datetime) -> None:
    if question.kind == InterruptKind.APPROVAL:
        deciding = [vote for vote in votes if vote.decision == reply.decision]
        output: dict[str, Any] = {
            "decision": reply.decision,
            "by": [vote.voter for vote in deciding],
            "comment": next((vote.comment for vote in reversed(deciding) if vote.comment), None),
            "form": dict(reply.fields),
        }
    else:
        choice = None if reply.decision == "answered" else reply.decision
        output = {**reply.fields, "by": reply.voter, "choice": choice}
    Interrupt.objects.close(
        run_id=run.pk,
        visit=question.visit,
        status=InterruptStatus.ANSWERED,
        answer=canonical({"outcome": reply.decision, "output": output}),
        answered_by=reply.voter,
        answered_at=now,
        revision_settled=run.revision + 1,
    )
