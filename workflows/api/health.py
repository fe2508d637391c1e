"""Health: whether this process lives, and whether it can do its work. For load balancers; nobody logs in."""

from __future__ import annotations

import logging

import django.db
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema

from workflows.api.problems import ProblemBody, document
from workflows.errors import Refusal
from workflows.stores.schema_state import SchemaState, schema_state

logger = logging.getLogger(__name__)
router = Router(tags=["health"])


class Alive(Schema):
    status: str


@router.get("/live", auth=None, response=Alive)
def live(request: HttpRequest) -> HttpResponse:
    """The process answers. The database is not asked."""
    return document({"status": "ok"})


@router.get("/ready", auth=None, response={200: Alive, 503: ProblemBody})
def ready(request: HttpRequest) -> HttpResponse:
    """The database can be reached and fits this code; otherwise 503 with what is missing."""
    try:
        report = schema_state()
    except django.db.Error as error:
        # who asks may be anybody: where the database is, and what it said, is in the log
        logger.warning("The database does not answer: %s", error)
        raise Refusal("store.unavailable", detail="it does not answer") from None
    if report.state not in (SchemaState.CURRENT, SchemaState.NEWER):
        raise report.as_refusal()
    return document({"status": "ok"})
