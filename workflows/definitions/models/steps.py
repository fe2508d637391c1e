"""The eighteen kinds of steps, each with the keys that it may have."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Discriminator, Field
from typing_extensions import TypeAliasType

from workflows.definitions.models.fields import Form
from workflows.definitions.models.values import (
    TAG,
    AnyValue,
    Budget,
    Checked,
    Condition,
    Duration,
    FixedDuration,
    FixedText,
    Flag,
    Join,
    JsonSchema,
    Limit,
    Mapping,
    NamedCodes,
    Names,
    People,
    Retry,
    SecretReference,
    StrictModel,
    Text,
    by_type,
    holds_expression,
    named,
    number,
    one_of,
    tagged,
    whole,
    wrong,
)

#: Most steps that one file may hold, all bodies included.
MAX_STEPS = 500


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


def _exactly_one(*keys: str) -> ConfigDict:
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


class ShellStep(LimitedModel):
    """Runs a script or program."""

    model_config = _exactly_one("run", "argv")
    run: Script = Field(
        default=None, description="Script for /bin/sh -eu. Never templated: pass values through env or stdin."
    )
    argv: Annotated[list[Any], Field(min_length=1)] = Field(
        default=None, description="Program and arguments, started without a shell. Items may be expressions."
    )
    env: Mapping = Field(
        default=None,
        description="Variables for the process. Non-strings become JSON text, null leaves the variable unset. May hold "
        "expressions and secrets. Default: {}.",
    )
    stdin: AnyValue = Field(
        default=None, description="Text (or JSON text of a value) for standard input. May be an expression."
    )
    cwd: Text = Field(
        default=None, description="Folder below the workspace. May hold expressions. Default: the run's workspace."
    )
    parse: Annotated[Any, one_of("text", "json", "lines", "none")] = Field(
        default=None, description="How standard output becomes the step's output. Default: text."
    )
    schema_: JsonSchema = Field(
        default=None,
        alias="schema",
        description="JSON Schema of the output; a mismatch fails the attempt with invalid_output.",
    )
    exits: NamedCodes = Field(
        default=None,
        description="Name expected exit codes: {no_change: [10]}. Each name becomes an outcome. Default: {}.",
    )


class TaskStep(LimitedModel):
    """Calls a registered Python function."""

    call: FixedText = Field(description="Registered Python function, e.g. billing.create_invoice.")
    with_: Mapping = Field(default=None, alias="with", description="Arguments. May hold expressions. Default: {}.")
    schema_: JsonSchema = Field(default=None, alias="schema", description="JSON Schema of the return value.")


class HttpStep(LimitedModel):
    """One HTTP request."""

    method: Annotated[Any, one_of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")] = Field(
        default=None, description="Request method. Default: GET."
    )
    url: Text = Field(description="Absolute URL. Expressions in it are URL-encoded.")
    idempotency_header: FixedText = Field(
        default=None,
        description="Header that carries the dispatch id (not for GET and HEAD). Default: Idempotency-Key.",
    )
    query: Mapping = Field(default=None, description="Query parameters. May hold expressions. Default: {}.")
    headers: Mapping = Field(
        default=None, description="Request headers. May hold expressions and secrets. Default: {}."
    )
    auth: SecretReference = Field(default=None, description="{ secret: NAME }, sent as a bearer token.")
    json_: AnyValue = Field(default=None, alias="json", description="JSON body. May hold expressions.")
    body: Text = Field(default=None, description="Text body. May hold expressions.")
    statuses: NamedCodes = Field(
        default=None, description="Name expected status codes: {not_found: [404]}. Others >= 400 fail. Default: {}."
    )
    parse: Annotated[Any, one_of("json", "text", "none")] = Field(
        default=None, description="How the response body becomes the output. Default: json."
    )
    schema_: JsonSchema = Field(default=None, alias="schema", description="JSON Schema of the output.")


class LlmStep(LimitedModel):
    """One call of a language model."""

    model: FixedText = Field(
        default=None, description="Model alias from the settings (fast, balanced, deep). Default: defaults.model."
    )
    system: Text = Field(default=None, description="System instructions. May hold expressions.")
    prompt: Text = Field(description="Instructions. May hold expressions. Put untrusted data in context instead.")
    context: Mapping = Field(
        default=None,
        description="Data attached as fenced JSON, separate from the instructions. May hold expressions. Default: {}.",
    )
    schema_: JsonSchema = Field(
        default=None, alias="schema", description="JSON Schema of the answer. Without it the output is text."
    )
    max_tokens: Annotated[Any, whole(1, 200_000)] = Field(
        default=None, description="Limit of one answer. Default: 1024."
    )
    temperature: Annotated[Any, number("a number", lambda value: True)] = Field(
        default=None, description="Sampling temperature. Default: 0."
    )


class AgentStep(LimitedModel):
    """An agent with tools in the run's workspace."""

    agent: FixedText = Field(
        default=None, description="Agent profile from the settings (provider, tools). Default: defaults.agent."
    )
    prompt: Text = Field(description="Instructions. May hold expressions.")
    context: Mapping = Field(
        default=None, description="Data attached to the instructions. May hold expressions. Default: {}."
    )
    session: Annotated[Any, one_of("keep", "fresh")] = Field(
        default=None, description="Whether a later visit continues the same session. Default: keep."
    )
    schema_: JsonSchema = Field(default=None, alias="schema", description="JSON Schema of the final answer.")


class Check(StrictModel):
    """One command that must pass."""

    name: Text = Field(description="What is checked.")
    run: Script = Field(description="Script for /bin/sh -eu. Never templated.")
    env: Mapping = Field(
        default=None, description="Variables for the process. May hold expressions and secrets. Default: {}."
    )
    timeout: Duration = Field(default=None, description="Default: the step's timeout.")


class VerifyStep(EffectModel):
    """Runs checks and leaves a receipt."""

    limit: Limit = Field(
        default=None, description="Share a slot pool or a rate with other steps: {group, max} or {group, rate: 60/1m}."
    )
    checks: Annotated[list[Check], Field(min_length=1)] = Field(
        description="Commands that must all pass: [{name, run, env, timeout}]."
    )
    subject: Text = Field(
        default=None,
        description="What the receipt is bound to: workspace (default), or an expression whose value is hashed.",
    )


class AssignStep(StepModel):
    """Sets variables."""

    set: Mapping = Field(
        description="New values of declared variables. All are computed before any is stored. May hold expressions."
    )


class Case(StrictModel):
    """One case of a condition."""

    when: Condition = Field(description="An expression that is true or false.")
    outcome: Annotated[Any, named("outcome")] = Field(description="Outcome when it is true.")


class ConditionStep(StepModel):
    """Chooses a route."""

    model_config = _exactly_one("if", "cases")
    if_: Condition = Field(default=None, alias="if", description="Outcome then or else. May be an expression.")
    cases: Annotated[list[Case], Field(min_length=1)] = Field(
        default=None, description="[{when, outcome}]; the first true one wins, otherwise else."
    )


class PeopleModel(StepModel):
    """Keys of the kinds that ask people."""

    timeout: Duration = Field(
        default=None, description="How long to wait for people. Outcome expired. May be an expression. Default: 7d."
    )
    remind: FixedDuration = Field(default=None, description="Send a reminder at this interval. Default: never.")
    ask: Text = Field(description="The question. May hold expressions.")
    show: Mapping = Field(default=None, description="Values shown next to it. May hold expressions. Default: {}.")


class ApprovalStep(PeopleModel):
    """Asks for a decision."""

    by: People = Field(default=None, description="{users: […], groups: […]}. Default: anyone who may see the run.")
    quorum: Annotated[Any, whole(1, 20)] = Field(
        default=None, description="How many approvals are needed; one rejection rejects. Default: 1."
    )
    not_by: list[Any] = Field(default=None, description="People who may not decide, e.g. [requester]. Default: [].")
    form: Form = Field(default=None, description="Extra fields the approver fills in. Default: {}.")


_Choice = Annotated[str, named("choice")]
Choices = Annotated[
    Annotated[list[_Choice], Field(min_length=2), tagged("names")]
    | Annotated[dict[_Choice, FixedText], Field(min_length=2), tagged("labels")],
    by_type((dict, "labels"), otherwise="names"),
]


class QuestionStep(PeopleModel):
    """Asks for data or a choice."""

    to: People = Field(default=None, description="{users: […], groups: […]}. Default: anyone who may see the run.")
    choices: Choices = Field(default=None, description="Buttons. Each name becomes an outcome (instead of answered).")
    form: Form = Field(default=None, description="Fields; same keys as params. Default: one text field named answer.")


class WaitStep(StepModel):
    """Timer, point in time or signal."""

    model_config = _exactly_one("for", "until", "signal")
    for_: Duration = Field(default=None, alias="for", description="Timer. May be an expression.")
    until: AnyValue = Field(
        default=None,
        description="Point in time: RFC 3339 text or a CEL timestamp. Past times do not wait. May be an expression.",
    )
    signal: Text = Field(default=None, description="Name of a signal sent to this run. May hold expressions.")
    match: Condition = Field(
        default=None, description="Accept only signals for which this holds (the payload is `signal`). Default: true."
    )
    timeout: Duration = Field(default=None, description="Only with signal. Outcome expired. Default: 7d.")


class MapStep(StepModel):
    """A body for every item of a list."""

    model_config = _exactly_one("do", "use")
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


class ExternalStep(LimitedModel):
    """Work reserved and finished by another program."""

    queue: Annotated[Any, named("queue")] = Field(description="Where programs look for work.")
    input: AnyValue = Field(default=None, description="What the program gets. May hold expressions.")
    outcomes: list[Annotated[str, named("outcome")]] = Field(
        default=None, description="Further outcomes the program may finish with; must be routed. Default: []."
    )
    schema_: JsonSchema = Field(default=None, alias="schema", description="JSON Schema of the result.")
    lease: FixedDuration = Field(
        default=None, description="A reservation that is not renewed within it is offered again. Default: 1m."
    )
    timeout: Duration = Field(default=None, description="From the first reservation. May be an expression.")


class LanggraphStep(RetriedModel):
    """Runs a registered LangGraph graph."""

    graph: FixedText = Field(description="Name under which the graph is registered.")
    input: Mapping = Field(default=None, description="Input state. May hold expressions. Default: {}.")
    collect: AnyValue = Field(
        default=None, description="Result; `state` is the final state. May be an expression. Default: the final state."
    )
    timeout: Duration = Field(default=None, description="Outcome timed_out. May be an expression.")


class EndStep(StepModel):
    """Ends the run (or the body)."""

    status: Annotated[Any, one_of("succeeded", "failed")] = Field(
        description="Final status of the run (or of the body)."
    )
    reason: Text = Field(default=None, description="Shown on the run page. May hold expressions.")
    output: AnyValue = Field(
        default=None, description="Replaces the output. May hold expressions. Default: the workflow's output."
    )
    requires: list[Any] = Field(
        default=None, description="Verify steps whose receipt must still be valid; otherwise failed. Default: []."
    )


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
