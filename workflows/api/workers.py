"""Workers: who drives runs, what waits for them, and who stands in line."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from workflows.api.callers import Needs
from workflows.api.looking import looker
from workflows.api.problems import document
from workflows.api.shapes import Document
from workflows.queries.workers import workers_document, workers_page

router = Router(tags=["workers"])
WORKERS = "view_worker"


class WorkerShown(Document):
    """A process that drives runs. ``hidden`` counts driven runs that you do not see."""

    name: str
    kind: str
    state: str = Field(description="at work, stopping, stopped, silent, or deaf: it lives and looks for no work.")
    heartbeat_at: str
    looked_at: str | None
    runs: list[int]
    hidden: int


class QueueShown(Document):
    """Runs of a workflow that could go on and are driven by nobody."""

    workflow: str
    waiting: int
    since: str


class LineShown(Document):
    """A concurrency key or a limit: who holds a place, and who stands in line."""

    kind: str
    name: str
    max: int
    holders: list[int]
    all_waiting: int


class WorkersShown(Schema):
    listening: int = Field(description="Workers that take what becomes runnable now.")
    workers: list[WorkerShown]
    queues: list[QueueShown]
    lines: list[LineShown]


@router.get("", auth=Needs("read"), response=WorkersShown)
def list_workers(request: HttpRequest) -> Any:
    """Workers with their signs of life, the queues, and the lines for places."""
    return document(workers_document(workers_page(looker(request, WORKERS).user)))
