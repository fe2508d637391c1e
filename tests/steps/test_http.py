"""Http steps: what reaches the server, and what becomes of its answer (docs/format.md, ask_service)."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.steps.http_steps import http
from tests.steps.support import Bench, enter, failure, output
from tests.support.http_server import Conversation, Server, serving, unused_port
from workflows.engine.contract import Effect, Result
from workflows.expressions import BadExpression

MIB = 1024 * 1024
DISPATCH_ID = "6b0c2f5e-0000-4000-8000-000000000001"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def log(result: Result) -> str:
    """The log with its times replaced."""
    return re.sub(r"\b\d+ ms", "N ms", result.log)


# ---- entering --------------------------------------------------------------------------------------------------------


def test_inputs_hold_all_that_is_sent_and_only_the_names_of_secrets() -> None:
    step = http(
        "https://example.com/v1/${ params.env }/jobs",
        method="POST",
        query={"limit": 10},
        headers={
            "X-Key": {"secret": "api_token"},
            "X-Env": "${ params.env }",
            "X-No": "${ null }",
            "X-List": "${ [1, 2] }",
        },
        auth={"secret": "api_token"},
        json={"count": "${ params.count }"},
        timeout=5_000,
    )

    assert enter(step, params={"env": "dev", "count": 3}) == Effect(
        inputs={
            "method": "POST",
            "url": "https://example.com/v1/dev/jobs?limit=10",
            "headers": {
                "X-Key": {"secret": "api_token"},
                "X-Env": "dev",
                "X-List": "[1,2]",
                "Content-Type": "application/json",
            },
            "body": '{"count":3}',
        },
        access="write",
        idempotent=False,
        workspace="none",
        timeout_ms=5_000,
    )


@pytest.mark.parametrize(
    ("method", "access"),
    [("GET", "read"), ("HEAD", "read"), ("POST", "write"), ("PUT", "write"), ("PATCH", "write"), ("DELETE", "write")],
)
def test_only_get_and_head_read_unless_the_file_says_otherwise(method: str, access: str) -> None:
    effect = enter(http("https://example.com/", method=method))
    stated = enter(http("https://example.com/", method=method, access="read", idempotent=True))

    assert isinstance(effect, Effect)
    assert isinstance(stated, Effect)
    assert (effect.access, effect.idempotent) == (access, False)
    assert (stated.access, stated.idempotent) == ("read", True)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"body": "${ params.x }"}, '"body" is null, which has no text.'),
        ({"headers": {"X-A": "a\nb"}}, 'The header "X-A" contains a line break or another character it cannot hold.'),
        ({"headers": {"X A": "a"}}, '"X A" is not a name that a header can have.'),
        (
            {"headers": {"Content-length": "${ 3 }"}},
            'The header "Content-length" is set by the request itself and cannot be written.',
        ),
        ({"idempotency_header": "Key:"}, '"Key:" is not a name that a header can have.'),
        (
            {"auth": {"secret": "a"}, "headers": {"authorization": "Basic x"}},
            'The step has both "auth" and a header "Authorization"; keep one of them.',
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is_sent(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(BadExpression) as caught:
        enter(http("https://example.com/", method="POST", **keys), params={"x": None})

    assert str(caught.value) == message


# ---- the request -----------------------------------------------------------------------------------------------------


def test_a_request_carries_method_target_headers_and_json(bench: Bench, server: Server) -> None:
    bench.secrets["api_token"] = "token-1234\n"
    server.answers("/v1/a%20b/jobs", '{"id": 7}', 201)

    result = bench.run(
        http(
            f"{server.address}/v1/${{ params.name }}/jobs?x=1",
            method="POST",
            query={"limit": 10},
            headers={"X-Key": {"secret": "api_token"}, "X-Word": "grün"},
            auth={"secret": "api_token"},
            json={"b": [1, None], "a": "ä"},
        ),
        {"params": {"name": "a b"}},
    )

    assert output(result) == {"id": 7}
    assert (result.outcome, result.exit_code, result.repaired) == ("ok", None, False)
    [asked] = server.asked
    assert (asked.method, asked.target) == ("POST", "/v1/a%20b/jobs?x=1&limit=10")
    assert asked.body == '{"a":"ä","b":[1,null]}'.encode()
    assert asked.headers == {
        "host": f"127.0.0.1:{server.port}",
        "x-key": "token-1234",
        "x-word": "grün".encode().decode("latin-1"),
        "content-type": "application/json",
        "content-length": "23",
        "authorization": "Bearer token-1234",
        "idempotency-key": DISPATCH_ID,
        "user-agent": "Waypost",
        "accept": "application/json, */*;q=0.5",
        "accept-encoding": "identity",
    }
    assert log(result) == f"POST {server.address}/v1/a%20b/jobs?… 201 9 bytes N ms\n"


def test_a_text_body_is_sent_as_it_is(bench: Bench, server: Server) -> None:
    step = http(f"{server.address}/", method="PUT", body="Hello ${ params.x }\n", parse="text")

    assert output(bench.run(step, {"params": {"x": "wörld"}})) == "null"
    assert (server.asked[0].method, server.asked[0].body) == ("PUT", "Hello wörld\n".encode())
    assert server.asked[0].headers["content-type"] == "text/plain; charset=utf-8"


def test_null_is_a_json_body_and_headers_of_the_file_come_first(bench: Bench, server: Server) -> None:
    step = http(
        f"{server.address}/",
        method="PATCH",
        json=None,
        headers={"content-type": "application/merge-patch+json", "USER-AGENT": "me", "idempotency-key": "mine"},
    )

    bench.run(step)

    [asked] = server.asked
    assert asked.body == b"null"
    assert asked.headers["content-type"] == "application/merge-patch+json"
    assert asked.headers["user-agent"] == "me"
    assert asked.headers["idempotency-key"] == "mine"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_carries_the_dispatch_id_in_the_header_that_the_file_names(
    bench: Bench, server: Server, method: str
) -> None:
    bench.run(http(f"{server.address}/", method=method))
    bench.run(http(f"{server.address}/", method=method, idempotency_header="X-Request-Id"))

    usual, renamed = (asked.headers for asked in server.asked)
    assert usual["idempotency-key"] == DISPATCH_ID
    assert renamed["x-request-id"] == DISPATCH_ID
    assert "idempotency-key" not in renamed


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_read_carries_no_dispatch_id(bench: Bench, server: Server, method: str) -> None:
    assert output(bench.run(http(f"{server.address}/", method=method))) is None

    assert "idempotency-key" not in server.asked[0].headers


def test_a_missing_secret_or_one_that_no_header_can_hold_sends_nothing(bench: Bench, server: Server) -> None:
    bench.secrets["broken"] = "two\nlines"

    assert failure(bench.run(http(server.address, auth={"secret": "absent"}))) == (
        "failed",
        "secret_missing",
        'Secret "absent" has no value on this server. Set WAYPOST_SECRET_ABSENT for the workers.',
    )
    assert failure(bench.run(http(server.address, headers={"X": {"secret": "broken"}}))) == (
        "failed",
        "secret_missing",
        'Secret "broken" contains a character that no header can hold. Set WAYPOST_SECRET_BROKEN for the workers.',
    )
    assert server.asked == []


def test_proxies_and_netrc_of_the_environment_are_not_used(
    bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")

    assert output(bench.run(http(server.address))) is None
    assert "authorization" not in server.asked[0].headers


def test_the_client_is_loaded_with_the_first_request_only() -> None:
    code = "import workflows.steps.http, sys; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "False\n"


# ---- statuses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 299, 302, 304])
def test_statuses_below_400_are_ok(bench: Bench, server: Server, status: int) -> None:
    server.answers("/", "" if status == 304 else "5", status)

    result = bench.run(http(f"{server.address}/", method="POST"))

    assert (result.outcome, output(result)) == ("ok", None if status == 304 else 5)


def test_a_named_status_is_an_outcome_and_keeps_the_output(bench: Bench, server: Server) -> None:
    server.answers("/", '{"owner": "alice"}', 409)

    result = bench.run(http(server.address + "/", method="POST", statuses={"conflict": [409, 423]}))

    assert (result.outcome, output(result)) == ("conflict", {"owner": "alice"})


def test_a_named_status_is_an_outcome_whatever_its_body_says(bench: Bench, server: Server) -> None:
    server.answers("/", "<h1>Gone</h1>", 410)
    step = http(server.address + "/", statuses={"gone": [404, 410]}, schema={"type": "object"})

    result = bench.run(step)

    assert (result.outcome, output(result)) == ("gone", None)
    assert log(result) == (
        f"GET {server.address}/ 410 13 bytes N ms\nThe body is not JSON: Expecting value: line 1 column 1 (char 0).\n"
    )


def test_a_named_success_must_fit_the_schema(bench: Bench, server: Server) -> None:
    server.answers("/", "[]", 201)

    result = bench.run(http(server.address + "/", statuses={"created": [201]}, schema={"type": "object"}))

    assert failure(result) == (
        "failed",
        "invalid_output",
        'The output does not fit the schema of the step: output: [] is not of type "object".',
    )


@pytest.mark.parametrize("status", [400, 401, 404, 418, 500, 503, 599])
def test_other_statuses_from_400_fail_with_the_start_of_the_body(bench: Bench, server: Server, status: int) -> None:
    names = {
        400: "400 Bad Request",
        401: "401 Unauthorized",
        404: "404 Not Found",
        418: "418 I'm a Teapot",
        500: "500 Internal Server Error",
        503: "503 Service Unavailable",
        599: "599",
    }
    server.answers("/a", '{\n  "error": "no"\n}', status)

    result = bench.run(http(f"{server.address}/a?token=hidden"))

    assert failure(result) == (
        "failed",
        "http_status",
        f'GET {server.address}/a?… was answered with {names[status]}: {{ "error": "no" }}',
    )
    assert log(result) == f"GET {server.address}/a?… {status} 19 bytes N ms\n"


def test_a_long_body_of_a_failure_is_cut_in_the_message(bench: Bench, server: Server) -> None:
    server.answers("/", "x" * MIB, 500)

    outcome, code, message = failure(bench.run(http(server.address + "/")))

    assert (outcome, code) == ("failed", "http_status")
    assert message == f"GET {server.address}/ was answered with 500 Internal Server Error: {'x' * 497}…"


def test_too_many_requests_are_rate_limited_and_say_when_to_come_back(bench: Bench, server: Server) -> None:
    server.answers("/", "slow down", 429, {"Retry-After": "30"})

    result = bench.run(http(server.address + "/"))

    assert failure(result) == (
        "failed",
        "rate_limited",
        f"GET {server.address}/ was answered with 429 Too Many Requests: slow down (The server asks to wait 30 s.)",
    )
    assert result.retry_after_ms == 30_000


def test_a_moment_to_come_back_is_counted_from_the_date_of_the_answer(bench: Bench, server: Server) -> None:
    dates = {"Date": "Mon, 30 Nov 2026 18:00:00 GMT", "Retry-After": "Mon, 30 Nov 2026 18:01:30 GMT"}
    server.answers("/", "", 503, dates)

    result = bench.run(http(server.address + "/"))

    assert failure(result) == (
        "failed",
        "http_status",
        f"GET {server.address}/ was answered with 503 Service Unavailable. (The server asks to wait 90 s.)",
    )
    assert result.retry_after_ms == 90_000


# ---- the body --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 202, 204])
def test_an_empty_body_is_null(bench: Bench, server: Server, status: int) -> None:
    server.answers("/", "", status)

    assert output(bench.run(http(server.address + "/", method="DELETE"))) is None
    assert failure(bench.run(http(server.address + "/", schema={"type": "object"})))[1:] == (
        "invalid_output",
        'The output does not fit the schema of the step: output: null is not of type "object".',
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("OK", "The body is not JSON: Expecting value: line 1 column 1 (char 0)."),
        ("{} {}", "The body is not JSON: Extra data: line 1 column 4 (char 3)."),
        ("NaN", "The body is not JSON: NaN is not a JSON number."),
        ('{"a": 1, "a": 2}', 'The body is not JSON: key "a" appears twice.'),
        ("[" * 100_000, "The body is nested too deeply to be read as JSON."),
    ],
)
def test_a_body_that_is_not_json_is_invalid_output(bench: Bench, server: Server, body: str, message: str) -> None:
    server.answers("/", body)

    assert failure(bench.run(http(server.address + "/"))) == ("failed", "invalid_output", message)


def test_text_is_kept_as_it_is_and_none_is_null(bench: Bench, server: Server) -> None:
    server.answers("/", " text\r\n\n")

    assert output(bench.run(http(server.address + "/", parse="text"))) == " text\r\n\n"
    assert output(bench.run(http(server.address + "/", parse="none"))) is None


def test_text_is_read_by_its_charset_and_what_cannot_be_stored_is_replaced(bench: Bench, server: Server) -> None:
    server.answers("/latin", "grün".encode("latin-1"), headers={"Content-Type": "text/plain; charset=ISO-8859-1"})
    server.answers("/odd", "grün".encode(), headers={"Content-Type": 'text/plain; charset="rot13"'})
    server.answers("/broken", b"gr\xfcn\0")
    server.answers("/json", '\ufeff{"a\\u0000": "\\ud800"}')

    latin, odd, broken = (
        bench.run(http(server.address + path, parse="text")) for path in ("/latin", "/odd", "/broken")
    )
    json = bench.run(http(server.address + "/json"))

    assert (output(latin), latin.repaired) == ("grün", False)
    assert (output(odd), odd.repaired) == ("grün", False)
    assert (output(broken), broken.repaired) == ("gr\ufffdn\ufffd", True)
    assert (output(json), json.repaired) == ({"a\ufffd": "\ufffd"}, True)


def test_json_of_one_mebibyte_is_kept_and_more_is_too_large(bench: Bench, server: Server) -> None:
    server.answers("/fits", '"' + "x" * (MIB - 2) + '"')
    server.answers("/more", '"' + "x" * (MIB - 1) + '"')

    assert output(bench.run(http(server.address + "/fits"))) == "x" * (MIB - 2)
    assert failure(bench.run(http(server.address + "/more"))) == (
        "failed",
        "output_too_large",
        "The body is longer than the 1,048,576 bytes that `parse: json` takes.",
    )


def test_long_text_is_cut_at_a_whole_character_and_marked(bench: Bench, server: Server) -> None:
    server.answers("/", "ä" * MIB)

    result = bench.run(http(server.address + "/", parse="text"))

    text = output(result)
    assert result.output is not None
    assert result.output.size <= MIB
    assert text.endswith("ä\n… cut: the body was longer than 1,048,576 bytes")
    assert result.repaired is False


@pytest.mark.parametrize("parse", ["json", "text", "none"])
def test_an_endless_body_ends_at_the_limit(bench: Bench, server: Server, parse: str) -> None:
    def endless(conversation: Conversation) -> None:
        conversation.send_raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while conversation.send_raw(b"x" * 65536):
            pass

    server.on("/", endless)

    result = bench.run(http(server.address + "/", parse=parse))

    assert server.gone.wait(5)
    if parse == "json":
        assert failure(result)[1] == "output_too_large"
    else:
        assert result.outcome == "ok"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_is_decompressed_within_the_limit(bench: Bench, server: Server, encoding: str) -> None:
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    server.answers("/", compress(b'{"a": 1}'), headers={"Content-Encoding": encoding})
    server.answers("/bomb", compress(b" " * 200 * MIB), headers={"Content-Encoding": encoding})

    assert output(bench.run(http(server.address + "/"))) == {"a": 1}
    assert failure(bench.run(http(server.address + "/bomb")))[1] == "output_too_large"


def test_a_body_in_an_encoding_that_cannot_be_read_is_invalid_output(bench: Bench, server: Server) -> None:
    server.answers("/br", "xx", headers={"Content-Encoding": "br"})
    server.answers("/gzip", "xx", headers={"Content-Encoding": "gzip"})

    assert failure(bench.run(http(server.address + "/br")))[1:] == (
        "invalid_output",
        'The response cannot be read: its body is encoded as "br", which was not asked for.',
    )
    assert failure(bench.run(http(server.address + "/gzip")))[1:] == (
        "invalid_output",
        "The response cannot be read: its body cannot be decompressed.",
    )


def test_secrets_that_a_server_repeats_are_masked_everywhere(bench: Bench, server: Server) -> None:
    bench.secrets["key"] = "hush-hush"
    server.answers("/ok", '{"you": "Bearer hush-hush"}')
    server.answers("/bad", "unknown key hush-hush", 401)
    server.answers("/text", "a hush-hush b")
    server.answers("/odd", "hush-hush")

    def run(path: str, **keys: Any) -> Result:
        return bench.run(http(server.address + path, auth={"secret": "key"}, **keys))

    assert output(run("/ok")) == {"you": "Bearer ***"}
    assert output(run("/text", parse="text")) == "a *** b"
    assert failure(run("/bad"))[2] == f"GET {server.address}/bad was answered with 401 Unauthorized: unknown key ***"
    leaked = run("/hush-hush")
    assert "hush" not in leaked.log
    assert server.asked[0].headers["authorization"] == "Bearer hush-hush"


def test_each_attempt_reads_the_secret_anew(bench: Bench, server: Server) -> None:
    step = http(server.address, auth={"secret": "key"})
    for value in ("first-value", "second-value"):
        bench.secrets["key"] = value
        assert replace(bench.run(step), log="").outcome == "ok"

    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer first-value", "Bearer second-value"]
