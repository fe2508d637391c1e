"""How the body of a response becomes the output of an http step. Pure."""

from __future__ import annotations

import codecs
import re
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from workflows.engine.results import MIB, OUTPUT_LIMIT, short
from workflows.engine.secrets import Masker
from workflows.jsonvalue import clean_text, repair
from workflows.steps.json_text import beginning, json_size, read_strictly

BODY_LIMIT = MIB
#: How much of the body a failure quotes.
QUOTED_LIMIT = 500
#: No server makes a step wait longer than this.
LONGEST_RETRY_AFTER = timedelta(days=1)

#: Others decode slowly, or are not meant for text.
_CHARSETS = re.compile(
    r"utf-8|utf-16(-le|-be)?|ascii|iso8859-\d+|cp125\d|cp932|shift_jis|euc_(jp|kr)|gb(2312|k|18030)|big5|koi8-[ru]"
)


class UnusableBody(Exception):
    """The body is not what ``parse`` says. ``code`` is a failure code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def parse_body(body: bytes, *, whole: bool, content_type: str, parse: str, masker: Masker) -> tuple[Any, bool]:
    """The output by ``parse`` and whether characters were replaced. An empty body is null as JSON.

    ``whole`` False: ``body`` is only the beginning. Raises :class:`UnusableBody`.
    """
    if parse == "none":
        return None, False
    if parse == "json" and not whole:
        raise UnusableBody(
            "output_too_large", f"The body is longer than the {BODY_LIMIT:,} bytes that `parse: json` takes."
        )
    text, repaired = decoded(body, whole=whole, content_type=content_type)
    if parse == "json":
        value, changed = _parse_json(text, masker)
        return masker.value(value), repaired or changed
    text = masker.text(text)
    return _fitted(text if whole else masker.cut_end(text), whole=whole), repaired


def quoted(body: bytes, *, whole: bool, content_type: str, masker: Masker) -> str:
    """The start of the body of a failure on one line, for its message; empty when there is nothing to show."""
    text = masker.text(decoded(body, whole=whole, content_type=content_type)[0])
    return short(" ".join((text if whole else masker.cut_end(text)).split()), QUOTED_LIMIT)


def decoded(body: bytes, *, whole: bool, content_type: str) -> tuple[str, bool]:
    """Text by the charset of the response (UTF-8 without a usable one), and whether characters were replaced."""
    charset = charset_of(content_type)
    try:
        text, replaced = codecs.getincrementaldecoder(charset)("strict").decode(body, final=whole), False
    except UnicodeDecodeError:
        text, replaced = codecs.getincrementaldecoder(charset)("replace").decode(body, final=whole), True
    cleaned, changed = clean_text(text.removeprefix("\ufeff"))
    return cleaned, replaced or changed


def charset_of(content_type: str) -> str:
    message = Message()
    message["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    try:
        name = codecs.lookup(message.get_content_charset("utf-8")).name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CHARSETS.fullmatch(name) else "utf-8"


def retry_after_ms(value: str | None, date: str | None) -> int | None:
    """Milliseconds of a ``Retry-After`` header (RFC 9110 §10.2.3): seconds, or a moment; None without a usable one.

    A moment is compared with the ``Date`` of the same response, so that the clocks need not agree.
    """
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        wait = timedelta(seconds=int(value))
    else:
        moment = _moment(value)
        if moment is None:
            return None
        wait = moment - (_moment(date) or datetime.now(UTC))
    return int(min(max(wait, timedelta()), LONGEST_RETRY_AFTER) / timedelta(milliseconds=1))


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _parse_json(text: str, masker: Masker) -> tuple[Any, bool]:
    if not text.strip():
        return None, False
    try:
        return repair(read_strictly(text))
    except RecursionError:
        raise UnusableBody("invalid_output", "The body is nested too deeply to be read as JSON.") from None
    except ValueError as error:
        raise UnusableBody("invalid_output", f"The body is not JSON: {masker.text(str(error))}.") from None


def _fitted(text: str, *, whole: bool) -> str:
    if whole and json_size(text) <= OUTPUT_LIMIT:
        return text
    mark = f"\n… cut: the body was longer than {OUTPUT_LIMIT:,} bytes"
    # Both texts are counted with their quotes, and only one pair stays.
    return beginning(text, OUTPUT_LIMIT + 2 - json_size(mark)) + mark
