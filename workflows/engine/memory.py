"""Memory: a driver's facts about its run, read from the rows once and kept up with every commit.

Nothing here reads O(history): a miss is one indexed query, and a run that this driver has seen from its first visit
on has no misses at all.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from workflows.engine.draft import Draft
from workflows.errors import Refusal
from workflows.facts import (
    AttemptRow,
    ControlRow,
    RunIdentity,
    RunState,
    ScopeRow,
    VisitRow,
    column_names,
)
from workflows.models import Attempt, ControlMessage, Payload, Run, Scope, ScopeVars, Visit
from workflows.statuses import ScopePhase, VisitStatus

#: Bytes of payload text whose decoded values are kept.
CACHE_BYTES = 64 * 1024 * 1024


class Payloads:
    """A bounded cache of decoded payloads, the least recently used go first."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self._bytes = 0

    def get(self, digest: str) -> Any:
        known = self._values.get(digest)
        if known is None:
            row = Payload.objects.filter(digest=digest).values_list("text", "size").first()
            if row is None:
                raise LookupError(f"payload {digest} is missing")
            known = (row[1], json.loads(row[0]))
            self.put(digest, *known)
        else:
            self._values.move_to_end(digest)
        return known[1]

    def put(self, digest: str, size: int, value: Any) -> None:
        if digest in self._values:
            return
        self._values[digest] = (size, value)
        self._bytes += size
        while self._bytes > CACHE_BYTES and len(self._values) > 1:
            self._bytes -= self._values.popitem(last=False)[1][0]


class Memory:
    """The facts of one run, as ``workflows.facts.Facts``."""

    def __init__(self, identity: RunIdentity, *, epoch: int, worker: str) -> None:
        self.identity = identity
        self.epoch = epoch
        self.worker = worker
        self.active_ms = 0
        self.payloads = Payloads()
        self.load()

    # ---- reading rows -----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read where the run stands: five queries, whatever its history."""
        run_id = self.identity.id
        row = Run.objects.filter(pk=run_id).values(*column_names(RunState), "revision", "next_event", "visits").get()
        self.revision: int = row.pop("revision")
        self.next_event: int = row.pop("next_event")
        self.visits: int = row.pop("visits")
        self.state = RunState(**row)
        self._complete = self.visits == 0
        live = Scope.objects.filter(run_id=run_id).exclude(phase=ScopePhase.ENDED).order_by("id")
        self._scopes = {row["path"]: ScopeRow(**row) for row in live.values(*column_names(ScopeRow))}
        paths = list(self._scopes)
        variables = ScopeVars.objects.filter(run_id=run_id, path__in=paths).values_list("path", "values")
        self._variables: dict[str, Mapping[str, Any]] = {path: json.loads(text) for path, text in variables}
        numbers = [scope.visit for scope in self._scopes.values() if scope.visit is not None]
        visits = Visit.objects.filter(run_id=run_id, number__in=numbers).values(*column_names(VisitRow))
        self._open = {row["number"]: VisitRow(**row) for row in visits}
        self._attempts: dict[int, dict[int, AttemptRow]] = {number: {} for number in numbers}
        attempts = Attempt.objects.filter(run_id=run_id, visit__in=numbers).order_by("visit", "number")
        for row in attempts.values(*column_names(AttemptRow)):
            self._attempts[row["visit"]][row["number"]] = AttemptRow(**row)
        self._settled: dict[tuple[str, str], VisitRow | None] = {}
        self._refused: dict[tuple[str, str], VisitRow | None] = {}

    def pending_controls(self) -> list[ControlRow]:
        """Accepted messages that nobody has carried out, in order."""
        rows = ControlMessage.objects.filter(run_id=self.identity.id, consumed_at=None).order_by("sequence")
        return [ControlRow(**row) for row in rows.values(*column_names(ControlRow))]

    # ---- Facts ------------------------------------------------------------------------------------------------------

    def scopes(self) -> Mapping[str, ScopeRow]:
        return self._scopes

    def variables(self, path: str) -> Mapping[str, Any]:
        return self._variables.get(path, {})

    def visit(self, number: int) -> VisitRow:
        return self._open[number]

    def attempts(self, visit: int) -> tuple[AttemptRow, ...]:
        return tuple(self._attempts.get(visit, {}).values())

    def settled(self, scope: str, step: str) -> VisitRow | None:
        key = (scope, step)
        if key not in self._settled:
            self._settled[key] = None if self._complete else self._read(key, refused=False)
        return self._settled[key]

    def refused(self, scope: str, step: str) -> VisitRow | None:
        key = (scope, step)
        if key not in self._refused:
            self._refused[key] = None if self._complete else self._read(key, refused=True)
        return self._refused[key]

    def _read(self, key: tuple[str, str], *, refused: bool) -> VisitRow | None:
        rows = Visit.objects.filter(run_id=self.identity.id, scope=key[0], step=key[1], round__isnull=refused)
        if not refused:
            rows = rows.filter(status=VisitStatus.SETTLED)
        row = rows.order_by("-number" if refused else "-round").values(*column_names(VisitRow)).first()
        return VisitRow(**row) if row else None

    def payload(self, digest: str) -> Any:
        return self.payloads.get(digest)

    # ---- after a commit ---------------------------------------------------------------------------------------------

    def absorb(self, draft: Draft) -> None:
        """Take over what a committed draft has written."""
        self.state = draft.state
        self.revision = draft.revision
        self.next_event = draft.next_event
        self.visits = draft.visit_count
        for path in (*draft.scopes_new, *draft.scopes_changed):
            row = draft.scopes[path]
            if row.phase == ScopePhase.ENDED:
                self._scopes.pop(path, None)
                self._variables.pop(path, None)
            else:
                self._scopes[path] = row
        self._variables.update(draft.changed_variables)
        for number, visit in draft.visit_rows.items():
            if visit.status == VisitStatus.OPEN:
                self._open[number] = visit
            else:
                self._open.pop(number, None)
                self._attempts.pop(number, None)
        for (number, attempt), row in draft.attempt_rows.items():
            if number in self._open:
                self._attempts.setdefault(number, {})[attempt] = row
        self._settled.update(draft.latest_settled)
        self._refused.update(draft.latest_refused)
        for digest, payload in draft.payloads.items():
            self.payloads.put(digest, payload.size, draft.values[digest])


def identity_of(run_id: int) -> tuple[RunIdentity, Run]:
    """What never changes during a run, and its row with plan and workflow. Parameters are as expressions see them
    only after ``definitions.parameters.for_expressions``. Raises ``run.not_found``."""
    run = Run.objects.select_related("plan", "workflow").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    params = json.loads(Payload.objects.values_list("text", flat=True).get(digest=run.params_digest))
    identity = RunIdentity(
        id=run.pk,
        workflow=run.workflow.name,
        started_by=run.started_by,
        created_at=run.created_at,
        params=params,
        frozen=json.loads(run.frozen),
        engine_version=run.engine_version,
    )
    return identity, run
