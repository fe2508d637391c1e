"""What the models of all kinds of steps share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from workflows.definitions.models.values import (
    Checked,
    Condition,
    Duration,
    Flag,
    Limit,
    Retry,
    StrictModel,
    Text,
    by_type,
    holds_expression,
    named,
    one_of,
    tagged,
    whole,
    wrong,
)


def _target(value: object) -> object:
    if holds_expression(value):
        raise wrong("fixed_text")
    if not isinstance(value, str):
        raise wrong("target")
    return value


def _script(value: object) -> object:
    if not isinstance(value, str):
        raise wrong("text")
    return value


def exactly_one(*keys: str) -> ConfigDict:
    """A step model of which one of ``keys`` has to be there, for its JSON Schema."""
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in keys]})


Target = Annotated[
    Any,
    Checked(
        _target,
        {
            "type": "string",
            "pattern": "^[a-z][a-z0-9_]{0,62}$",
            "description": "A step of the same list, or done, fail, continue.",
        },
    ),
]
Next = Annotated[
    Annotated[Target, tagged("target")] | Annotated[dict[str, Target], tagged("routes")],
    by_type((dict, "routes"), otherwise="target"),
]
Script = Annotated[Any, Checked(_script, {"type": "string"})]


class StepModel(StrictModel):
    """Keys of every step."""

    id: Annotated[Any, named("step")] = Field(
        description="Name used in routes and expressions. Unique in the whole file."
    )
    kind: Any = Field(description="What the step does. Fixes the other keys and the outcomes.")
    title: Text = Field(
        default=None, description="Label on the run page. May hold expressions. Default: the id, spelled out."
    )
    note: Text = Field(
        default=None, description="For readers of the file. Kept in the frozen definition, never evaluated."
    )
    only_if: Condition = Field(
        default=None,
        description="False: the step is skipped (outcome skipped, output null) and the flow goes on. May be an "
        "expression. Default: true.",
    )
    next: Next = Field(default=None, description="A target for the main outcome, or a mapping outcome: target.")
    max_visits: Annotated[Any, whole(1, 1000)] = Field(
        default=None,
        description="How often the step may be entered; then the outcome is exhausted. Every loop needs one. "
        "Default: no limit.",
    )
    sensitive: Flag = Field(
        default=None,
        description="Hide output and logs from people without the view-sensitive permission. Default: false.",
    )


class EffectModel(StepModel):
    """Keys of the kinds that have an effect in the outside world."""

    access: Annotated[Any, one_of("read", "write")] = Field(
        default=None, description="What a crash leaves behind. Default: by kind."
    )
    workspace: Annotated[Any, one_of("none", "read", "shared", "write")] = Field(
        default=None, description="How the step uses the run's workspace. Default: by kind."
    )
    idempotent: Flag = Field(
        default=None, description="The effect may be dispatched again with the same idempotency key. Default: false."
    )
    timeout: Duration = Field(
        default=None,
        description="Per attempt. Outcome timed_out. May be an expression. Default: defaults.timeout, else 10m.",
    )


class RetriedModel(EffectModel):
    """Keys of the effects that can be retried."""

    retry: Retry = Field(
        default=None,
        description="A number of attempts, one policy, or a list of policies (first match wins). Default: no retry.",
    )


class LimitedModel(RetriedModel):
    """Keys of the effects that can share slots and rates."""

    limit: Limit = Field(
        default=None, description="Share a slot pool or a rate with other steps: {group, max} or {group, rate: 60/1m}."
    )
