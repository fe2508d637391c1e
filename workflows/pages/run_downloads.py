"""Whole values of a run as files: input, output, logs, events. Never shown by the browser as a page of this site."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from workflows.errors import Refusal
from workflows.pages.guard import page
from workflows.pages.run_context import RunView
from workflows.queries.excerpts import whole_value
from workflows.queries.run_events import all_events
from workflows.queries.visit_page import find_attempt, find_visit

_HIDDEN = "value that you may see: the step is marked as sensitive"


@page()
def params(request: HttpRequest, number: int) -> HttpResponse:
    view = RunView(request, number)
    return _file(number, view.run.params_digest, f"run-{number}-input")


@page()
def output(request: HttpRequest, number: int) -> HttpResponse:
    view = RunView(request, number)
    return _file(number, view.run.output_digest, f"run-{number}-output")


@page()
def visit_output(request: HttpRequest, number: int, visit: int) -> HttpResponse:
    view = RunView(request, number)
    found = find_visit(number, visit)
    _refuse_hidden(view, visit)
    return _file(number, found.output_digest, f"run-{number}-v{visit}-output")


@page()
def attempt_value(request: HttpRequest, number: int, visit: int, attempt: int, what: str) -> HttpResponse:
    """The log, the own output, or the late output of an attempt."""
    view = RunView(request, number)
    found = find_attempt(number, visit, attempt)
    digests = {"log": found.log_digest, "output": found.output_digest, "late": found.late_output_digest}
    if digests.get(what) is None:
        raise Refusal("visit.not_found", run=number, what=f"{what[:20]} of v{visit}.{attempt}")
    _refuse_hidden(view, visit)
    return _file(number, digests[what], f"run-{number}-v{visit}.{attempt}-{what}")


@page()
def events(request: HttpRequest, number: int) -> HttpResponseBase:
    """All events as one JSON list, read and sent piece by piece."""
    view = RunView(request, number)
    response = StreamingHttpResponse(_listed(view), content_type="application/json; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="run-{number}-events.json"'
    return response


def _listed(view: RunView) -> Iterator[str]:
    opening = "["
    for event in all_events(view.run):
        yield f"{opening}\n{json.dumps(event, ensure_ascii=False)}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def _refuse_hidden(view: RunView, visit: int) -> None:
    if view.hides_values_of(visit):
        raise Refusal("visit.not_found", run=view.run.pk, what=_HIDDEN)


def _file(run_id: int, digest: str | None, name: str) -> HttpResponse:
    text, is_text = whole_value(run_id, digest)
    kind, ending = ("text/plain", "txt") if is_text else ("application/json", "json")
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
