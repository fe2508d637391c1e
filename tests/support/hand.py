"""A driver by hand: one decision at a time, at moments that the test passes in, with effects that only the test ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.support.kinds import kinds_with
from tests.support.plans import START
from workflows.clock import database_now_ms
from workflows.definitions.parameters import for_expressions
from workflows.engine import scheduler
from workflows.engine.contract import Kinds, Result
from workflows.engine.draft import Admission
from workflows.engine.memory import Memory, identity_of, read_plan
from workflows.engine.scheduler import Decision
from workflows.ledger import leases
from workflows.ledger.advance import advance
from workflows.ledger.batch import Batch
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Lease

TTL_MS = 60_000
ENGINE_VERSIONS = frozenset({1})
Write = Callable[[Batch], Any]


class Hand:
    """Holds the lease of a run under ``owner``. Ids count up, so that two executions write the same.

    ``at_ms`` is the moment of acquisition for the lease, None for the database clock. Decisions are made at ``now``,
    which a test moves with :meth:`pass_time`.
    """

    def __init__(
        self,
        run_id: int,
        *,
        kinds: Kinds | None = None,
        owner: str = "hand",
        at_ms: int | None = None,
        write: Write = advance,
        now: datetime = START,
    ) -> None:
        identity, run = identity_of(run_id)
        self.run_id = run_id
        self.plan = read_plan(run.plan)
        self.grant = leases.acquire(
            run_id=run_id, owner=owner, ttl_ms=TTL_MS, engine_versions=ENGINE_VERSIONS, now=at_ms
        )
        identity = replace(identity, params=for_expressions(self.plan.params, identity.params))
        self.memory = Memory(identity, epoch=self.grant.epoch, worker=owner, takes_slot=bool(run.concurrency_max))
        self.kinds = kinds or kinds_with()
        self.write = write
        self.now = now
        self.first = True
        self.admissions: dict[tuple[int, int], Admission] = {}
        self._ids = itertools.count(self.grant.epoch * 1_000_000)

    def new_id(self) -> str:
        return f"{next(self._ids):032x}"

    def pass_time(self, milliseconds: int) -> None:
        self.now += timedelta(milliseconds=milliseconds)

    def decide(self, results: Mapping[str, Result] | None = None, **more: Any) -> Decision:
        """A decision that is not written. ``results`` by attempt: ``{"v1.1": …}``."""
        messages = more.pop("messages", None)
        return scheduler.decide(
            self.plan,
            self.memory,
            self.kinds,
            results={key_of(name): result for name, result in (results or {}).items()},
            messages=self.memory.pending_controls() if messages is None else messages,
            now=self.now,
            new_id=self.new_id,
            first=self.first,
            **more,
        )

    def batch(self, decision: Decision) -> Batch:
        return decision.draft.batch(
            commit_id=self.new_id(),
            parks=decision.parks,
            release=decision.parks,
            wake_at_ms=decision.waits_until_ms,
        )

    def step(self, results: Mapping[str, Result] | None = None, **more: Any) -> Decision:
        """Decide and write. When the run parks or ends, its lease is released in the same transaction."""
        decision = self.decide(results, **more)
        if not decision.draft.is_empty or decision.parks:
            self.write(self.batch(decision))
            self.memory.absorb(decision.draft)
        self.first = False
        for key in results or {}:
            self.admissions.pop(key_of(key), None)
        for admission in decision.draft.admissions:
            self.admissions[admission.visit.number, admission.attempt.number] = admission
        return decision

    def reload(self) -> None:
        """Read the rows again, as a driver does when somebody else changed the run."""
        self.memory.load()

    @property
    def running(self) -> list[str]:
        """The attempts that this hand has admitted and not settled: ``v1.1``."""
        return [f"v{visit}.{attempt}" for visit, attempt in self.admissions]


@ledger_transaction
def expire(run_id: int) -> None:
    """Let the lease of a run have ended a moment ago by the database clock."""
    Lease.objects.filter(run_id=run_id).update(expires_ms=database_now_ms() - 1)


def key_of(name: str) -> tuple[int, int]:
    """(visit, attempt) of ``v12.1``."""
    visit, _, attempt = name.removeprefix("v").partition(".")
    return int(visit), int(attempt)
