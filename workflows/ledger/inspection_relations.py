"""Inspect what a run is to others: lease, messages, parent, children, origin. See ``inspection``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workflows.jsonvalue import canonical, digest
from workflows.ledger.inspection_rows import RunRows
from workflows.models import Attempt, Run
from workflows.statuses import RunStatus, ScopePhase


def ending(rows: RunRows) -> Iterator[str]:
    """The lease is that of the run's epoch; of a run that is over nothing is alive."""
    run, lease = rows.run, rows.lease
    if lease is None:
        yield "the run has no lease row"
    elif lease.epoch != run.lease_epoch:
        yield f"the lease is at epoch {lease.epoch}, the run at {run.lease_epoch}"
    elif (lease.expires_ms > 0) != bool(lease.owner):
        yield f"the lease ends at {lease.expires_ms} and belongs to {lease.owner or 'nobody'}"
    if run.is_final != (run.ended_at is not None):
        yield f"the run is {run.status} and ended at {run.ended_at}"
    if not run.is_final:
        return
    if lease is not None and lease.expires_ms:
        yield f"the run is {run.status}, but its lease was not released"
    if run.status == RunStatus.ABANDONED:
        return  # its steps stay where they stood
    for scope in rows.scopes:
        if scope.phase != ScopePhase.ENDED:
            yield f"the run is {run.status}, but scope {scope.path or '(root)'} is {scope.phase}"


def controls(rows: RunRows) -> Iterator[str]:
    """Messages are counted, and are what their digests say."""
    run = rows.run
    seen = sum(1 for message in rows.controls if message.consumed_at is not None)
    if (run.controls_accepted, run.controls_seen) != (len(rows.controls), seen):
        yield (
            f"the run counts {run.controls_accepted} messages and {run.controls_seen} carried out, "
            f"but there are {len(rows.controls)} and {seen}"
        )
    for message in rows.controls:
        name = f"message {message.sequence} ({message.kind})"
        if (message.consumed_at is None) != (not message.consumed_by):
            yield f'{name} was carried out at {message.consumed_at} by "{message.consumed_by}"'
        content = canonical({"kind": message.kind, "payload": json.loads(message.payload)})
        if digest(content) != message.digest:
            yield f"{name} is not what its digest says"


def relatives(rows: RunRows) -> Iterator[str]:
    """A child run was started by an attempt of its parent and counts to the parent's tree."""
    run = rows.run
    if run.idempotency_key == "":
        yield "the run has an empty idempotency key"
    if run.parent_run_id is None:
        if (run.parent_visit, run.invocation_key, run.root_run_id) != (None, None, None):
            yield f"the run has no parent, but was started by v{run.parent_visit} in the tree of {run.root_run_id}"
        return
    parent = Run.objects.filter(pk=run.parent_run_id).values("root_run_id", "depth").first()
    if parent is None:
        yield f"its parent run {run.parent_run_id} does not exist"
        return
    started = Attempt.objects.filter(run_id=run.parent_run_id, visit=run.parent_visit, dispatch_id=run.invocation_key)
    if not started.exists():
        yield f"no attempt of v{run.parent_visit} of run {run.parent_run_id} started it"
    if run.root_run_id not in (None, parent["root_run_id"] or run.parent_run_id):
        yield f"the run is in the tree of {run.root_run_id}, its parent in that of {parent['root_run_id']}"
    if run.depth != parent["depth"] + 1:
        yield f"the run is {run.depth} levels deep, its parent {parent['depth']}"


def inheritance(rows: RunRows) -> Iterator[str]:
    """Rows are marked as inherited exactly when they are of a revision that the run took over from its origin."""
    run = rows.run
    if (run.fork_of_id is None) != (run.fork_revision is None):
        yield f"the run is a fork of {run.fork_of_id} at revision {run.fork_revision}"
        return
    cut = run.fork_revision or 0
    if cut > run.revision:
        yield f"the run was forked at revision {cut}, but is at {run.revision}"
    named: tuple[tuple[str, Any], ...] = (
        *((f"v{row.number}", row) for row in rows.visits),
        *((f"v{row.visit}.{row.number}", row) for row in rows.attempts),
        *((f"scope {row.path or '(root)'}", row) for row in rows.scopes),
        *((f"the fan-out of v{row.visit}", row) for row in rows.fanouts),
        *((f"the question v{row.visit}.{row.attempt}", row) for row in rows.questions),
        *((f"the vote of {row.voter} on v{row.visit}.{row.attempt}", row) for row in rows.votes),
    )
    for name, row in named:
        if row.inherited != (row.revision_created <= cut):
            yield _marked(name, row.inherited, row.revision_created, cut)
    for event in rows.events():
        if event.inherited != (event.revision <= cut):
            yield _marked(f"event {event.sequence}", event.inherited, event.revision, cut)


def _marked(name: str, inherited: bool, revision: int, cut: int) -> str:
    marked = "is marked as inherited" if inherited else "is not marked as inherited"
    return f"{name} of revision {revision} {marked}; the run took over {cut} revisions"
