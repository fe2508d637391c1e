"""Memory: a driver's facts about its run, read from the rows once and kept up with every commit.

Nothing here reads O(history): a miss is one indexed query, and a run that this driver has seen from its first visit
on has no misses at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Count, OuterRef, Subquery, Sum

from workflows.definitions.compiler import compiled
from workflows.definitions.freezing import verify
from workflows.definitions.plan import Plan
from workflows.engine.draft import Draft
from workflows.engine.paths import visit_path
from workflows.engine.payloads import Payloads
from workflows.errors import Refusal
from workflows.facts import (
    AttemptRow,
    ChildRow,
    ControlRow,
    FanoutCounts,
    FanoutRow,
    InterruptRow,
    OfferRow,
    RunIdentity,
    RunState,
    ScopeRow,
    VisitRow,
    column_names,
)
from workflows.jsonvalue import decode
from workflows.ledger.adopting import children_of_origins
from workflows.models import (
    Attempt,
    ControlMessage,
    ExternalOffer,
    Fanout,
    Interrupt,
    Payload,
    Run,
    Scope,
    ScopeVars,
    Slot,
    Visit,
)
from workflows.models import Plan as PlanModel
from workflows.statuses import AttemptStatus, ScopePhase, SlotKind, VisitStatus


class Memory:
    """The facts of one run, as ``workflows.facts.Facts``."""

    def __init__(self, identity: RunIdentity, *, epoch: int, worker: str, takes_slot: bool = False) -> None:
        self.identity = identity
        self.epoch = epoch
        self.worker = worker
        self.active_ms = 0
        self.is_occupied: Callable[[int], bool] = lambda visit: False
        self.takes_slot = takes_slot
        self.payloads = Payloads()
        # what runs in this process: no row says it, so it outlives a reading of the rows
        self._workspace_uses: dict[int, str] = {}
        self._gate: list[str] = []
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
        live = Scope.objects.filter(run_id=run_id, outcome="").exclude(phase=ScopePhase.ENDED).order_by("id")
        self._scopes = {row["path"]: ScopeRow(**row) for row in live.values(*column_names(ScopeRow))}
        paths = list(self._scopes)
        variables = ScopeVars.objects.filter(run_id=run_id, path__in=paths).values_list("path", "values")
        self._variables: dict[str, Mapping[str, Any]] = {path: decode(text) for path, text in variables}
        numbers = [scope.visit for scope in self._scopes.values() if scope.visit is not None]
        visits = Visit.objects.filter(run_id=run_id, number__in=numbers).values(*column_names(VisitRow))
        self._open = {row["number"]: VisitRow(**row) for row in visits}
        self._attempts: dict[int, dict[int, AttemptRow]] = {number: {} for number in numbers}
        attempts = Attempt.objects.filter(run_id=run_id, visit__in=numbers).order_by("visit", "number")
        for row in attempts.values(*column_names(AttemptRow)):
            self._attempts[row["visit"]][row["number"]] = AttemptRow(**row)
        self._settled: dict[tuple[str, str], VisitRow | None] = {}
        self._steps_of: dict[str, set[str]] = {}
        self._refused: dict[tuple[str, str], VisitRow | None] = {}
        self._workspace_uses = {visit: use for visit, use in self._workspace_uses.items() if visit in self._open}
        self._gate = [path for path in self._gate if path in self._scopes]
        self._load_containers(numbers)

    def _load_containers(self, numbers: list[int]) -> None:
        """The open fan-outs and questions; most runs have neither, and then nothing is read."""
        run_id = self.identity.id
        kinds = {visit.kind for visit in self._open.values()}
        self._fanouts: dict[int, FanoutRow] = {}
        self._counts: dict[int, FanoutCounts] = {}
        self._below: dict[int, int] = {}
        self._interrupts: dict[int, InterruptRow] = {}
        if kinds & {"map", "parallel"}:
            rows = Fanout.objects.filter(run_id=run_id, visit__in=numbers).values(*column_names(FanoutRow))
            self._fanouts = {row["visit"]: FanoutRow(**row) for row in rows}
            self._counts = {visit: self._count(visit) for visit in self._fanouts}
        self._children: dict[str, ChildRow] = {}
        self._places: dict[str, tuple[str, int | None]] | None = None
        if "workflow" in kinds:
            self.load_children()
        if kinds & {"approval", "question"}:
            rows = Interrupt.objects.filter(run_id=run_id, visit__in=numbers).order_by("attempt")
            self._interrupts = {row["visit"]: InterruptRow(**row) for row in rows.values(*column_names(InterruptRow))}
        self._offers: dict[int, OfferRow] = {}
        if "external" in kinds:
            rows = ExternalOffer.objects.filter(run_id=run_id, visit__in=numbers).order_by("attempt", "number")
            self._offers = {row["visit"]: OfferRow(**row) for row in rows.values(*column_names(OfferRow))}

    def load_children(self) -> None:
        """The child runs that open visits wait for."""
        numbers = [visit.number for visit in self._open.values() if visit.kind == "workflow"]
        rows = Run.objects.filter(parent_run_id=self.identity.id, parent_visit__in=numbers)
        columns = ("id", "invocation_key", "status", "error", "output_digest")
        for run_id, key, status, error, output in rows.values_list(*columns):
            self._children[key] = ChildRow(run_id=run_id, status=status, error=error, output_digest=output)
        self._load_adopted()

    def _load_adopted(self) -> None:
        """The child runs of an origin whose results this fork takes."""
        inherited = {
            attempt.dispatch_id
            for attempts in self._attempts.values()
            for attempt in attempts.values()
            if attempt.inherited and attempt.status == AttemptStatus.PAUSED
        }
        wanted = inherited - set(self._children)
        if wanted:
            columns = ("id", "invocation_key", "status", "error", "output_digest")
            for run_id, key, status, error, output in children_of_origins(self.identity.id, wanted).values_list(
                *columns
            ):
                self._children[key] = ChildRow(
                    run_id=run_id, status=status, error=error, output_digest=output, is_own=False
                )

    def _read_places(self) -> dict[str, tuple[str, int | None]]:
        """The limit slots of this run and its places in line, with the moment that is known of them."""
        rows = Slot.objects.filter(run_id=self.identity.id, kind=SlotKind.LIMIT)
        columns = rows.values_list("scope", "number", "due_ms")
        return {scope: ("waiting", due) if number is None else ("given", None) for scope, number, due in columns}

    def _count(self, visit: int) -> FanoutCounts:
        scopes = Scope.objects.filter(run_id=self.identity.id, parent_visit=visit)
        outcomes = dict(scopes.values_list("outcome").annotate(Count("id")).order_by())
        counted = {name: outcomes.get(name, 0) for name in ("ok", "failed", "cancelled")}
        return FanoutCounts(started=sum(outcomes.values()), **counted)

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
        return self._latest(self._settled, (scope, step), refused=False)

    def refused(self, scope: str, step: str) -> VisitRow | None:
        return self._latest(self._refused, (scope, step), refused=True)

    def _latest(
        self, known: dict[tuple[str, str], VisitRow | None], key: tuple[str, str], *, refused: bool
    ) -> VisitRow | None:
        if key in known or self._complete or key[0] not in self._scopes:
            # a scope that this driver has not written yet has no visits
            return known.get(key)
        known[key] = self._read(key, refused=refused)
        if key[0]:
            self._steps_of.setdefault(key[0], set()).add(key[1])
        return known[key]

    def _read(self, key: tuple[str, str], *, refused: bool) -> VisitRow | None:
        rows = Visit.objects.filter(run_id=self.identity.id, scope=key[0], step=key[1], round__isnull=refused)
        if not refused:
            rows = rows.filter(status=VisitStatus.SETTLED)
        row = rows.order_by("-number" if refused else "-round").values(*column_names(VisitRow)).first()
        return VisitRow(**row) if row else None

    def payload(self, digest: str) -> Any:
        return self.payloads.get(digest)

    def fanout(self, visit: int) -> FanoutRow:
        return self._fanouts[visit]

    def counts(self, visit: int) -> FanoutCounts:
        return self._counts[visit]

    def visits_below(self, visit: int) -> int:
        if visit not in self._below:
            row = self._open[visit]
            prefix = f"{visit_path(row.scope, row.step, row.round or 1)}["
            made = Visit.objects.filter(run_id=self.identity.id, number__gt=visit, scope__startswith=prefix)
            self._below[visit] = made.count()
        return self._below[visit]

    def output_bytes(self, visit: int) -> int:
        size = Subquery(Payload.objects.filter(digest=OuterRef("output_digest")).values("size"))
        ended = Scope.objects.filter(run_id=self.identity.id, parent_visit=visit, output_digest__isnull=False)
        return int(ended.annotate(bytes=size).aggregate(sum=Sum("bytes"))["sum"] or 0)

    def ended_items(self, visit: int) -> Mapping[int, ScopeRow]:
        rows = Scope.objects.filter(run_id=self.identity.id, parent_visit=visit, phase=ScopePhase.ENDED)
        ended = {row["index"]: ScopeRow(**row) for row in rows.values(*column_names(ScopeRow))}
        self.payloads.get_many(row.output_digest for row in ended.values() if row.output_digest is not None)
        return ended

    def interrupt(self, visit: int) -> InterruptRow | None:
        return self._interrupts.get(visit)

    def offer(self, visit: int) -> OfferRow | None:
        return self._offers.get(visit)

    def child(self, dispatch_id: str) -> ChildRow | None:
        return self._children.get(dispatch_id)

    def count_children(self) -> int:
        return int(Run.objects.filter(parent_run_id=self.identity.id).count())

    def place(self, scope: str) -> str:
        return self._place(scope)[0]

    def turn_ms(self, scope: str) -> int | None:
        return self._place(scope)[1]

    def _place(self, scope: str) -> tuple[str, int | None]:
        if self._places is None:  # only steps with a limit ask
            self._places = self._read_places()
        return self._places.get(scope, ("", None))

    def plan(self, plan_id: int) -> Plan:
        return read_plan(PlanModel.objects.get(pk=plan_id))

    def workspace_uses(self) -> Mapping[int, str]:
        return self._workspace_uses

    def gate_order(self, path: str) -> int:
        return self._gate.index(path) if path in self._gate else len(self._gate)

    # ---- after a commit ---------------------------------------------------------------------------------------------

    def absorb(self, draft: Draft) -> None:
        """Take over what a committed draft has written."""
        self.state = draft.state
        self.revision = draft.revision
        self.next_event = draft.next_event
        self.visits = draft.visit_count
        self._absorb_containers(draft)
        for path in (*draft.scopes_new, *draft.scopes_changed):
            row = draft.scope_row(path)
            if row.phase == ScopePhase.ENDED:
                self._scopes.pop(path, None)
                self._variables.pop(path, None)
                self._forget_scope(path)
            else:
                self._scopes[path] = row
        live = {path: values for path, values in draft.changed_variables.items() if path in self._scopes}
        self._variables.update(live)
        for number, visit in draft.visit_rows.items():
            if visit.status == VisitStatus.OPEN:
                self._open[number] = visit
            else:
                self._open.pop(number, None)
                self._attempts.pop(number, None)
        for (number, attempt_number), attempt in draft.attempt_rows.items():
            if number in self._open:
                self._attempts.setdefault(number, {})[attempt_number] = attempt
        self._absorb_latest(self._settled, draft.latest_settled)
        self._absorb_latest(self._refused, draft.latest_refused)
        for digest, payload in draft.payloads.items():
            self.payloads.put(digest, payload.size, draft.values[digest])

    def _absorb_latest(
        self, known: dict[tuple[str, str], VisitRow | None], latest: Mapping[tuple[str, str], VisitRow]
    ) -> None:
        for (path, step), visit in latest.items():
            if path in self._scopes:
                known[path, step] = visit
                if path:
                    self._steps_of.setdefault(path, set()).add(step)

    def _absorb_containers(self, draft: Draft) -> None:
        self._fanouts.update(draft.fanouts)
        self._counts.update(draft.fanout_counts)
        self._interrupts.update(draft.interrupts)
        self._offers.update(draft.offers)
        for visit, made in self._below.items():
            row = self._open[visit]
            prefix = f"{visit_path(row.scope, row.step, row.round or 1)}["
            new = sum(1 for number in draft.visits_new if draft.visit_rows[number].scope.startswith(prefix))
            self._below[visit] = made + new
        self._gate = list(draft.gated)
        if self._places is not None:
            for path in draft.slots_freed:
                self._places.pop(path, None)
            self._places.update(dict.fromkeys(draft.slots_wanted, ("waiting", None)))
        if draft.children:
            self._open.update({n: v for n, v in draft.visit_rows.items() if v.status == VisitStatus.OPEN})
            self.load_children()
        for visit, _ in draft.attempts_settled:
            self._workspace_uses.pop(visit, None)
        for admission in draft.admissions:
            if admission.effect.workspace != "none":
                self._workspace_uses[admission.visit.number] = admission.effect.workspace
        for number, row in draft.visit_rows.items():
            if row.status != VisitStatus.OPEN:
                self._fanouts.pop(number, None)
                self._counts.pop(number, None)
                self._below.pop(number, None)
                self._interrupts.pop(number, None)
                self._offers.pop(number, None)

    def _forget_scope(self, path: str) -> None:
        """Nothing reads the steps of an item any more once it has ended."""
        if path in self._steps_of:
            for step in self._steps_of.pop(path):
                self._settled.pop((path, step), None)
                self._refused.pop((path, step), None)


def read_plan(row: PlanModel) -> Plan:
    """The compiled plan of a row, refused when it is not what was frozen. Raises ``plan.corrupt``."""
    verify(row.document, row.hash, plan=f"{row} {row.hash[:12]}")
    return compiled(row.hash, row.document)


def identity_of(run_id: int) -> tuple[RunIdentity, Run]:
    """What never changes during a run, and its row with plan and workflow. Parameters are as expressions see them
    only after ``definitions.parameters.for_expressions``. Raises ``run.not_found``."""
    run = Run.objects.select_related("plan", "workflow").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    params = decode(Payload.objects.values_list("text", flat=True).get(digest=run.params_digest))
    identity = RunIdentity(
        id=run.pk,
        workflow=run.workflow.name,
        started_by=run.started_by,
        created_at=run.created_at,
        params=params,
        frozen=json.loads(run.frozen),
        engine_version=run.engine_version,
        depth=run.depth,
    )
    return identity, run
