"""The web application behind an HTTP server with threads, on the database of this process."""

from __future__ import annotations

import threading
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.signals import request_finished, request_started

CALM_S = 60


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at the answers themselves."""


class Server:
    """Serves until it is closed. ``url`` has no slash at its end."""

    def __init__(self) -> None:
        self._open = 0
        self._change = threading.Condition()
        request_started.connect(self._began)
        request_finished.connect(self._ended)
        self._server = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet)
        self._server.daemon_threads = True
        self._server.set_app(WSGIHandler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _began(self, **_: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            with self._change:
                self._open += 1

    def _ended(self, **_: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            with self._change:
                self._open -= 1
                self._change.notify_all()

    def calm(self) -> None:
        """Wait until no request is being answered, so that the database may be emptied."""
        with self._change:
            assert self._change.wait_for(lambda: self._open <= 0, CALM_S), "a request never ended"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(CALM_S)
        self.calm()
        request_started.disconnect(self._began)
        request_finished.disconnect(self._ended)
