"""The step kinds, one file each, and their registry.

A new kind is one file, one line in ``KINDS`` and one row in the conformance suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from workflows.definitions.plan import Plan, StepPlan
from workflows.engine.contract import Missing, StepKind
from workflows.errors import Refusal
from workflows.functions import Registry, registry
from workflows.steps.approval import ApprovalKind
from workflows.steps.assign import AssignKind
from workflows.steps.block import BlockKind
from workflows.steps.condition import ConditionKind
from workflows.steps.end import EndKind
from workflows.steps.external import ExternalKind
from workflows.steps.http import HttpKind
from workflows.steps.map import MapKind
from workflows.steps.parallel import ParallelKind
from workflows.steps.question import QuestionKind
from workflows.steps.shell import ShellKind
from workflows.steps.task import TaskKind
from workflows.steps.wait import WaitKind
from workflows.steps.workflow import WorkflowKind

__all__ = ["KINDS", "missing_functions", "register", "unsupported"]


def register(kinds: Iterable[StepKind]) -> Mapping[str, StepKind]:
    """Kinds by name. Raises ``ValueError`` when two have the same name."""
    by_name: dict[str, StepKind] = {}
    for kind in kinds:
        if kind.name in by_name:
            raise ValueError(f'The step kind "{kind.name}" is registered twice.')
        by_name[kind.name] = kind
    return MappingProxyType(by_name)


KINDS = register(
    (
        ShellKind(),
        TaskKind(),
        HttpKind(),
        AssignKind(),
        ConditionKind(),
        WaitKind(),
        MapKind(),
        ParallelKind(),
        BlockKind(),
        ApprovalKind(),
        QuestionKind(),
        WorkflowKind(),
        ExternalKind(),
        EndKind(),
    )
)


def unsupported(plan: Plan) -> Refusal | None:
    """Why this version cannot run the plan, None if it can: a kind, or a feature of a kind, that comes later."""
    for step in plan.steps.values():
        if step.kind not in KINDS:
            return Refusal("plan.unsupported_kind", step=step.id, kind=step.kind)
        feature = _later_feature(step)
        if feature is not None:
            return Refusal("plan.unsupported_feature", feature=feature, step=step.id)
    return None


def missing_functions(plan: Plan, functions: Registry = registry) -> tuple[Missing, ...]:
    """The task functions that the plan calls and this process does not have."""
    return tuple(
        Missing(what="task function", name=step.options["call"], step=step.id)
        for step in plan.steps.values()
        if step.kind == "task" and step.options["call"] not in functions
    )


def _later_feature(step: StepPlan) -> str | None:
    if step.kind == "end" and step.options.get("requires"):
        return f"receipts that an end requires (step {step.id})"
    return None
