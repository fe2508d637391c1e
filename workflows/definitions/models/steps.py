"""Steps that hold or call other steps, and the table of all kinds."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Field
from typing_extensions import TypeAliasType

from workflows.definitions.models.control import (
    ApprovalStep,
    AssignStep,
    ConditionStep,
    EndStep,
    QuestionStep,
    WaitStep,
)
from workflows.definitions.models.effects import (
    AgentStep,
    ExternalStep,
    HttpStep,
    LanggraphStep,
    LlmStep,
    ShellStep,
    TaskStep,
    VerifyStep,
)
from workflows.definitions.models.step_base import StepModel, exactly_one
from workflows.definitions.models.values import (
    TAG,
    AnyValue,
    Budget,
    Duration,
    FixedText,
    Flag,
    Join,
    Mapping,
    Names,
    Retry,
    named,
    tagged,
    whole,
)

#: Most steps that one file may hold, all bodies included.
MAX_STEPS = 500


class MapStep(StepModel):
    """A body for every item of a list."""

    model_config = exactly_one("do", "use")
    over: AnyValue = Field(description="Expression that gives a list.")
    as_: Annotated[Any, named("item")] = Field(
        default=None, alias="as", description="Name of the item in expressions. `index` is always there. Default: item."
    )
    key: AnyValue = Field(
        default=None, description="Stable key of an item, used in traces and idempotency keys. Default: the index."
    )
    concurrency: Annotated[Any, whole(1, 64)] = Field(
        default=None, description="Items in progress at once. Default: 4."
    )
    max_items: Annotated[Any, whole(1, 10_000)] = Field(
        default=None, description="Longer lists fail before any item starts. Default: 1000."
    )
    vars: Names = Field(
        default=None, description="Variables of one item, separate for every item. May hold expressions. Default: {}."
    )
    do: Steps = Field(default=None, description="Steps for one item.")
    use: FixedText = Field(default=None, description="A block instead of do.")
    with_: Mapping = Field(
        default=None, alias="with", description="Parameters of that block. May hold expressions. Default: {}."
    )
    collect: AnyValue = Field(
        default=None, description="Result of one item. May be an expression. Default: output of the last step that ran."
    )
    join: Join = Field(default=None, description='all, any, settled, or {at_least: 3 | "80%"}. Default: all.')
    budget: Budget = Field(default=None, description="Budget for all items together.")
    timeout: Duration = Field(default=None, description="For the whole map. Outcome timed_out. May be an expression.")


class ParallelStep(StepModel):
    """Fixed branches side by side."""

    branches: Annotated[dict[Annotated[str, named("branch")], Steps], Field(min_length=1)] = Field(
        description="Branch name: list of steps."
    )
    join: Join = Field(default=None, description="As for map. Default: all.")
    timeout: Duration = Field(default=None, description="For all branches together. May be an expression.")


class BlockStep(StepModel):
    """Steps defined once in this file."""

    use: FixedText = Field(description="Name of a block in this file.")
    with_: Mapping = Field(default=None, alias="with", description="Its parameters. May hold expressions. Default: {}.")
    timeout: Duration = Field(default=None, description="For the whole block. May be an expression.")


class WorkflowStep(StepModel):
    """Another workflow."""

    timeout: Duration = Field(default=None, description="For the child. Outcome timed_out. May be an expression.")
    retry: Retry = Field(
        default=None,
        description="A number of attempts, one policy, or a list of policies (first match wins); each is a new child. "
        "Default: no retry.",
    )
    ref: FixedText = Field(description="Name of another workflow. Its definition is frozen with this run.")
    with_: Mapping = Field(default=None, alias="with", description="Its parameters. May hold expressions. Default: {}.")
    detach: Flag = Field(default=None, description="Only start it; output is {run_id}. Default: false.")


STEP_MODELS: dict[str, type[StepModel]] = {
    "shell": ShellStep,
    "task": TaskStep,
    "http": HttpStep,
    "llm": LlmStep,
    "agent": AgentStep,
    "verify": VerifyStep,
    "assign": AssignStep,
    "condition": ConditionStep,
    "approval": ApprovalStep,
    "question": QuestionStep,
    "wait": WaitStep,
    "map": MapStep,
    "parallel": ParallelStep,
    "block": BlockStep,
    "workflow": WorkflowStep,
    "external": ExternalStep,
    "langgraph": LanggraphStep,
    "end": EndStep,
}


def _kind_tag(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else None
    return TAG + kind if isinstance(kind, str) and kind in STEP_MODELS else None


if TYPE_CHECKING:
    Steps = list[Any]
else:
    _models = [Annotated[model, tagged(kind)] for kind, model in STEP_MODELS.items()]
    AnyStep = Annotated[reduce(or_, _models), Discriminator(_kind_tag)]
    Steps = TypeAliasType("Steps", Annotated[list[AnyStep], Field(min_length=1, max_length=MAX_STEPS)])
    for _model in STEP_MODELS.values():
        _model.model_rebuild()
