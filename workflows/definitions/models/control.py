"""Steps that decide, ask people, wait or end; they have no effect of their own."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workflows.definitions.models.fields import Form
from workflows.definitions.models.step_base import StepModel, exactly_one
from workflows.definitions.models.values import (
    AnyValue,
    Condition,
    Duration,
    FixedDuration,
    FixedText,
    Mapping,
    People,
    StrictModel,
    Text,
    by_type,
    named,
    one_of,
    tagged,
    whole,
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

    model_config = exactly_one("if", "cases")
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

    model_config = exactly_one("for", "until", "signal")
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
