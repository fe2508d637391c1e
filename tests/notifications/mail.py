"""A small mail server for tests: it keeps what it is given, or refuses, hangs and goes away as the test says."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any


@dataclass
class Mailbox:
    """``refusal`` is the reply to a receiver instead of 250; ``hangs``: the server greets nobody."""

    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    receivers: list[str] = field(default_factory=list)
    refusal: str = ""
    hangs: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)


class _Conversation(socketserver.StreamRequestHandler):
    mailbox: Mailbox

    def handle(self) -> None:
        if self.mailbox.hangs:
            self.mailbox.arrived.set()
            self.mailbox.closing.wait()
            return
        self.say("220 mail.test")
        while line := self.rfile.readline():
            word = line.decode().strip().upper()
            if word.startswith("DATA"):
                self.say("354 go on")
                self.take()
                self.say("250 taken")
            elif word.startswith("RCPT"):
                self.mailbox.receivers.append(line.decode().strip()[len("RCPT TO:<") :].rstrip(">"))
                self.say(self.mailbox.refusal or "250 ok")
            elif word.startswith("QUIT"):
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        message: Any = message_from_bytes(b"".join(lines), policy=policy.default)
        self.mailbox.messages.append(message)
        self.mailbox.arrived.set()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that die are part of the tests."""


@contextmanager
def receiving() -> Iterator[Mailbox]:
    """A mail server on a free port of this machine."""
    mailbox = Mailbox()
    handler = type("Conversation", (_Conversation,), {"mailbox": mailbox})
    with _Server(("127.0.0.1", 0), handler) as server:
        mailbox.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield mailbox
        finally:
            mailbox.closing.set()
            server.shutdown()
            thread.join()
