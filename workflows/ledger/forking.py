"""Fork: a new run that starts from a past revision of another one, which stays as it is (promises FORK)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.jsonvalue import Stored, canonical
from workflows.ledger.auditing import record_audit
from workflows.ledger.forking_children import fork_children
from workflows.ledger.forking_head import edit
from workflows.ledger.forking_start import begin_at_cut, insert_fork, number_first_revision, refuse_unsound
from workflows.ledger.listeners import announce
from workflows.ledger.publishing import Concurrency, store_payloads
from workflows.ledger.records import compact
from workflows.ledger.reopening import refuse_when_driven
from workflows.ledger.slots import full, holders_of, take_now
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Everything a fork is made of. ``asked`` is a digest of the request as it was made: a repeated ``request_id`` with
    another one is refused. ``record`` is what the lineage shows (the cut and what was edited, by digest).

    ``params`` None: those of the origin; ``frozen`` None: what the origin froze. ``variables`` by scope path are whole
    mappings, ``outputs`` by visit. ``retries`` are the tallies that open visits had at the cut. ``child`` says what
    becomes of child runs that were awaited (take, new, fork). ``held`` is JSON: who holds it from its start, and why.
    """

    origin: int
    revision: int
    visit: int | None
    request_id: str
    asked: str
    record: Mapping[str, Any]
    actor: str
    started_by: str
    commit_id: str
    now: datetime
    plan_id: int
    engine_version: int
    title: str = ""
    reason: str = ""
    params: Stored | None = None
    frozen: Mapping[str, Any] | None = None
    variables: Mapping[str, Stored] = field(default_factory=dict)
    outputs: Mapping[int, Stored | None] = field(default_factory=dict)
    retries: Mapping[int, str] = field(default_factory=dict)
    child: str = ""
    concurrency: Concurrency | None = None
    held: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """``created`` False: the request was carried out before. ``queued``: it waits in line for a slot; ``oldest`` is
    then the run to cancel when the plan says so."""

    run_id: int
    created: bool
    queued: bool = False
    oldest: int | None = None


def _find_mine(wish: Fork) -> Forked | None:
    run = Run.objects.filter(last_commit=wish.commit_id).values_list("pk", flat=True).first()
    return Forked(run_id=run, created=True) if run is not None else None


@ledger_transaction(already_mine=_find_mine)
def fork(wish: Fork) -> Forked:
    """Make a new run of the origin's past; whole or not at all. Nothing of the origin is written.

    1. Under the origin's lock: the same request made before is the fork that is there.
    2. Nobody drives the origin, and the revision is one of its past at which it had not ended.
    3. The rows of the cut are copied with their numbers and marked as inherited. Lease, messages, places and open
       questions are not.
    4. The head is made to go on from the cut, edits are applied, ``run_forked`` is the next event: one revision.
    5. A concurrency key takes a slot, or a place in its line.
    6. The new run is inspected before the commit.

    Loses with ``run.not_found``, ``fork.conflict``, ``lease.held``, ``history.no_such_revision``, ``fork.ended``,
    ``run.concurrency_full`` (``when_full: reject``), ``fork.unsound``.
    """
    origin = Run.objects.lock(wish.origin)
    existing = existing_fork(wish.origin, wish.request_id, wish.asked)
    if existing is not None:
        return Forked(run_id=existing, created=False)
    refuse_when_driven(origin)
    if not 1 <= wish.revision <= origin.revision:
        raise Refusal("history.no_such_revision", run=origin.pk, revision=wish.revision, current=origin.revision)
    if wish.params is not None:
        store_payloads([wish.params])
    run = insert_fork(origin, wish.revision, now=wish.now, **_columns(wish))
    past = begin_at_cut(run, origin, retries=wish.retries, child=wish.child, now=wish.now)
    edit(run, variables=wish.variables, outputs=wish.outputs)
    number_first_revision(
        run, past, actor=wish.actor, now=wish.now, held=wish.held, visit=wish.visit, reason=wish.reason
    )
    queued = wish.concurrency is not None and not _take_slot(run, wish.concurrency)
    new = [run.pk]
    if wish.child == "fork":
        moment = past.moment()
        new += fork_children(run, origin.pk, wish.revision, moment=moment, actor=wish.actor, now=wish.now)
    for one in new:
        refuse_unsound(one, origin.pk, wish.revision)
    _audit(run, wish)
    for one in new:
        announce(one, 1)
    oldest = next(iter(holders_of(run.concurrency_key)), None) if queued else None
    return Forked(run_id=run.pk, created=True, queued=queued, oldest=oldest)


def _columns(wish: Fork) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "plan_id": wish.plan_id,
        "title": wish.title,
        "engine_version": wish.engine_version,
        "started_by": wish.started_by,
        "concurrency_key": wish.concurrency.key if wish.concurrency else "",
        "concurrency_max": wish.concurrency.max if wish.concurrency else 0,
        "fork_request": compact({**wish.record, "asked": wish.asked}),
        "request_id": wish.request_id,
        "last_commit": wish.commit_id,
    }
    if wish.params is not None:
        columns["params_digest"] = wish.params.digest
    if wish.frozen is not None:
        columns["frozen"] = canonical(dict(wish.frozen))
    return columns


def _take_slot(run: Run, concurrency: Concurrency) -> bool:
    """Take a slot or stand in line, as a start does. Raises ``run.concurrency_full`` when the plan rejects instead."""
    if take_now(run, database_now_ms()):
        return True
    if concurrency.when_full == "reject":
        raise full(concurrency.key, concurrency.max)
    return False


def _audit(run: Run, wish: Fork) -> None:
    record_audit(
        actor=wish.actor,
        action="run.fork",
        at=wish.now,
        run=run.pk,
        reason=wish.reason,
        data={"origin": wish.origin, "revision": wish.revision},
    )


def existing_fork(origin: int, request_id: str, asked: str) -> int | None:
    """The fork that this request made before. Raises ``fork.conflict`` when the id was used for another request."""
    run = Run.objects.filter(fork_of=origin, request_id=request_id).first()
    if run is None:
        return None
    if json.loads(run.fork_request)["asked"] != asked:
        raise Refusal("fork.conflict", run=origin, request_id=request_id, fork=run.pk)
    number: int = run.pk
    return number
