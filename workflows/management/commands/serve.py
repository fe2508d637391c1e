"""``serve``: the pages and a worker, in one command, for one person who tries it on their own machine."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandParser
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler, get_internal_wsgi_application

from workflows.errors import ExitCode, Refusal
from workflows.management.base import Command as WaypostCommand
from workflows.management.helper_worker import HelperWorker
from workflows.operations.workflows import publish_library

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000
MOST_PORT = 65_535
_ADDRESS = re.compile(r"(?:(?P<host>[A-Za-z0-9.-]+):)?(?P<port>[0-9]{1,5})", re.ASCII)


class Command(WaypostCommand):
    help = "Serves the pages and drives runs, to try both on one machine. Asks for a first user when there is none."

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument(
            "address",
            nargs="?",
            default=f"{DEFAULT_HOST}:{DEFAULT_PORT}",
            metavar="HOST:PORT",
            help=f"where to listen, or only a port (default {DEFAULT_HOST}:{DEFAULT_PORT})",
        )

    def perform(self, **options: Any) -> int:
        host, port = _address(options["address"])
        server = _listening(host, port, tells_requests=options["verbosity"] > 1)
        try:
            self._publish_library()
            self._meet_the_first_person()
            return self._serve(server, f"http://{host}:{server.server_port}/")
        finally:
            server.server_close()

    def _publish_library(self) -> None:
        """On the embedded database the library is there from the beginning, as it is for ``run_workflow``."""
        if not settings.WAYPOST_USES_EMBEDDED_DATABASE:
            return
        library = publish_library()
        if library.published:
            self.write_now(f"Published from the library: {', '.join(library.published)}")
        for name, refusal in library.refused.items():
            self.stderr.write(f"{name} of the library was left out: {refusal.message}")

    def _meet_the_first_person(self) -> None:
        """On a new installation nobody can log in, so the first user is made here when somebody is there to ask."""
        if get_user_model()._default_manager.filter(is_active=True, is_superuser=True).exists():
            return
        if sys.stdin.isatty() and sys.stdout.isatty():
            self.write_now("Nobody can log in yet. Make the first user, who may do everything:")
            call_command("createsuperuser")
        else:
            self.write_now("Nobody can log in yet: `python manage.py createsuperuser` makes the first user.")

    def _serve(self, server: ThreadedWSGIServer, url: str) -> int:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        with HelperWorker(self.write_now) as worker:
            thread.start()
            self.write_now(f"Waypost is at {url} and drives runs. Ctrl-C ends both; runs go on with the next start.")
            has_stayed = worker.keep_working()
            server.shutdown()
        thread.join()
        return ExitCode.SUCCEEDED if has_stayed else ExitCode.FAILED


class _Handler(WSGIRequestHandler):
    """Tells nothing of each request: a page that keeps itself fresh makes many."""

    def log_message(self, format: str, *args: Any) -> None:
        """The lines between belong to runs."""


def _address(text: str) -> tuple[str, int]:
    """Host and port. Raises ``input.invalid``."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > MOST_PORT:
        raise Refusal("input.invalid", reason=f'"{text}" is no address such as 8000 or 127.0.0.1:8000.')
    return match["host"] or DEFAULT_HOST, int(match["port"])


def _listening(host: str, port: int, *, tells_requests: bool) -> ThreadedWSGIServer:
    """A server that has its port and does not answer yet. Raises ``input.invalid`` when it cannot have it."""
    try:
        server = ThreadedWSGIServer((host, port), WSGIRequestHandler if tells_requests else _Handler)
    except OSError as error:
        reason = f"Nothing can be served at {host}:{port}: {error.strerror}. Another port is `serve {port + 1}`."
        raise Refusal("input.invalid", reason=reason) from None
    server.daemon_threads = True
    server.set_app(get_internal_wsgi_application())
    return server
