"""What expressions may put where in an address (docs/format.md, ``url``)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.steps.http_steps import http
from tests.steps.support import enter
from workflows.engine.contract import Effect
from workflows.expressions import BadExpression
from workflows.steps.http_address import shown_address


def address(url: Any, x: Any = None, **keys: Any) -> str:
    effect = enter(http(url, **keys), params={"x": x})
    assert isinstance(effect, Effect)
    return str(effect.inputs["url"])


def refused(url: Any, x: Any = None, **keys: Any) -> str:
    with pytest.raises(BadExpression) as caught:
        address(url, x, **keys)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        ("a/b", "a/b"),
        ("a b", "a%20b"),
        ("a?b=1", "a%3Fb%3D1"),
        ("a#b", "a%23b"),
        ("100%", "100%25"),
        ("%2e%2e", "%252e%252e"),
        ("a\\b", "a%5Cb"),
        ("user@host", "user%40host"),
        ("grün/日本", "gr%C3%BCn/%E6%97%A5%E6%9C%AC"),
        ("line\nbreak", "line%0Abreak"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("", ""),
        (7, "7"),
        (True, "true"),
        ([1, "a"], "%5B1%2C%22a%22%5D"),
    ],
)
def test_an_expression_in_the_path_is_encoded_and_its_slashes_are_kept(value: Any, written: str) -> None:
    assert address("https://example.com/v1/${ params.x }/jobs", value) == f"https://example.com/v1/{written}/jobs"


@pytest.mark.parametrize("value", ["..", ".", "a/../b", "../../admin", "a/.."])
def test_an_expression_cannot_leave_the_path_of_the_file(value: str) -> None:
    assert refused("https://example.com/v1/${ params.x }", value) == (
        f'The path of "url" would contain a "." or ".." segment: the text "https://example.com/v1/{value}". '
        "Expressions cannot leave the path that is written in the file."
    )


def test_dots_that_only_together_with_the_file_make_a_segment_are_refused() -> None:
    assert "segment" in refused("https://example.com/v1/.${ params.x }/a", ".")
    assert "segment" in refused("https://example.com/v1/%2e${ params.x }/a", ".")


@pytest.mark.parametrize("value", ["eu-1", "a.b", "10", "X"])
def test_an_expression_in_the_host_may_hold_letters_digits_dots_and_dashes(value: str) -> None:
    assert address("https://${ params.x }.example.com/healthz", value) == f"https://{value}.example.com/healthz"


@pytest.mark.parametrize("value", ["evil.com/", "a@b", "a:80", "a#", "a?b", "a\\b", "bücher", "a%2e", "a b", ""])
def test_everything_else_in_the_host_is_refused(value: str) -> None:
    assert refused("https://${ params.x }.example.com/healthz", value) == (
        f'An expression in the host of "url" gives the text "{value}"; only letters, digits, "." and "-" are allowed '
        'there. Write the "/" that ends the host before the expression.'
    )


def test_a_host_that_the_file_did_not_end_goes_on_in_the_expression() -> None:
    assert "in the host" in refused("https://example.com${ params.x }", "/path")
    assert "in the host" in refused("https://example.com${ params.x }/", "@evil.com")


def test_the_port_may_be_computed() -> None:
    assert address("http://127.0.0.1:${ params.x }/a", 8080) == "http://127.0.0.1:8080/a"
    assert "must be an http or https address" in refused("http://127.0.0.1:${ params.x }/a", "eighty")
    assert "must be an http or https address" in refused("http://127.0.0.1:${ params.x }/a", 65536)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/jobs"),
        ("https://example.com/base path", "https://example.com/base%20path/jobs"),
        ("HTTPS://Example.com", "HTTPS://Example.com/jobs"),
    ],
)
def test_an_expression_at_the_start_gives_the_base_address(value: str, written: str) -> None:
    assert address("${ params.x }/jobs", value) == written


def test_an_address_may_be_one_expression_and_its_scheme_another() -> None:
    assert address("${ params.x }", "http://example.com/a") == "http://example.com/a"
    assert address("${ params.x }://example.com/a", "https") == "https://example.com/a"


@pytest.mark.parametrize(
    "value",
    [
        "ftp://example.com",
        "example.com",
        "https://a@b",
        "https://a/b?c=1",
        "https://a/%2e%2e",
        "https://a/b#c",
        "",
        "//a",
    ],
)
def test_other_texts_at_the_start_are_refused(value: str) -> None:
    assert refused("${ params.x }", value) == (
        f'The expression at the start of "url" gives the text "{value}"; it must give http:// or https:// with '
        'a host and, if any, a path without "?", "#", "%" and "\\".'
    )


def test_an_expression_cannot_complete_the_scheme() -> None:
    assert "must be an http or https address" in refused("https:/${ params.x }", "/evil.com")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, '"url" must be text, but it is null.'),
        (7, '"url" must be text, but it is the number 7.'),
        (["https://a"], '"url" must be text, but it is a list.'),
    ],
)
def test_an_address_that_is_no_text_is_refused(value: Any, words: str) -> None:
    assert refused("${ params.x }", value) == words


def test_null_inside_an_address_is_refused() -> None:
    assert refused("https://example.com/${ params.x }") == (
        'The expression "params.x" is null, which has no text; write a fallback, '
        'e.g. ${ params.x != null ? params.x : "none" }.'
    )


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "/path",
        "https://",
        "https:///a",
        "https://me:pass@example.com/",
        "https://a b/",
        "https://a:x/",
        "file:///etc/passwd",
    ],
)
def test_only_http_and_https_with_a_host_and_without_a_user(url: str) -> None:
    assert refused(url) == (
        '"url" must be an http or https address with a host and without a user name, such as '
        f'https://example.com/path, but it is the text "{url}".'
    )


def test_fixed_text_stays_as_it_is_without_its_fragment() -> None:
    assert address("https://[::1]:8000/a/../b?c=%20d#e") == "https://[::1]:8000/a/../b?c=%20d"


def test_an_expression_in_the_query_of_the_address_gives_one_value() -> None:
    assert address("https://example.com/?q=${ params.x }&n=1", "a&b=c+d/e?") == (
        "https://example.com/?q=a%26b%3Dc%2Bd/e%3F&n=1"
    )


def test_the_query_leaves_null_out_and_repeats_lists() -> None:
    query = {
        "text": "a b&c",
        "number": 10,
        "double": 0.5,
        "yes": True,
        "list": [1, None, "two"],
        "nothing": "${ params.x }",
        "empty": "",
        "mapping": {"b": 1, "a": None},
        "ä&": "ö",
    }

    assert address("https://example.com/a", query=query) == (
        "https://example.com/a?text=a%20b%26c&number=10&double=0.5&yes=true&list=1&list=two&empty="
        "&mapping=%7B%22a%22%3Anull%2C%22b%22%3A1%7D&%C3%A4%26=%C3%B6"
    )


def test_the_query_is_added_to_that_of_the_address() -> None:
    assert address("https://example.com/a?b=1", query={"c": 2}) == "https://example.com/a?b=1&c=2"
    assert address("https://example.com/a?", query={"c": 2}) == "https://example.com/a?c=2"
    assert address("https://example.com/a?b=1#f", query={"c": "${ params.x }"}) == "https://example.com/a?b=1"


def test_the_query_must_be_a_mapping_and_the_address_of_bounded_length() -> None:
    assert refused("https://example.com/", "a=b", query="${ params.x }") == (
        '"query" must be a mapping, but it is the text "a=b".'
    )
    assert refused("https://example.com/${ params.x }", "a" * 40_000) == (
        '"url" is 40,020 characters long; the limit is 32,768.'
    )


def test_an_address_is_shown_without_its_query() -> None:
    assert shown_address("https://example.com/a?token=secret") == "https://example.com/a?…"
    assert shown_address("https://example.com/a") == "https://example.com/a"
    assert shown_address("https://example.com/" + "a" * 600) == "https://example.com/" + "a" * 480 + "…"
