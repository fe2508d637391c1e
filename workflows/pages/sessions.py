"""Own sessions: ending one, and all but this one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from workflows.operations.sessions import end, end_all
from workflows.pages.guard import POST, actor, page


@page(methods=POST, needs=None)
def end_one(request: HttpRequest, session: int) -> HttpResponse:
    """End one of one's own sessions; ending this one logs out. One that is not there has ended already."""
    ended = end(request.user, [session], actor=actor(request))  # type: ignore[arg-type]  # logged in
    messages.info(request, "The session has ended." if ended else "That session had ended already.")
    return redirect("pages:account")


@page(methods=POST, needs=None)
def end_others(request: HttpRequest) -> HttpResponse:
    """End all of one's own sessions but this one."""
    key = request.session.session_key
    ended = end_all(request.user, actor=actor(request), but_key=key)  # type: ignore[arg-type]  # logged in
    messages.info(request, f"{ended} other session{'' if ended == 1 else 's'} ended.")
    return redirect("pages:account")
