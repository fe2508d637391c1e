"""External work: a program reserves it, renews its reservation, and says what came of it (promises EXT)."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema, Status

from workflows.api.callers import Needs, caller_of
from workflows.api.looking import looker
from workflows.api.problems import document
from workflows.api.shapes import Given
from workflows.clock import moment
from workflows.engine.paths import visit_path
from workflows.operations import external as operations
from workflows.operations.external import MOST_NAME, MOST_QUEUES, MOST_WAIT_S, Work
from workflows.queries.external import QueueFacts, queues_of
from workflows.queries.runs import moment_text

router = Router(tags=["external work"])
MOST_TOKEN = 200


class Reserve(Given):
    queues: list[str] = Field(min_length=1, max_length=MOST_QUEUES, description="Where to look for work.")
    worker: str = Field(min_length=1, max_length=MOST_NAME, description="Your name; people see it on the run's page.")
    wait: float = Field(
        0, ge=0, description=f"Seconds to wait until there is work; at most {MOST_WAIT_S:g} are waited."
    )


class Reserved(Schema):
    """Work that is yours until ``lease_until``; ``renew`` moves it. The same ``idempotency_key`` may come again."""

    token: str = Field(description="Proves that the work is yours; nobody else knows it.")
    run: int
    workflow: str
    queue: str
    step: str
    path: str
    visit: int
    attempt: int
    idempotency_key: str
    input: Any
    lease_s: float
    lease_until: str


class Token(Given):
    token: str = Field(min_length=1, max_length=MOST_TOKEN)


class Finish(Token):
    outcome: str = Field("ok", min_length=1, max_length=100, description="`ok`, or a name in `outcomes` of the step.")
    output: Any = Field(None, description="The result; it has to fit the `schema` of the step.")


class Fail(Token):
    message: str = Field("", description="What went wrong, for people.")
    code: str = Field(
        "task_error", min_length=1, max_length=MOST_NAME, description="An error that `retry` can name, or your own."
    )
    retryable: bool = Field(True, description="False: no policy of the step repeats it.")


class Renewed(Schema):
    lease_until: str


class Brought(Schema):
    """``new`` false: the same was said before."""

    run: int
    visit: int
    attempt: int
    outcome: str
    new: bool


class Queue(Schema):
    queue: str
    open: int
    reserved: int
    oldest: str | None = Field(description="Since when the open work that waits longest does.")


class Queues(Schema):
    queues: list[Queue]


@router.get("/queues", auth=Needs("read"), response=Queues)
def list_queues(request: HttpRequest) -> HttpResponse:
    """The queues in which work waits or is being done."""
    return document({"queues": [_queue(one) for one in queues_of(looker(request).user)]})


@router.post("/reserve", auth=Needs("external"), response={200: Reserved, 204: None})
def reserve_work(request: HttpRequest, body: Reserve) -> Any:
    """Get the next work of your queues; 204 when there is none, with `wait` only when the time is over."""
    actor = caller_of(request).actor
    work = operations.reserve(body.queues, worker=body.worker, actor=actor, wait_s=body.wait)
    return Status(204, None) if work is None else _told(work)


@router.post("/renew", auth=Needs("external"), response=Renewed)
def renew_work(request: HttpRequest, body: Token) -> Any:
    """Keep a reservation for another lease. `offer.lost`: stop working on it."""
    until_ms = operations.renew(body.token, actor=caller_of(request).actor)
    return {"lease_until": moment_text(moment(until_ms))}


@router.post("/finish", auth=Needs("external"), response=Brought)
def finish_work(request: HttpRequest, body: Finish) -> Any:
    """Say what came of the work. Sent again it is the same; one that does not fit leaves the work reserved."""
    actor = caller_of(request).actor
    return _brought(operations.finish(body.token, outcome=body.outcome, output=body.output, actor=actor))


@router.post("/fail", auth=Needs("external"), response=Brought)
def fail_work(request: HttpRequest, body: Fail) -> Any:
    """Say that the work failed; `retry` of the step decides whether it is offered again as its next attempt."""
    actor = caller_of(request).actor
    return _brought(
        operations.fail(body.token, actor=actor, message=body.message, code=body.code, retryable=body.retryable)
    )


def _queue(one: QueueFacts) -> dict[str, Any]:
    return {"queue": one.name, "open": one.open, "reserved": one.reserved, "oldest": moment_text(one.oldest)}


def _told(work: Work) -> HttpResponse:
    found = work.reservation
    return document(
        {
            "token": work.token,
            "run": found.run_id,
            "workflow": found.workflow,
            "queue": found.queue,
            "step": found.step,
            "path": visit_path(found.scope, found.step, found.round),
            "visit": found.visit,
            "attempt": found.attempt,
            "idempotency_key": found.dispatch_id,
            "input": work.input,
            "lease_s": found.lease_ms / 1000,
            "lease_until": moment_text(moment(found.lease_until_ms)),
        }
    )


def _brought(finished: Any) -> dict[str, Any]:
    return {name: getattr(finished, name) for name in ("visit", "attempt", "outcome", "new")} | {"run": finished.run_id}
