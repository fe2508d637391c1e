"""Steps with an effect in the outside world."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workflows.definitions.models.step_base import EffectModel, LimitedModel, RetriedModel, Script, exactly_one
from workflows.definitions.models.values import (
    AnyValue,
    Duration,
    FixedDuration,
    FixedText,
    JsonSchema,
    Limit,
    Mapping,
    NamedCodes,
    SecretReference,
    StrictModel,
    Text,
    named,
    number,
    one_of,
    whole,
)


class ShellStep(LimitedModel):
    """Runs a script or program."""

    model_config = exactly_one("run", "argv")
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
