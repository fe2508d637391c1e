"""One's own keys for programs: made, shown once, revoked."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils import timezone

from workflows.errors import Refusal
from workflows.models.api_key import KeyScope
from workflows.operations.access import may
from workflows.operations.api_keys import MAKE, USUAL_DAYS, create, revoke
from workflows.pages.guard import FORM, actor, page
from workflows.queries.api_keys import key_list

_DAYS = (7, 30, 90, 365)


@page(methods=FORM, needs=None)
def keys(request: HttpRequest) -> HttpResponse:
    """The keys of the person that is logged in. A new key is in the answer to the form that made it, and nowhere else:
    that answer is kept by nobody."""
    if request.method != "POST":
        return _shown(request)
    if (ended := request.POST.get("revoke")) is not None:
        is_new = revoke(ended, actor=actor(request), now=timezone.now())
        messages.success(request, "The key is revoked." if is_new else "The key was revoked already.")
        return HttpResponseRedirect(resolve_url("pages:keys"))
    try:
        made = create(
            owner=request.user.get_username(),
            name=request.POST.get("name", ""),
            scopes=request.POST.getlist("scope"),
            days=_days(request.POST.get("days", "")),
            actor=actor(request),
            now=timezone.now(),
        )
    except Refusal as refusal:
        if refusal.code != "key.invalid":
            raise
        return _shown(request, status=refusal.http_status, refusal=refusal)
    response = _shown(request, made=made)
    response.headers["Cache-Control"] = "no-store"
    return response


def _days(text: str) -> int:
    """Raises ``key.invalid``."""
    if text not in {str(days) for days in _DAYS}:
        raise Refusal("key.invalid", reason="Choose how long the key is good.")
    return int(text)


def _shown(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    given = request.POST if "refusal" in more else None
    context = {
        "keys": key_list(now=timezone.now(), owner=request.user.get_username()),
        "may_make": may(actor(request), MAKE),
        "scopes": [
            {"value": value, "label": label, "checked": value in given.getlist("scope") if given else value == "read"}
            for value, label in KeyScope.choices
        ],
        "days": [{"value": days, "selected": days == USUAL_DAYS} for days in _DAYS],
        "name": given.get("name", "") if given else "",
        **more,
    }
    return render(request, "account/keys.html", context, status=status)
