"""Http steps on a bad network: redirects, interrupts at every stage, broken connections, certificates."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workers import wait_until
from tests.steps.http_steps import http
from tests.steps.support import Bench, failure, output
from tests.support.http_server import Conversation, Server, serving, unused_port
from workflows.engine.contract import Result
from workflows.steps import http_client


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def other() -> Iterator[Server]:
    with serving() as made:
        yield made


def redirect(server: Server, path: str, target: str, status: int = 302) -> None:
    server.answers(path, "", status, {"Location": target})


def log(result: Result) -> str:
    """The log with its times replaced."""
    return re.sub(r"\b\d+ ms", "N ms", result.log)


# ---- redirects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_read_follows_redirects_with_all_its_headers_on_the_same_origin(
    bench: Bench, server: Server, status: int
) -> None:
    bench.secrets["key"] = "hush-hush"
    redirect(server, "/a", "b?x=1#there", status)
    server.answers("/b", "1")

    result = bench.run(http(server.address + "/a", auth={"secret": "key"}, headers={"X-A": "b"}))

    assert output(result) == 1
    first, second = server.asked
    assert (second.method, second.target) == ("GET", "/b?x=1")
    assert second.headers == first.headers
    assert log(result) == (f"GET {server.address}/a {status} 0 bytes N ms\nGET {server.address}/b?… 200 1 bytes N ms\n")


def test_another_origin_gets_no_credentials_no_other_header_of_the_file_and_no_body(
    bench: Bench, server: Server, other: Server
) -> None:
    bench.secrets["key"] = "hush-hush"
    redirect(server, "/a", f"http://me:pass@127.0.0.1:{other.port}/b", 307)
    redirect(other, "/b", f"{server.address}/c")
    headers = {"X-Key": {"secret": "key"}, "X-Token": "text", "Cookie": "a=b", "Accept": "text/csv", "User-Agent": "me"}

    result = bench.run(http(server.address + "/a", auth={"secret": "key"}, headers=headers, json={"secret": 1}))

    assert result.outcome == "ok"
    for asked, host in ((other.asked[0], other), (server.asked[1], server)):
        assert asked.body == b""
        assert asked.headers == {
            "host": f"127.0.0.1:{host.port}",
            "accept": "text/csv",
            "user-agent": "me",
            "accept-encoding": "identity",
        }


def test_head_follows_redirects_and_stays_head(bench: Bench, server: Server) -> None:
    redirect(server, "/a", "/b", 303)

    assert output(bench.run(http(server.address + "/a", method="HEAD"))) is None
    assert [(asked.method, asked.target) for asked in server.asked] == [("HEAD", "/a"), ("HEAD", "/b")]


def test_cookies_of_a_redirect_are_not_kept(bench: Bench, server: Server) -> None:
    server.answers("/a", "", 302, {"Location": "/b", "Set-Cookie": "session=1; Path=/"})

    bench.run(http(server.address + "/a"))

    assert "cookie" not in server.asked[1].headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_is_never_sent_again_by_a_redirect(bench: Bench, server: Server, method: str) -> None:
    redirect(server, "/a", "/b", 307)

    result = bench.run(http(server.address + "/a", method=method))

    assert (result.outcome, output(result)) == ("ok", None)
    assert len(server.asked) == 1


def test_a_redirect_that_the_file_names_is_an_outcome(bench: Bench, server: Server) -> None:
    redirect(server, "/a", "/b", 301)

    assert bench.run(http(server.address + "/a", statuses={"moved": [301]})).outcome == "moved"
    assert len(server.asked) == 1


def test_ten_redirects_are_followed_and_no_more(bench: Bench, server: Server) -> None:
    for number in range(12):
        redirect(server, f"/{number}", f"/{number + 1}")

    assert failure(bench.run(http(server.address + "/1"))) == (
        "failed",
        "http_status",
        f"GET {server.address}/1 was redirected more than 10 times.",
    )
    assert len(server.asked) == 11
    assert bench.run(http(server.address + "/2")).outcome == "ok"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/", "javascript:1", "http://[::"])
def test_a_redirect_leads_to_http_or_https_only(bench: Bench, server: Server, target: str) -> None:
    redirect(server, "/a", target)

    assert failure(bench.run(http(server.address + "/a"))) == (
        "failed",
        "http_status",
        f"GET {server.address}/a was answered with 302 and an address that cannot be used.",
    )


# ---- connections that fail -------------------------------------------------------------------------------------------


def test_a_refused_connection_is_a_network_error(bench: Bench) -> None:
    address = f"http://127.0.0.1:{unused_port()}"

    result = bench.run(http(f"{address}/a?b=c"))

    assert failure(result) == ("failed", "network", f"GET {address}/a?… failed: Connection refused.")
    assert log(result) == f"GET {address}/a?… failed N ms\n"


def test_a_host_that_does_not_exist_is_a_network_error(bench: Bench) -> None:
    outcome, code, message = failure(bench.run(http("http://does-not-exist.invalid/")))

    assert (outcome, code) == ("failed", "network")
    assert message.startswith("GET http://does-not-exist.invalid/ failed: ")


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "Server disconnected without sending a response"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "illegal status line"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
            "peer closed connection without sending complete message",
        ),
    ],
)
def test_an_answer_that_breaks_off_is_a_network_error(bench: Bench, server: Server, sent: bytes, reason: str) -> None:
    server.on("/", lambda conversation: conversation.send_raw(sent))

    outcome, code, message = failure(bench.run(http(server.address + "/", method="POST")))

    assert (outcome, code) == ("failed", "network")
    assert message.startswith(f"POST {server.address}/ failed: {reason}")


def test_endless_headers_are_a_network_error(bench: Bench, server: Server) -> None:
    def endless(conversation: Conversation) -> None:
        conversation.send_raw(b"HTTP/1.1 200 OK\r\nX: ")
        while conversation.send_raw(b"x" * 65536):
            pass

    server.on("/", endless)

    assert failure(bench.run(http(server.address + "/")))[1] == "network"


def test_a_failure_whose_body_breaks_off_is_still_known(bench: Bench, server: Server) -> None:
    server.answers("/", "half", 503, {"Content-Length": "100"})

    assert failure(bench.run(http(server.address + "/"))) == (
        "failed",
        "http_status",
        f"GET {server.address}/ was answered with 503 Service Unavailable: half",
    )


def test_a_failure_does_not_wait_for_a_body_that_never_ends(
    bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "FAILURE_BODY_SECONDS", 0.2)
    server.on("/", hanging(b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\nhalf"))

    assert failure(bench.run(http(server.address + "/"))) == (
        "failed",
        "http_status",
        f"GET {server.address}/ was answered with 500 Internal Server Error: half",
    )


# ---- interrupts ------------------------------------------------------------------------------------------------------


def hanging(sent: bytes = b"") -> Callable[[Conversation], None]:
    """Sends this much and then nothing more."""

    def handler(conversation: Conversation) -> None:
        conversation.send_raw(sent)
        conversation.wait_until_gone()

    return handler


def dripping(conversation: Conversation) -> None:
    """A body that never ends and never stops for long."""
    conversation.send_raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while not conversation.served.closing.wait(0.01) and conversation.send_raw(b"x"):
        pass


STAGES: dict[str, Callable[[Conversation], None]] = {
    "before the first byte": hanging(),
    "inside the headers": hanging(b"HTTP/1.1 200 OK\r\nX-A: "),
    "inside the body": hanging(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n123"),
    "in a slow body without end": dripping,
}

STOPPED = {
    "cancelled": ("cancelled", "cancelled", "The step was cancelled while it ran."),
    "shutdown": ("interrupted", "crashed", "The worker was shut down while the step ran."),
    "timeout": ("timed_out", "timeout", "The step took longer than its timeout and was stopped."),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("reason", ["cancelled", "shutdown"])
def test_a_stop_ends_the_request_at_once(bench: Bench, server: Server, stage: str, reason: str) -> None:
    server.on("/", STAGES[stage])
    _, stop = bench.start(http(server.address + "/", method="POST"))
    assert server.arrived.wait(10)

    began = time.monotonic()
    stop.request(reason)
    result = bench.deliveries.get(timeout=10).result

    assert time.monotonic() - began < 2
    assert failure(result) == STOPPED[reason]
    assert log(result) == f"POST {server.address}/ interrupted N ms\n"
    assert server.gone.wait(2)


@pytest.mark.parametrize("stage", STAGES)
def test_a_timeout_ends_the_request(bench: Bench, server: Server, stage: str) -> None:
    server.on("/", STAGES[stage])

    began = time.monotonic()
    result = bench.run(http(server.address + "/", timeout=300))

    assert 0.3 <= time.monotonic() - began < 2.3
    assert failure(result) == STOPPED["timeout"]
    assert server.gone.wait(2)


def test_a_stop_ends_a_request_whose_body_the_server_does_not_take(bench: Bench) -> None:
    with full_listener() as (port, accept):
        _, stop = bench.start(http(f"http://127.0.0.1:{port}/", method="POST", body="x" * 30_000_000))
        connection = accept()
        with connection:
            assert connection.recv(4) == b"POST"
            stop.request("cancelled")
            assert failure(bench.deliveries.get(timeout=2).result) == STOPPED["cancelled"]


def test_a_stop_ends_a_handshake_that_hangs(bench: Bench) -> None:
    with full_listener() as (port, accept):
        _, stop = bench.start(http(f"https://127.0.0.1:{port}/"))
        with accept() as connection:
            assert connection.recv(1) == b"\x16"
            stop.request("cancelled")
            assert failure(bench.deliveries.get(timeout=2).result) == STOPPED["cancelled"]


def test_a_request_that_was_stopped_while_it_looked_up_its_host_is_never_sent(
    bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    look_up = socket.getaddrinfo

    def slow(host: Any, *rest: Any, **more: Any) -> Any:
        asked.set()
        assert go_on.wait(20)
        return look_up("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    _, stop = bench.start(http(f"http://slow.example:{server.port}/", method="POST"))
    assert asked.wait(10)
    [thread] = [thread for thread in threading.enumerate() if thread.name == "waypost-http"]

    stop.request("timeout")
    assert failure(bench.deliveries.get(timeout=2).result) == STOPPED["timeout"]
    go_on.set()
    thread.join(10)

    assert not thread.is_alive()
    assert server.asked == []


def test_nothing_is_left_open_by_requests(bench: Bench, server: Server) -> None:
    redirect(server, "/a", "/b")
    bench.run(http(server.address + "/c"))
    before = open_sockets()
    for path in ("/a", "/b", "/c") * 5:
        bench.run(http(server.address + path))

    for thread in threading.enumerate():
        if thread.name == "waypost-http":
            thread.join(10)
            assert not thread.is_alive()
    wait_until(lambda: open_sockets() <= before)


def open_sockets() -> int:
    """Sockets of this process, those of the server included."""
    found = 0
    for file in Path("/proc/self/fd").iterdir():
        try:
            found += file.readlink().name.startswith("socket:")
        except OSError:
            continue
    return found


@contextmanager
def full_listener() -> Iterator[tuple[int, Callable[[], socket.socket]]]:
    """A port that takes connections and does nothing with them."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        listening.settimeout(10)
        yield listening.getsockname()[1], lambda: listening.accept()[0]


# ---- certificates ----------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for this machine that nobody has signed, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with the program openssl, which is not here")
    file, key = tmp_path / "own.pem", tmp_path / "own.key"
    options = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", "req", *options.split(), "-keyout", key, "-out", file], check=True, capture_output=True, timeout=60
    )
    file.write_text(file.read_text() + key.read_text())
    return file


def test_a_certificate_that_nobody_vouches_for_is_refused(bench: Bench, certificate: Path) -> None:
    with serving(certificate) as server:
        result = bench.run(http(server.address + "/", auth=None, method="POST"))

        assert failure(result) == (
            "failed",
            "network",
            f"POST {server.address}/ failed: the certificate cannot be trusted (self-signed certificate).",
        )
        assert server.asked == []


def test_an_operator_may_name_other_certificates(
    bench: Bench, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate) as server:
        server.answers("/", "1")

        assert output(bench.run(http(server.address + "/"))) == 1


def test_a_stop_ends_an_encrypted_request_at_once(
    bench: Bench, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate) as server:
        server.on("/", hanging())
        _, stop = bench.start(http(server.address + "/"))
        assert server.arrived.wait(10)
        stop.request("cancelled")

        assert failure(bench.deliveries.get(timeout=2).result) == STOPPED["cancelled"]
