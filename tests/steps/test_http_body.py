"""The body of a response as text, as JSON and as a quotation, and the header ``Retry-After``."""

from __future__ import annotations

import pytest

from workflows.engine.secrets import Masker
from workflows.steps.http_body import charset_of, decoded, parse_body, quoted, retry_after_ms

NOBODY = Masker()
DATE = "Mon, 30 Nov 2026 18:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (None, None),
        ("0", 0),
        (" 120 ", 120_000),
        ("Mon, 30 Nov 2026 18:00:10 GMT", 10_000),
        ("Monday, 30-Nov-26 18:00:10 GMT", 10_000),
        ("Mon Nov 30 18:00:10 2026", 10_000),
        ("Mon, 30 Nov 2026 17:00:00 GMT", 0),
        ("999999999", 86_400_000),
        ("Mon, 30 Nov 9999 18:00:00 GMT", 86_400_000),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("9" * 30, None),
    ],
)
def test_the_wait_that_a_server_asks_for(value: str | None, milliseconds: int | None) -> None:
    assert retry_after_ms(value, DATE) == milliseconds


def test_without_a_date_the_own_clock_counts() -> None:
    assert retry_after_ms("Mon, 30 Nov 2020 18:00:00 GMT", None) == 0
    assert retry_after_ms("Mon, 30 Nov 2020 18:00:00 GMT", "no date") == 0


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        ("", "utf-8"),
        ("application/json", "utf-8"),
        ("text/html; charset=UTF-8", "utf-8"),
        ('text/html; x=y; charset="iso-8859-1"', "iso8859-1"),
        ("text/html; charset=windows-1252", "cp1252"),
        ("text/html; charset=nothing", "utf-8"),
        ("text/html; charset=punycode", "utf-8"),
        ("text/html; charset=unicode_escape", "utf-8"),
        ("text/html; charset=base64", "utf-8"),
        ("text/html; charset=", "utf-8"),
        ("; charset=\r\n", "utf-8"),
    ],
)
def test_only_charsets_for_text_are_used(content_type: str, charset: str) -> None:
    assert charset_of(content_type) == charset


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "shift_jis", "gb18030"])
def test_a_body_that_was_cut_inside_a_character_loses_only_that_character(charset: str) -> None:
    data = "日本".encode(charset)

    text, repaired = decoded(data[:-1], whole=False, content_type=f"text/plain; charset={charset}")

    assert (text, repaired) == ("日", False)


def test_a_quotation_is_one_short_line_without_secrets() -> None:
    masker = Masker(["hush-hush"])

    assert quoted(b"<p>\n  no hush-hush\t!</p>", whole=True, content_type="", masker=masker) == "<p> no *** !</p>"
    assert quoted(b"your key is hush-", whole=False, content_type="", masker=masker) == "your key is ***"
    assert quoted(b"x" * 600, whole=True, content_type="", masker=NOBODY) == "x" * 497 + "…"
    assert quoted(b" \n", whole=True, content_type="", masker=NOBODY) == ""


def test_text_that_grows_as_json_is_cut_so_that_it_can_be_stored() -> None:
    text, repaired = parse_body(b'"' * 1_000_000, whole=True, content_type="", parse="text", masker=NOBODY)

    assert text.endswith('"\n… cut: the body was longer than 1,048,576 bytes')
    assert text.count('"') == 524_261
    assert repaired is False
