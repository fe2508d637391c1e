"""A proxy before a PostgreSQL server that breaks a connection at a chosen message."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_CHUNK = 65536


class Proxy:
    """Listens on ``port`` of 127.0.0.1 and passes everything on until it is told what to lose, once."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._server_port = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.replies_lost = 0
        self._lose: bytes | None = None
        self._swallow: bytes | None = None
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def lose_the_reply_to(self, message: bytes) -> None:
        """The server gets ``message`` and answers; the answer is dropped and the connection closed."""
        self._lose = message

    def swallow(self, message: bytes) -> None:
        """The server never gets ``message``; the connection is closed instead."""
        self._swallow = message

    def close(self) -> None:
        for opened in self._sockets:
            _shut(opened)
        for thread in self._threads:
            thread.join(10)

    def _connect(self) -> socket.socket:
        if self._host.startswith("/"):
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.connect(f"{self._host}/.s.PGSQL.{self._server_port}")
            return server
        return socket.create_connection((self._host or "127.0.0.1", self._server_port))

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                self._sockets += [client, server]
                losing = threading.Event()
                for body in (self._forward, self._return):
                    thread = threading.Thread(target=body, args=(client, server, losing), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _forward(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if self._swallow is not None and self._swallow in data:
                    self._swallow = None
                    break
                if self._lose is not None and self._lose in data:
                    self._lose = None
                    losing.set()
                server.sendall(data)
        _shut(client)
        _shut(server)

    def _return(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if losing.is_set():
                    self.replies_lost += 1
                    break
                client.sendall(data)
        _shut(client)
        _shut(server)


def _shut(opened: socket.socket) -> None:
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)
    opened.close()
