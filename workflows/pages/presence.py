"""Presence: notes where people are logged in, now and then, so that they can look at their sessions and end them."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

import django.db
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse

from workflows.operations.sessions import note_session

logger = logging.getLogger(__name__)

#: In a session: when it began, in Unix seconds; when it was noted last, and the beginning of its key then: that changes
#: with the password.
BEGAN, NOTED = "began", "noted"
#: How old the last note of a session may be, in seconds.
NOTED_EVERY_S = 15 * 60
_BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrom", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (
    ("Android", "Android"), ("iPhone", "iOS"), ("iPad", "iOS"), ("Windows", "Windows"), ("Mac OS", "macOS"),
    ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip


class Presence:
    """Middleware. A session is noted with the login, then once in a while; a database that is busy is left alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_login = request.method == "POST" and SESSION_KEY not in request.session
        response = self.get_response(request)
        user = getattr(request, "user", None)
        if user is not None and user.is_authenticated and _is_due(request, is_login):
            try:
                _note(request)
            except django.db.Error as error:  # a busy database: it is noted with another request
                logger.info("A session was not noted: %s", error)
        return response


def _is_due(request: HttpRequest, is_login: bool) -> bool:
    noted = request.session.get(NOTED)
    if is_login or noted is None:
        return is_login
    noted_at, key = noted
    return bool(time.time() - noted_at > NOTED_EVERY_S or key != _short(request.session.session_key))


def _note(request: HttpRequest) -> None:
    session = request.session
    now = int(time.time())
    session[BEGAN] = session.get(BEGAN, now)
    if not session.session_key:
        session.create()
    session[NOTED] = [now, _short(session.session_key)]
    note_session(
        request.user,  # type: ignore[arg-type]  # logged in
        key=str(session.session_key),
        began_at=datetime.fromtimestamp(session[BEGAN], UTC),
        address=request.META.get("REMOTE_ADDR", ""),
        browser=browser_words(request.headers.get("User-Agent", "")),
    )


def _short(key: str | None) -> str:
    return (key or "")[:8]


def browser_words(agent: str) -> str:
    """A browser and its system, roughly; "" for what says nothing.

    >>> browser_words("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
    'Firefox on Linux'
    """
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    if not browser:
        program = re.match(r"[A-Za-z][\w.-]{0,40}", agent)
        return program[0] if program else ""
    return f"{browser} on {system}" if system else browser
