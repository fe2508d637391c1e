"""A person at a browser. Whatever goes wrong in it unseen is kept, and fails the journey at its end."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Response, WebError

from tests.browser.server import Server

COOKIE = "sessionid"
#: Violations of the content policy are told in the console, too, but not all of them.
_REPORTER = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`content policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""
#: Answers are looked at one by one; a page that is left gives up its requests, and journeys take the network away.
_REQUESTS = ("Failed to load resource", "htmx:afterRequest", "htmx:sendAbort", "htmx:sendError")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 380, "height": 800}
PATIENCE_MS = 20_000


def session_of(name: str) -> str:
    """The key of a new session of a user."""
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username=name))
    return str(client.cookies[COOKIE].value)


class Person:
    """A browser context of one user. ``session`` is the key of their session, None before they log in."""

    def __init__(self, browser: Browser, server: Server, session: str | None, **options: Any) -> None:
        self.server = server
        self.faults: list[str] = []
        self.context = browser.new_context(
            base_url=server.url, **{"viewport": WIDE, "reduced_motion": "reduce", **options}
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.set_default_navigation_timeout(PATIENCE_MS)
        if options.get("java_script_enabled", True):
            self.context.add_init_script(_REPORTER)
        self.context.on("console", self._heard)
        self.context.on("weberror", self._failed)
        self.context.on("response", self._answered)
        if session is not None:
            self.context.add_cookies([{"name": COOKIE, "value": session, "url": server.url}])
        self.page = self.new_page()

    def new_page(self) -> Page:
        page = self.context.new_page()
        page.on("dialog", self._asked)
        return page

    def open(self, path: str) -> Page:
        self.page.goto(path)
        return self.page

    # ---- what must not happen ---------------------------------------------------------------------------------------

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REQUESTS):
            self.faults.append(f"console: {message.text}")

    def _failed(self, error: WebError) -> None:
        self.faults.append(f"script: {error.error}")

    def _answered(self, response: Response) -> None:
        is_piece = response.request.resource_type != "document"
        if response.status >= 500 or (is_piece and response.status >= 400):
            self.faults.append(f"{response.status} {response.request.method} {response.url}")

    def _asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def leave(self) -> list[str]:
        """Close everything; the faults of the visit."""
        self.context.close()
        return [re.sub(r"http://127\.0\.0\.1:\d+", "", fault) for fault in self.faults]
