"""Offering: the rows by which the work of a step is offered to other programs, and withdrawn (promises EXT)."""

from __future__ import annotations

from workflows.engine.contract import Work
from workflows.engine.draft import Draft
from workflows.facts import AttemptRow, OfferRow, ScopeRow, VisitRow, changed
from workflows.statuses import OfferStatus, ScopePhase, WaitsFor

_LIVE = frozenset({OfferStatus.OPEN, OfferStatus.RESERVED})


def offer(draft: Draft, scope: ScopeRow, visit: VisitRow, attempt: AttemptRow, work: Work) -> None:
    """Commit attempt, offer and scope together, in the present revision. Nothing runs out before a program comes."""
    draft.offers[visit.number] = OfferRow(
        visit=visit.number,
        attempt=attempt.number,
        number=1,
        queue=work.queue,
        input_digest=draft.keep(work.inputs["input"]),
        lease_ms=work.lease_ms,
        timeout_ms=work.timeout_ms,
        offered_ms=draft.now_ms,
        revision_created=draft.revision,
    )
    draft.event("step_started", visit=visit.number, attempt=attempt.number, step=visit.step, queue=work.queue)
    draft.change_scope(
        scope,
        phase=ScopePhase.WAITING.value,
        visit=visit.number,
        waits_for=WaitsFor.EXTERNAL.value,
        wake_at_ms=None,
    )


def latest(draft: Draft, visit: int) -> OfferRow | None:
    """The latest offer of a visit."""
    row = draft.offers.get(visit)
    return draft.facts.offer(visit) if row is None else row


def withdraw(draft: Draft, visit: VisitRow, reason: str) -> None:
    """Nobody is to do the work of a visit any more, in the present revision; whoever does it is told when they ask."""
    row = latest(draft, visit.number) if visit.kind == "external" else None
    if row is not None and row.status in _LIVE:
        draft.offers[visit.number] = changed(
            row,
            status=OfferStatus.WITHDRAWN.value,
            reason=reason,
            ended_ms=draft.now_ms,
            revision_settled=draft.revision,
        )
