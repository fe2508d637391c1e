"""The top level of a workflow file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workflows.definitions.models.fields import Parameters
from workflows.definitions.models.steps import Steps
from workflows.definitions.models.values import (
    AnyValue,
    Budget,
    Duration,
    FixedText,
    FormatNumber,
    JsonSchema,
    Mapping,
    Names,
    Retry,
    StrictModel,
    Text,
    named,
    one_of,
    whole,
)


class Defaults(StrictModel):
    """What applies to every step that does not say otherwise."""

    timeout: Duration = Field(default=None, description="Per attempt. Default: 10m.")
    retry: Retry = Field(default=None, description="For shell, task, http, llm and agent. Default: no retry.")
    model: FixedText = Field(default=None, description="Model alias. Default: the server's.")
    agent: FixedText = Field(default=None, description="Agent profile. Default: the server's.")
    env: Mapping = Field(default=None, description="Variables of every shell step. May hold expressions and secrets.")


class Concurrency(StrictModel):
    """Slots that runs with the same key share."""

    key: Text = Field(description="Runs with the same key share the slots. May hold expressions.")
    max: Annotated[Any, whole(1)] = Field(default=None, description="Runs at the same time. Default: 1.")
    when_full: Annotated[Any, one_of("queue", "reject", "cancel_oldest")] = Field(
        default=None, description="What happens to a run that finds no free slot. Default: queue."
    )


class ScheduleEntry(StrictModel):
    """One time table."""

    cron: Text = Field(description="Five fields: minute hour day month weekday.")
    timezone: Text = Field(default=None, description="Name of a time zone. Default: UTC.")
    params: Mapping = Field(default=None, description="Parameters of the run. Default: {}.")
    if_running: Annotated[Any, one_of("skip", "queue", "cancel")] = Field(
        default=None,
        description="While an earlier run of the schedule goes on: skip, queue or cancel it. Default: skip.",
    )
    catch_up: Annotated[Any, one_of("none", "last", "all")] = Field(
        default=None, description="After a downtime: none, the last or all missed times. Default: last."
    )


class BlockModel(StrictModel):
    """A group of steps to reuse in the file."""

    params: Parameters = Field(default=None, description="Its own parameters. Default: {}.")
    vars: Names = Field(default=None, description="Its own variables. Default: {}.")
    steps: Steps = Field(description="Its steps.")
    output: AnyValue = Field(
        default=None, description="Its result. May hold expressions. Default: output of the last step that ran."
    )


class WorkflowModel(StrictModel):
    """A workflow file."""

    format: FormatNumber = Field(description="Version of this format. Always 1.")
    name: Annotated[Any, named("workflow")] = Field(description="Unique name of the workflow.")
    title: FixedText = Field(default=None, description="Heading in the browser. Default: the name.")
    description: FixedText = Field(default=None, description="Markdown shown before starting a run.")
    owner: FixedText = Field(default=None, description="Team or person to ask.")
    tags: list[Any] = Field(default=None, description="For the list of workflows. Default: [].")
    params: Parameters = Field(default=None, description="What a run needs; also the start form. Default: {}.")
    vars: Names = Field(default=None, description="Variables with their initial values. Default: {}.")
    secrets: list[Annotated[str, named("secret")]] = Field(
        default=None, description="Names of the secrets the steps refer to. Default: []."
    )
    defaults: Defaults = Field(
        default=None, description="timeout, retry, model, agent, env for all steps. Default: {}."
    )
    budget: Budget = Field(
        default=None,
        description="Ceilings for the whole run: cost_usd, tokens, llm_calls, visits, time, failures. Default: none.",
    )
    concurrency: Concurrency = Field(
        default=None, description="{key, max, when_full: queue | reject | cancel_oldest}. Default: none."
    )
    schedule: list[ScheduleEntry] = Field(
        default=None, description="[{cron, timezone, params, if_running, catch_up}]. Default: []."
    )
    steps: Steps = Field(description="The work, in reading order. The first step starts.")
    on_failure: Steps = Field(
        default=None, description="Runs once when the run is about to fail. Cannot save it. Default: []."
    )
    finally_: Steps = Field(
        default=None, alias="finally", description="Runs once at the end, whatever happened. Default: []."
    )
    blocks: dict[Annotated[str, named("block")], BlockModel] = Field(
        default=None, description="Reusable groups of steps: {name: {params, vars, steps, output}}. Default: {}."
    )
    output: AnyValue = Field(
        default=None, description="Result of a succeeded run. May hold expressions. Default: null."
    )
    returns: JsonSchema = Field(default=None, description="JSON Schema of that result.")
