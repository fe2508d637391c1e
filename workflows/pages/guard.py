"""What stands before every view: methods, login, permission, and refusals that become pages instead of traces.

``@page(...)`` makes a view. A refused operation is a page (a fragment for htmx) with its sentence, its hint and its
HTTP status. What a person may not see does not exist for them: 404, never 403.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import django.db
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from workflows.errors import Refusal
from workflows.models import Run, Workflow
from workflows.operations.access import require, words_of
from workflows.operations.people import Actor, user_actor
from workflows.queries.seen import seen_run, seen_workflow
from workflows.stores.explaining import explained
from workflows.stores.failures import classify

logger = logging.getLogger(__name__)

#: Who may look at runs at all.
LOOK = "workflows.view_run"
GET = ("GET", "HEAD")
POST = ("POST",)
FORM = ("GET", "HEAD", "POST")


class View(Protocol):
    def __call__(self, request: HttpRequest, /, *args: Any, **kwargs: Any) -> HttpResponseBase: ...


def page(
    *, methods: tuple[str, ...] = GET, needs: str | None = LOOK, is_public: bool = False
) -> Callable[[View], View]:
    """Make a view. ``needs`` is the permission without which the page is refused with 403 (None: any person who is
    logged in); ``is_public`` pages ask for no login."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def guarded(request: HttpRequest, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response = _answer(view, request, args, kwargs, methods, None if is_public else needs, is_public)
            return _not_stored(request, response)

        # what the table of permissions in the tests reads
        guarded.guard = {"methods": methods, "needs": needs, "is_public": is_public}  # type: ignore[attr-defined]
        return guarded

    return decorate


def _answer(
    view: View,
    request: HttpRequest,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    methods: tuple[str, ...],
    needs: str | None,
    is_public: bool,
) -> HttpResponseBase:
    if not is_public and not request.user.is_authenticated:
        return _ask_to_log_in(request)
    if request.method not in methods:
        return _not_this_way(request, methods)
    try:
        if needs is not None:
            _require(request, needs)
        _refuse_nul(request)
        return view(request, *args, **kwargs)
    except Refusal as refusal:
        return refused(request, refusal)
    except django.db.Error as error:
        refusal_of_store = classify(error).as_refusal()
        if refusal_of_store is None:
            raise
        logger.warning("%s %s: %s", request.method, request.path, refusal_of_store.message)
        return refused(request, explained(refusal_of_store))


def _not_this_way(request: HttpRequest, methods: tuple[str, ...]) -> HttpResponse:
    """Whoever looks at an address that only takes what a form sends, on a reload or from a bookmark, gets a page."""
    response = HttpResponseNotAllowed(methods)
    if request.method == "GET" and not is_fragment(request):
        response.content = render(request, "form_only.html").content
    return response


def _refuse_nul(request: HttpRequest) -> None:
    """No text of the database holds NUL, and PostgreSQL refuses to look for it. What is posted is checked field by
    field, where it can be told beside the field. Raises ``input.invalid``."""
    if any("\0" in text for texts in request.GET.lists() for text in (texts[0], *map(str, texts[1]))):
        raise Refusal("input.invalid", reason="The address contains the character U+0000, which no text here has.")


def is_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a piece of a page, and not for a page that it shows as a whole."""
    return "HX-Request" in request.headers and "HX-Boosted" not in request.headers


def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """A refusal as a page or a fragment, with its HTTP status."""
    template = "parts/refusal.html" if is_fragment(request) else "refusal.html"
    return render(request, template, {"refusal": refusal}, status=refusal.http_status)


def actor(request: HttpRequest) -> Actor:
    """Who acts: the person that is logged in."""
    return user_actor(request.user)


def visible_run(request: HttpRequest, number: int) -> Run:
    """The run of a page with its workflow. Raises ``run.not_found``, also for what this person may not see."""
    return seen_run(number, request.user)


def visible_workflow(request: HttpRequest, name: str) -> Workflow:
    """The workflow of a page. Raises ``workflow.not_found``, also for what this person may not see."""
    return seen_workflow(name, request.user)


def is_ours(request: HttpRequest, address: str) -> bool:
    """Whether an address that came with a request leads to this site."""
    return url_has_allowed_host_and_scheme(address, allowed_hosts={request.get_host()}, require_https=False)


def _ask_to_log_in(request: HttpRequest) -> HttpResponse:
    if not is_fragment(request):
        # what a form sent is gone: the page with the form is where to go on
        back = request.get_full_path() if request.method in GET else _page_before(request)
        return redirect_to_login(back, resolve_url("pages:login"))
    # a fragment must not be replaced by a whole login page: the page around it goes there
    around = urlsplit(request.headers.get("HX-Current-URL", "")).path or "/"
    response = HttpResponse(status=401)
    response.headers["HX-Redirect"] = redirect_to_login(around, resolve_url("pages:login")).url
    return response


def _page_before(request: HttpRequest) -> str:
    """The page of this site that a form was on, or the first page."""
    before = request.headers.get("Referer", "")
    if not is_ours(request, before):
        return resolve_url("pages:home")
    found = urlsplit(before)
    return found.path + (f"?{found.query}" if found.query else "")


def _require(request: HttpRequest, needs: str) -> None:
    """Raises ``access.denied``. A denied look is not audited, a denied action is."""
    permission = needs.partition(".")[2]
    if request.method == "POST":
        require(actor(request), permission)
    elif not request.user.has_perm(needs):
        name = request.user.get_username()
        raise Refusal("access.denied", actor=name, what=words_of(permission), permission=permission)


def _not_stored(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Pages are for the person that asked: browsers ask again each time, caches between keep nothing."""
    response.headers.setdefault("Cache-Control", "private, no-cache")
    patch_vary_headers(response, ("HX-Request", "Cookie"))
    return response
