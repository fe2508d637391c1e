"""The registry of kinds: what this version runs, and what it refuses at the start of a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.steps.support import shell, step_of, task
from workflows.definitions.plan import Body, Budget, Plan, StepPlan
from workflows.engine.contract import EffectKind, Missing, StepKind
from workflows.expressions import compile_value
from workflows.functions import Registry
from workflows.steps import KINDS, missing_functions, register, unsupported
from workflows.steps.assign import AssignKind


def plan_of(*steps: StepPlan) -> Plan:
    return Plan(
        name="demo",
        title="Demo",
        document={},
        params=(),
        secrets=(),
        budget=Budget(),
        main=Body(name="main", kind="section", steps=steps),
        on_failure=None,
        closing=None,
        blocks={},
        steps={step.id: step for step in steps},
        output=None,
    )


def test_every_kind_is_registered_under_its_name_and_some_have_effects() -> None:
    for name, kind in KINDS.items():
        assert kind.name == name
        assert isinstance(kind, StepKind)
    assert {"shell", "task", "assign", "condition", "wait", "end"} <= set(KINDS)
    assert {"shell", "task"} <= {name for name, kind in KINDS.items() if isinstance(kind, EffectKind)}


def test_two_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r'The step kind "assign" is registered twice\.'):
        register((AssignKind(), AssignKind()))


def test_a_plan_of_these_kinds_is_supported() -> None:
    wait = step_of("wait", {"for": compile_value("5m"), "signal": None}, id="pause")
    rated = shell("true", id="rated", limit={"group": "builders", "starts": 60, "per_ms": 60_000})

    assert unsupported(plan_of(shell("true"), wait, rated)) is None


@pytest.mark.parametrize(
    ("step", "code", "message"),
    [
        (
            step_of("later", {}, id="each"),
            "plan.unsupported_kind",
            "Step each is of kind later, which this version of Waypost cannot run yet.",
        ),
        (
            step_of("end", {"status": "succeeded", "requires": ("check",)}, id="finish"),
            "plan.unsupported_feature",
            "The workflow uses receipts that an end requires (step finish), "
            "which this version of Waypost cannot run yet.",
        ),
    ],
)
def test_what_comes_later_is_refused_by_name(step: Any, code: str, message: str) -> None:
    refusal = unsupported(plan_of(step))

    assert refusal is not None
    assert (refusal.code, refusal.message) == (code, message)


def test_functions_that_are_not_here_are_named() -> None:
    assert missing_functions(plan_of(shell("true"), task("chat.post", id="tell")), Registry()) == (
        Missing(what="task function", name="chat.post", step="tell"),
    )
