"""A small HTTP server for tests: it answers by a table of handlers and remembers what it was asked."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came: the target exactly as it stood in the first line, names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[["Conversation"], object]


@dataclass
class Server:
    """``handlers`` by path, without query; ``anything`` answers the others. ``closing`` is set at the end of the test."""

    port: int
    handlers: dict[str, Handler] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    scheme: str = "http"

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def on(self, path: str, handler: Handler) -> None:
        self.handlers[path] = handler

    def answers(
        self, path: str, body: bytes | str = b"", status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.on(path, lambda conversation: conversation.answer(body, status, headers))


class Conversation(BaseHTTPRequestHandler):
    """What a handler gets: the request, and ways to answer it."""

    protocol_version = "HTTP/1.1"
    served: Server
    asked: Asked

    def answer(self, body: bytes | str = b"", status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_raw(self, data: bytes) -> bool:
        """Whether the other side still takes it."""
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            self.served.gone.set()
            return False
        return True

    def wait_until_gone(self) -> None:
        """Answers nothing (more) and waits until the other side is gone."""
        while not self.served.closing.is_set():
            self.connection.settimeout(0.05)
            try:
                if self.connection.recv(1) == b"":
                    self.served.gone.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.served.gone.set()
                return

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked = Asked(method=self.command, target=self.path, headers=headers, body=body)
        self.served.asked.append(self.asked)
        self.served.arrived.set()
        self.close_connection = True
        handler = self.served.handlers.get(self.path.partition("?")[0])
        if handler is None:
            self.answer("null")
        else:
            handler(self)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[Server]:
    """A server on a free port of this machine; with ``certificate`` (chain and key in one file) over TLS."""
    server = Server(port=0, scheme="http" if certificate is None else "https")
    handler = type("Handler", (Conversation,), {"served": server})
    listening = _Quiet(("127.0.0.1", 0), handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    server.port = listening.server_address[1]
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        listening.shutdown()
        listening.server_close()
        thread.join()


def unused_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
