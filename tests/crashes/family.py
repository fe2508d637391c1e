"""The runs of one attack: those it starts and their child runs, under labels that are the same in every attack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tests.crashes.scenarios import Scenario
from workflows.definitions.compiler import compiled
from workflows.definitions.plan import Plan
from workflows.engine.paths import visit_path
from workflows.models import Plan as PlanRow
from workflows.models import Run, Visit
from workflows.statuses import FINAL_STATUSES

#: The label of a fork of the run itself.
FORK = "fork>"
_COLUMNS = ("pk", "status", "plan", "idempotency_key", "parent_run", "parent_visit", "root_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """``label`` is put in front of the keys of the run's effects: "" for the run itself, ``kid>`` for a child run of
    its step ``kid``, ``kid@2>`` for another child of the same visit, ``beside0>`` for a run that was started before."""

    run_id: int
    label: str
    plan: Plan
    is_final: bool
    root_id: int

    @property
    def is_started(self) -> bool:
        """Whether the attack started it itself, as no child run of another and no fork."""
        return self.label == "" or (self.label.startswith("beside") and self.label.count(">") == 1)


def keys_of(scenario: Scenario, key: str) -> dict[str, str]:
    """The idempotency keys of the runs that an attack starts, by label, in the order of their start."""
    return {**{f"beside{number}>": f"{key}-{number}" for number in range(len(scenario.beside))}, "": key}


class Family:
    """The runs of the attack ``key``; what it has found once is only asked for its status again."""

    def __init__(self, scenario: Scenario, key: str) -> None:
        self._labels = {each: label for label, each in keys_of(scenario, key).items()}
        self._key = key
        self._workflow = scenario.definition.plan.name
        self._forks = bool(scenario.fork)
        self._known: dict[int, Member] = {}

    def label_of(self, run_id: int) -> str:
        return self._known[run_id].label

    def members(self) -> list[Member]:
        """The runs that are there, parents before their children."""
        runs = Run.objects.filter(workflow__name=self._workflow, idempotency_key__in=self._labels)
        roots = list(runs.order_by("pk").values(*_COLUMNS))
        forks = Run.objects.filter(fork_of__in=[row["pk"] for row in roots], request_id=self._key)
        if self._forks:
            roots += forks.values(*_COLUMNS)
        below = Run.objects.filter(root_run__in=[row["pk"] for row in roots]).order_by("pk").values(*_COLUMNS)
        rows = [*roots, *below] if any(_has_children(plan_of(row["plan"])) for row in roots) else roots
        for row in rows:
            known = self._known.get(row["pk"]) or self._meet(row)
            self._known[row["pk"]] = replace(known, is_final=row["status"] in FINAL_STATUSES)
        return list(self._known.values())

    def _meet(self, row: dict[str, object]) -> Member:
        label, root_id = self._labels.get(str(row["idempotency_key"])), row["root_run"] or row["pk"]
        if label is None and row["parent_run"] is None:
            label = FORK
        elif label is None:
            parent = self._known[row["parent_run"]]  # type: ignore[index]
            label = f"{parent.label}{self._path_of_child(row, parent)}>"
        return Member(run_id=row["pk"], label=label, plan=plan_of(row["plan"]), is_final=False, root_id=root_id)  # type: ignore[arg-type]

    def _path_of_child(self, row: dict[str, object], parent: Member) -> str:
        visit = Visit.objects.get(run_id=parent.run_id, number=row["parent_visit"])
        path = visit_path(visit.scope, visit.step, visit.round or 1)
        earlier = Run.objects.filter(parent_run=parent.run_id, parent_visit=visit.number, pk__lt=row["pk"]).count()
        return f"{path}@{earlier + 1}" if earlier else path


@cache
def plan_of(plan_id: int) -> Plan:
    row = PlanRow.objects.get(pk=plan_id)
    return compiled(row.hash, row.document)


def _has_children(plan: Plan) -> bool:
    return any(step.kind == "workflow" for step in plan.steps.values())
