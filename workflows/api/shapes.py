"""Shapes that several nouns share: numbers in addresses, reasons, answers."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Path, Schema
from pydantic import ConfigDict, Field

MOST_ID = 2**63 - 1
#: The number of a run in an address.
RunNumber = Annotated[int, Path(ge=1, le=MOST_ID, description="The number of a run.")]
VisitNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="The number of a visit: 12 for `v12`.")]
WorkflowName = Annotated[str, Path(min_length=1, max_length=63, description="The name of a workflow.")]
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


class Given(Schema):
    """A body: what it does not know is refused, not left out silently."""

    model_config = ConfigDict(extra="forbid", strict=False)


class Document(Schema):
    """A document that may get further members."""

    model_config = ConfigDict(extra="allow")


class Because(Given):
    reason: str = Field("", description="Why; kept in the audit.")


class BecauseAtOnce(Given):
    reason: str = Field(description="Why; needed, and kept in the audit.")


class SentOnce(Because):
    request_id: str | None = Field(
        None, description="Makes a repeated request the same one.", min_length=1, max_length=200
    )


class Warned(Schema):
    """A warning or a problem of a file or of values."""

    severity: str
    code: str
    path: str
    line: int | None
    message: str
    hint: str


class Error(Document):
    code: str | None
    step: str | None
    message: str | None


class PlanName(Schema):
    version: int | None
    hash: str


class RunListed(Document):
    run: int
    workflow: str
    version: int | None
    title: str
    status: str
    causes: list[str] = Field(description="What it waits for.")
    is_held: bool
    error: Error | None
    started_by: str
    origin: str
    parent: int | None
    created_at: str
    started_at: str | None
    ended_at: str | None


class RunList(Schema):
    runs: list[RunListed]
    older: int | None = Field(description="`before` of the next page; null at the end.")
    newer: int | None = Field(description="`after` of the page before this one.")


class RunDocument(Document):
    """The same object as `runs show --json`, and `hidden`: the steps whose values you may not see."""

    run: int
    workflow: str
    plan: PlanName
    status: str
    reasons: list[Any]
    params: Any
    output: Any
    error: Error | None
    started_at: str | None
    ended_at: str | None
    visits: list[dict[str, Any]]
    interrupts: list[dict[str, Any]]
    steering: list[dict[str, Any]]
    children: list[int]
    events_cursor: int
    hidden: list[str]


class RunState(Document):
    """The run as it was once a revision was committed."""

    run: int
    workflow: str
    revision: int
    current_revision: int
    status: str
    visits: list[dict[str, Any]]
    variables: dict[str, Any]
    questions: list[dict[str, Any]]
    events_cursor: int
    hidden: list[str]


class EventOut(Schema):
    number: int
    revision: int
    type: str
    at: str
    actor: str | None
    visit: int | None
    attempt: int | None
    data: Any


class EventsOut(Schema):
    events: list[EventOut]
    cursor: int = Field(description="`after` of the next request.")
    is_over: bool = Field(description="The run has ended, and there is nothing after this.")
