"""How a fork begins: the run's row, the rows of the cut, and the state from which it goes on. See ``forking``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workflows.clock import unix_ms
from workflows.errors import Refusal
from workflows.ledger.forking_head import stand_at_cut
from workflows.ledger.forking_rows import copy_cut
from workflows.ledger.inspection import inspect_run
from workflows.ledger.past import Past, moment_of
from workflows.ledger.records import compact, record_event, record_version
from workflows.models import Event, Lease, Run, Scope, Visit
from workflows.models.run import STATE_COLUMNS
from workflows.statuses import FINAL_STATUSES, RunStatus, ScopePhase, Section

_TAKEN_OVER = ("workflow_id", "plan_id", "title", "params_digest", "frozen", "engine_version", "priority", "started_by")


def insert_fork(origin: Run, revision: int, *, now: datetime, came_from: str = "fork", **columns: Any) -> Run:
    """The row of a fork at the revision of the cut, and its free lease. Epochs go on from the origin's, so that no
    attempt of the cut is ever taken for one of the fork's own driver."""
    moments = Event.objects.filter(run=origin, revision__lte=revision).order_by("sequence")
    first, last = moments.values_list("at", flat=True)[0], moments.reverse().values_list("at", flat=True)[0]
    lease = Lease.objects.get(run=origin)
    active_ms = min(lease.active_ms, max(0, unix_ms(last) - unix_ms(first)))
    taken_over = {name: getattr(origin, name) for name in _TAKEN_OVER}
    run: Run = Run.objects.create(
        **{
            **taken_over,
            "origin": came_from,
            "created_at": now,
            "fork_of_id": origin.pk,
            "fork_revision": revision,
            "revision": revision,
            "next_event": moments.count() + 1,
            "visits": Visit.objects.filter(run=origin, revision_created__lte=revision).count(),
            "lease_epoch": origin.lease_epoch,
            "active_ms": active_ms,
            **columns,
        }
    )
    Lease.objects.create(run=run, epoch=origin.lease_epoch, active_ms=active_ms)
    return run


def begin_at_cut(run: Run, origin: Run, *, retries: Mapping[int, str], child: str, now: datetime) -> Past:
    """Copy the cut and let its head go on in the revision after it. Raises ``fork.ended``."""
    assert run.fork_revision is not None
    past = copy_cut(origin.pk, run.fork_revision, run, retries)
    root = Scope.objects.get(run=run, path="")
    if past.state["status"] in FINAL_STATUSES or root.phase == ScopePhase.ENDED:
        raise Refusal("fork.ended", run=origin.pk, revision=run.fork_revision, status=past.state["status"])
    stand_at_cut(run, past, child=child, now=now)
    return past


def number_first_revision(
    run: Run, past: Past, *, actor: str, now: datetime, held: str = "", visit: int | None = None, reason: str = ""
) -> None:
    """The one revision a fork begins with: its state, and the event that says where it comes from."""
    state: dict[str, Any] = {
        "status": str(RunStatus.QUEUED),
        "reasons": "[]",
        "held": held,
        "closing": _closing(run, past.state["closing"]),
        "output_digest": None,
        "error": "",
        "started_at": now if _has_begun(run) else None,
        "ended_at": None,
    }
    former = {**past.state, "started_at": moment_of(past.state["started_at"])}
    changed = {name: state[name] for name in STATE_COLUMNS if state[name] != former[name]}
    record_version(run, "run", "", changed)
    details: dict[str, Any] = {} if visit is None else {"from_visit": visit}
    if reason:
        details["reason"] = reason[:1000]
    record_event(
        run,
        "run_forked",
        at=now,
        actor=actor,
        origin=run.fork_of_id,
        origin_revision=run.fork_revision,
        **details,
    )
    Run.objects.change(run, **state)


def _closing(run: Run, closing: str) -> str:
    """How the origin was about to end at the cut. A cancel that had been accepted and not carried out is a message,
    and messages stay with the origin."""
    if not closing or json.loads(closing)["status"] != RunStatus.CANCELLED:
        return closing
    root = Scope.objects.get(run=run, path="")
    is_carried_out = Event.objects.filter(run=run, type="run_cancelling").exists()
    return closing if is_carried_out or root.section != Section.MAIN else ""


def _has_begun(run: Run) -> bool:
    """Whether the variables have their initial values: a driver sets them in a run that was never started."""
    return bool(run.visits or Event.objects.filter(run=run, type="variables_set").exists())


def refuse_unsound(run_id: int, origin: int, revision: int) -> None:
    """Raise ``fork.unsound`` when the rows of a new run do not tell one story (FORK.8)."""
    problems = inspect_run(run_id)
    if problems:
        raise Refusal("fork.unsound", run=origin, revision=revision, reason=compact(problems[:3])[:1500])
