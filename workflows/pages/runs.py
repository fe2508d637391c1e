"""The run list: what is chosen stands in the address, so that a view can be kept and passed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone

from workflows.models import Workflow
from workflows.models.run_order import RunOrder
from workflows.operations.access import may
from workflows.operations.bulk import ACTIONS
from workflows.pages.causes import CAUSES
from workflows.pages.guard import actor, page
from workflows.pages.run_choices import Chosen, chosen
from workflows.queries.run_list import MOST_COUNTED, MOST_SEARCHED, PAGE, counts_by_status, run_page
from workflows.statuses import RunStatus

_PLACE = ("before", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTab:
    """One status with the number of its runs; ``query`` is the address that shows only them."""

    status: str
    count: str
    query: str
    is_chosen: bool


#: Orders of the list, by what stands in the address.
ORDERS: Mapping[str | None, str] = {
    None: "Newest first",
    "oldest": "Oldest first",
    "-started": "Started last first",
    "started": "Started first first",
    "-ended": "Ended last first",
    "ended": "Ended first first",
    "status": "By status",
    "-status": "By status, Z to A",
    "workflow": "By workflow",
    "-workflow": "By workflow, Z to A",
}


def _written(order: RunOrder) -> str | None:
    """An order as it stands in the address; None for the usual one."""
    if order.by == "number":
        return "oldest" if order.goes_up else None
    return order.by if order.goes_up else f"-{order.by}"


@page()
def run_list(request: HttpRequest) -> HttpResponse:
    wanted = chosen(request.GET)
    found = run_page(wanted.filter, request.user, order=wanted.order, limit=PAGE)
    context = {
        "wanted": wanted,
        "page": found,
        "tabs": _tabs(request, wanted),
        "views": _views(request),
        "causes": CAUSES.items(),
        "workflow_names": Workflow.objects.visible_to(request.user).values_list("name", flat=True).order_by("name"),
        "zone": timezone.get_current_timezone_name(),
        "is_filtered": not wanted.filter.is_empty,
        "newer": _query(request, after=found.newer) if found.newer else "",
        "older": _query(request, before=found.older) if found.older else "",
        "turned": _query(request, sort=_written(wanted.order.turned)),
        "order_words": ORDERS[_written(wanted.order)],
        "orders": ORDERS.items(),
        "sort": _written(wanted.order) or "",
        "searched": MOST_SEARCHED,
        "every_status": _query(request, status=None),
        "bulk_actions": [name for name, what in ACTIONS.items() if may(actor(request), what.permission)],
        "bulk_kept": list(_kept(request.GET)),
    }
    return render(request, "runs/list.html", context)


def _tabs(request: HttpRequest, wanted: Chosen) -> list[StatusTab]:
    counts = counts_by_status(wanted.filter, request.user)
    only = wanted.filter.statuses
    return [
        StatusTab(
            status=status,
            count="1\u202f000+" if count >= MOST_COUNTED else str(count),
            query=_query(request, status=status),
            is_chosen=status in only,
        )
        for status, count in counts.items()
        if count or status in only
    ]


def _views(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """Name, address and whether it is what is looked at, of the views that people come for."""
    today = timezone.localdate().isoformat()
    views = {
        "All": {},
        "Live": {"status": "live"},
        "Waiting for people": {"waits_for": "people"},
        "Needs an operator": {"status": RunStatus.BLOCKED.value},
        "Stalled": {"stalled": "1"},
        "Failed today": {"status": RunStatus.FAILED.value, "ended_from": today},
        "Started by me": {"by": request.user.get_username()},
    }
    here = _without_place(request.GET)
    found = []
    for name, choice in views.items():
        query = QueryDict(mutable=True)
        query.update(choice)
        found.append((name, query.urlencode(), here == query.urlencode()))
    return found


def _kept(given: QueryDict) -> Iterator[tuple[str, str]]:
    """The choices of the list, for the form of bulk actions."""
    for name, values in given.lists():
        if name not in (*_PLACE, "sort", "run", "action", "scope"):
            yield from ((name, value) for value in values if value)


def _without_place(given: QueryDict) -> str:
    left = QueryDict(mutable=True)
    for name, values in given.lists():
        if name not in (*_PLACE, "sort") and any(values):
            left.setlist(name, [value for value in values if value])
    return left.urlencode()


def _query(request: HttpRequest, **changes: object) -> str:
    """The address of this list with other choices; the place in the list begins anew."""
    query = request.GET.copy()
    for name in (*_PLACE, *changes):
        query.pop(name, None)
    for name, value in changes.items():
        if value is not None:
            query[name] = str(value)
    for name in [name for name, value in query.items() if not value]:
        query.pop(name)
    return query.urlencode()
