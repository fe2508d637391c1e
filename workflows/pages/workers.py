"""Workers: who drives runs, with signs of life, what waits for them, and who stands in line for places."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from workflows.pages.guard import page
from workflows.queries.workers import workers_page

LOOK_AT_WORKERS = "workflows.view_worker"


@page(needs=LOOK_AT_WORKERS)
def worker_list(request: HttpRequest) -> HttpResponse:
    return render(request, "workers/list.html", {"found": workers_page(request.user)})


@page(needs=LOOK_AT_WORKERS)
def worker_part(request: HttpRequest) -> HttpResponse:
    """The changing part."""
    return render(request, "workers/part.html", {"found": workers_page(request.user)})
