"""Home: what waits for the person, and how the runs stand."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from workflows.pages.guard import LOOK, page
from workflows.queries.home import Home, home_of
from workflows.queries.run_list import MOST_COUNTED


@page(needs=None)
def home(request: HttpRequest) -> HttpResponse:
    """Home of whoever is logged in. Who may look at nothing yet is told so."""
    if not request.user.has_perm(LOOK):
        return render(request, "home.html", {"home": None})
    return render(request, "home.html", _context(request))


@page()
def home_part(request: HttpRequest) -> HttpResponse:
    """The changing part of home."""
    return render(request, "parts/home.html", _context(request))


def _context(request: HttpRequest) -> dict[str, object]:
    found: Home = home_of(request.user)
    counts = [
        (status, "1\u202f000+" if count >= MOST_COUNTED else str(count))
        for status, count in found.counts.items()
        if count
    ]
    return {"home": found, "counts": counts, "view": "mine", "my_inbox": found.inbox}
