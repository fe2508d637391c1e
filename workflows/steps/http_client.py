"""Sends one request: it can be interrupted at any moment, its memory is bounded, nothing of the environment leaks in.

The request is made by a thread of its own, because a name look-up or a connection that hangs cannot be ended from
outside. Its step waits for it and for the stop event. An interrupt closes the sockets, which ends every read and write
at once; a thread that is still looking up a name or connecting then is left behind and can no longer send anything.

No proxies, ``.netrc``, cookies or credentials of the environment are used. Certificates are verified against the ones
that come with the ``certifi`` package, or those that ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import httpx

from workflows.steps.http_address import shown_address
from workflows.steps.http_messages import Answer, NoAnswer, Request

#: How often the stop event is looked at.
TICK_SECONDS = 0.1
#: How long the thread of an interrupted request gets to end before it is left behind.
END_SECONDS = 0.5
CONNECT_SECONDS = 30.0
#: What is read of the body of a failure, and how long that may take: the status is known already.
FAILURE_BODY_LIMIT = 64 * 1024
FAILURE_BODY_SECONDS = 5.0
MAX_REDIRECTS = 10

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class _Interrupted(Exception):
    """Raised in the thread of the request when it must not go on."""


def send(
    request: Request,
    *,
    stop: threading.Event,
    stop_reason: Callable[[], str | None],
    deadline: float | None,
    log: list[str],
) -> Answer:
    """Makes the request and appends a line to ``log`` for each one sent. ``deadline`` is of ``time.monotonic()``.

    Returns, or raises :class:`NoAnswer`, within about a second of ``stop`` or ``deadline``.
    """
    exchange = _Exchange(request, log)
    thread = threading.Thread(target=exchange.run, name="waypost-http", daemon=True)
    thread.start()
    while not exchange.done.wait(TICK_SECONDS):
        now = time.monotonic()
        if stop.is_set() or (deadline is not None and now >= deadline):
            exchange.interrupt()
            exchange.done.wait(END_SECONDS)
            # An answer that was complete before the interrupt is the truth about the effect.
            return exchange.answer_or(stop_reason() or "timeout")
        if now >= exchange.enough_at:
            exchange.close_sockets()
    return exchange.answer_or(None)


class _Exchange:
    """One request with its redirects, made in a thread, and what came of it."""

    def __init__(self, request: Request, log: list[str]) -> None:
        self.done = threading.Event()
        #: From this moment on (``time.monotonic()``) what was received of the body is enough.
        self.enough_at = float("inf")
        self._request = request
        self._log = log
        self._lock = threading.Lock()
        self._interrupted = False
        self._sockets: list[socket.socket] = []
        self._answer: Answer | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            answer = self._follow()
            with self._lock:
                # A body without a length ends like a whole one when its connection is closed from here.
                if not self._interrupted:
                    self._answer = answer
        except Exception as error:
            self._error = error
        finally:
            with self._lock:
                for held in self._sockets:
                    held.close()
                self._sockets.clear()
            self.done.set()

    def interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
        self.close_sockets()

    def close_sockets(self) -> None:
        with self._lock:
            for held in self._sockets:
                try:
                    held.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the other side was first

    def answer_or(self, stopped: str | None) -> Answer:
        if self._answer is not None:
            return self._answer
        if stopped is not None:
            raise NoAnswer("timeout" if stopped == "timeout" else "cancelled", "", stopped=stopped)
        assert self._error is not None
        raise self._error

    # ---- in the thread -----------------------------------------------------------------------------------------------

    def _follow(self) -> Answer:
        request = self._request
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._send_once(request)
            target = answer.headers.get("location")
            if not request.is_safe or answer.status not in _REDIRECTS - request.expected or target is None:
                return answer
            request = _redirected(request, answer, target)
        raise NoAnswer("http_status", f"{_shown(self._request)} was redirected more than {MAX_REDIRECTS} times.")

    def _send_once(self, request: Request) -> Answer:
        started = time.monotonic()
        try:
            sent = httpx.Request(
                request.method,
                request.address,
                headers=[(header.name.encode(), header.value) for header in request.headers],
                content=request.content,
                extensions={"timeout": {"connect": CONNECT_SECONDS}, "trace": self._trace},
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise NoAnswer("bad_expression", f'"url" cannot be used: {error}.') from None
        note = "failed"
        try:
            with httpx.HTTPTransport(verify=_certificates(), trust_env=False) as transport:
                response = transport.handle_request(sent)
                try:
                    answer = self._received(request, response)
                finally:
                    response.close()
            note = f"{answer.status} {len(answer.body):,}{'' if answer.whole else '+'} bytes"
            return answer
        except httpx.HTTPError as error:
            raise NoAnswer("network", f"{_shown(request)} failed: {_reason(error)}.") from error
        finally:
            milliseconds = round((time.monotonic() - started) * 1000)
            self._log.append(f"{_shown(request)} {'interrupted' if self._interrupted else note} {milliseconds} ms")

    def _trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Called by the library at every stage. Gets hold of the connection before anything is sent on it."""
        if name == "connection.connect_tcp.complete":
            stream = info["return_value"]
            permits = self._request.permits
            if permits is not None and not permits(stream.get_extra_info("server_addr")[0]):
                stream.close()
                raise NoAnswer("refused", "The network address of the host is not public, and nothing allows it.")
            with self._lock:
                if not self._interrupted:
                    # A copy: encryption takes the library's own socket object away.
                    self._sockets.append(stream.get_extra_info("socket").dup())
                    return
            stream.close()
            raise _Interrupted

    def _received(self, request: Request, response: httpx.Response) -> Answer:
        answer = Answer(status=response.status_code, address=request.address, headers=_headers_of(response))
        limit, is_failure = request.body_limit, request.fails_with(answer.status)
        if is_failure:
            limit = FAILURE_BODY_LIMIT
            self.enough_at = time.monotonic() + FAILURE_BODY_SECONDS
        if request.method == "HEAD" or limit == 0:
            return answer
        body = _Body(answer.headers.get("content-encoding", ""), limit)
        try:
            for chunk in _chunks(response):
                if not body.add(chunk):
                    break
        except httpx.HTTPError:
            if not is_failure:
                raise
            body.whole = False  # the status alone says enough
        if time.monotonic() >= self.enough_at:
            body.whole = False
        return replace(answer, body=bytes(body.data[:limit]), whole=body.whole, fault=body.fault)


class _Body:
    """Collects a body up to a limit, decompressed as it comes and never further than the limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        self.data = bytearray()
        self.whole = True
        self.fault = ""
        self._limit = limit
        self._decompress = None
        self._encoding = encoding.strip().lower()
        if self._encoding in ("gzip", "x-gzip", "deflate"):
            self._decompress = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    def add(self, chunk: bytes) -> bool:
        """Whether more is wanted."""
        room = self._limit + 1 - len(self.data)
        if self._decompress is not None:
            try:
                chunk = self._decompress.decompress(chunk, room)
            except zlib.error:
                self.fault = "its body cannot be decompressed"
                return False
        elif self._encoding not in ("", "identity"):
            self.fault = f'its body is encoded as "{self._encoding}", which was not asked for'
            return False
        self.data += chunk[:room]
        self.whole = len(self.data) <= self._limit
        return self.whole


def _chunks(response: httpx.Response) -> Iterator[bytes]:
    stream = response.stream
    assert isinstance(stream, httpx.SyncByteStream)
    yield from stream


def _headers_of(response: httpx.Response) -> dict[str, str]:
    names = ("content-type", "content-encoding", "content-length", "location", "retry-after", "date")
    return {name: response.headers[name] for name in names if name in response.headers}


def _redirected(request: Request, answer: Answer, target: str) -> Request:
    """The request for the target of a redirect. Another origin gets neither body nor anything that says who asks."""
    try:
        here = httpx.URL(request.address)
        there = here.join(target)
    except (httpx.InvalidURL, UnicodeError):
        there = httpx.URL("")
    if there.scheme not in ("http", "https") or not there.host:
        raise NoAnswer(
            "http_status", f"{_shown(request)} was answered with {answer.status} and an address that cannot be used."
        )
    address = str(there.copy_with(userinfo=b"", fragment=None))
    if (here.scheme, here.host, _port(here)) == (there.scheme, there.host, _port(there)):
        return replace(request, address=address)
    headers = tuple(header for header in request.headers if header.travels)
    return replace(request, address=address, headers=headers, content=None)


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _shown(request: Request) -> str:
    return f"{request.method} {shown_address(request.address)}"


def _reason(error: BaseException) -> str:
    """The deepest cause in words: what the system said, without the layers in between."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:.0f} s"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate cannot be trusted ({cause.verify_message})"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".") or type(error).__name__


def _certificates() -> ssl.SSLContext:
    return _context_for(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=2)
def _context_for(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Made once for the variables that the library looks at: reading all certificates takes longer than a request."""
    return httpx.create_ssl_context()
