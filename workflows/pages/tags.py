"""Words of the templates, built in everywhere: statuses, times, text of runs, people, JSON.

Text that a run supplied is always escaped, and isolated with ``<bdi>`` so that its writing direction stays its own.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from workflows.pages import icons
from workflows.pages.causes import CAUSES
from workflows.pages.wording import age_words, count_words, duration_words, exact_words, rough_words
from workflows.queries.inbox import MOST_COUNTED, count_waiting_for
from workflows.queries.run_list import IN_LINE
from workflows.queries.waiting import LATER

register = template.Library()

THEMES = ("auto", "light", "dark")
#: A page shows no more of one value; the rest is behind a link.
MOST_CHARACTERS = 20_000
#: A sentence that tells what to type in a shell, except for what only the server's shell can do.
_OF_A_SHELL = re.compile(r"`(--?\w|(python manage\.py )?(runs|workflows|run_workflow) )")
_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")


@register.simple_tag
def icon(name: str) -> SafeString:
    return icons.picture(name)


@register.simple_tag
def status(value: Any, word: str = "") -> SafeString:
    """A status as picture and word, never as colour alone. One that this version does not know is shown as it is."""
    text = str(value)
    css = text if _WORD.match(text) else "unknown"
    return format_html(
        '<span class="status status-{}">{}<span>{}</span></span>', css, icons.picture(text), word or text
    )


@register.filter
def age(value: datetime | str | None) -> SafeString:
    """``3 min ago`` or ``in 2 h``, with the exact moment for who looks closer and for machines."""
    at = _moment(value)
    return SafeString("–") if at is None else _time(at, age_words(timezone.now() - at), is_age=True)


@register.filter
def soon(value: datetime | str | None) -> bool:
    """Whether a moment is less than an hour away, or over."""
    at = _moment(value)
    return at is not None and at - timezone.now() < timedelta(hours=1)


@register.filter
def over(value: datetime | str | None) -> bool:
    """Whether a moment has passed."""
    at = _moment(value)
    return at is not None and at <= timezone.now()


@register.filter
def exact(value: datetime | str | None) -> SafeString:
    """The moment in UTC, to the second."""
    at = _moment(value)
    return SafeString("–") if at is None else _time(at, exact_words(at))


@register.filter
def wall(value: datetime | None) -> str:
    """A moment as the clock of its own zone shows it, with the zone."""
    return "–" if value is None else f"{value:%a %Y-%m-%d %H:%M} {value.tzname()}"


@register.filter
def duration(value: timedelta | float | None) -> str:
    """A length of time; numbers are milliseconds."""
    if value is None:
        return "–"
    return duration_words(value if isinstance(value, timedelta) else timedelta(milliseconds=value))


@register.simple_tag
def lasted(start: datetime | str | None, end: datetime | str | None = None) -> str:
    """From ``start`` to ``end``, or until now while there is no end."""
    begun = _moment(start)
    return "–" if begun is None else duration_words((_moment(end) or timezone.now()) - begun)


@register.simple_tag
def lasted_so_far(start: datetime | str | None) -> str:
    """The length of what goes on, with one unit: it is not exact for long."""
    begun = _moment(start)
    return "–" if begun is None else rough_words(timezone.now() - begun)


@register.filter
def count(value: int | None) -> str:
    return "–" if value is None else count_words(value)


@register.filter
def bdi(value: Any) -> SafeString:
    """Text of a run or of a person. Its direction stays inside."""
    return format_html("<bdi>{}</bdi>", "" if value is None else value)


@register.filter
def person(value: str | None) -> SafeString:
    """Who did something, as it was recorded: ``ann``, ``shell:root as ann``."""
    return format_html('<bdi class="person">{}</bdi>', value) if value else SafeString("–")


@register.filter
def cut(value: Any, limit: int = 200) -> SafeString:
    """At most ``limit`` characters of a text, isolated; the whole is the title when it is not too long for one."""
    text = "" if value is None else str(value)
    if len(text) <= limit:
        return format_html("<bdi>{}</bdi>", text)
    return format_html('<bdi title="{}">{}…</bdi>', text[: limit * 5], text[: limit - 1])


@register.simple_tag
def long_text(value: Any, href: str = "", limit: int = MOST_CHARACTERS) -> SafeString:
    """A text in its own lines. What is beyond ``limit`` is left out, with a link to the whole if there is one."""
    text = "" if value is None else str(value)
    shown = format_html('<pre class="text"><bdi>{}</bdi></pre>', text[:limit])
    if len(text) <= limit:
        return shown
    return format_html("{}{}", shown, _cut_note(len(text), limit, href))


@register.simple_tag
def json_text(value: Any, href: str = "", limit: int = MOST_CHARACTERS) -> SafeString:
    """A value as indented JSON; cut like ``long_text``."""
    text = pretty(value)
    shown = format_html('<pre class="json"><bdi>{}</bdi></pre>', text[:limit])
    if len(text) <= limit:
        return shown
    return format_html("{}{}", shown, _cut_note(len(text), limit, href))


@register.simple_tag
def shown_value(value: Any, href: str = "", limit: int = MOST_CHARACTERS) -> SafeString:
    """A value among words: short texts and numbers in the line, everything else in lines of its own."""
    if isinstance(value, str):
        return bdi(value) if len(value) <= 200 and "\n" not in value else long_text(value, href, limit)
    if isinstance(value, (bool, int, float)) or value is None:
        return format_html("<code>{}</code>", pretty(value))
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= 100:
        return format_html("<code><bdi>{}</bdi></code>", line)
    return json_text(value, href, limit)


@register.filter
def coded(value: Any) -> SafeString:
    """The text of a sentence of ours, with what stands in backticks as code."""
    parts = str(conditional_escape(value)).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner means nothing
        return SafeString("`".join(parts))
    marked = [part if index % 2 == 0 else f"<code>{part}</code>" for index, part in enumerate(parts)]
    return mark_safe("".join(marked))  # noqa: S308 # escaped above


@register.filter
def cause_words(value: str) -> str:
    """What a run waits for, in words; a cause that this version does not know is shown as it is."""
    if value == LATER:
        return "starts later"
    if value == IN_LINE:
        return "waits in line for a free place"
    return f"waits for {CAUSES[value]}" if value in CAUSES else value


@register.filter
def startswith(value: Any, beginning: str) -> bool:
    return str(value).startswith(beginning)


@register.filter
def words(value: str) -> list[str]:
    """The words of a text, to go through."""
    return value.split()


@register.filter
def page_message(value: Any) -> str:
    """A sentence of ours without the name of the option that a command has for it: ``(`--reason`)``."""
    return re.sub(r" \(`--[a-z-]+`\)", "", str(value or ""))


@register.filter
def page_hint(value: Any) -> str:
    """A hint without the sentences about commands: on a page there is another way to do it."""
    sentences = re.split(r"(?<=[.!?])\s+", str(value or ""))
    return " ".join(sentence for sentence in sentences if not _OF_A_SHELL.search(sentence))


@register.simple_tag(takes_context=True)
def inbox_count(context: template.Context) -> str:
    """How many questions wait for the person that looks; empty for none. ``my_inbox``: what the page has read of them
    already."""
    request, read = context.get("request"), context.get("my_inbox")
    if request is None or not request.user.is_authenticated:
        return ""
    found = read.count if read is not None else count_waiting_for(request.user)
    return f"{found}+" if found >= MOST_COUNTED else str(found or "")


@register.simple_tag(takes_context=True)
def theme(context: template.Context) -> str:
    """The theme that this browser chose: auto, light or dark."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request is not None else ""
    return chosen if chosen in THEMES else "auto"


def pretty(value: Any) -> str:
    """A value as people read JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def _cut_note(length: int, limit: int, href: str) -> SafeString:
    note = f"{count_words(limit)} of {count_words(length)} characters are shown."
    if not href:
        return format_html('<p class="cut-note">{}</p>', note)
    return format_html('<p class="cut-note">{} <a href="{}">Show all of it</a></p>', note, href)


def _moment(value: datetime | str | None) -> datetime | None:
    if not value:
        return None
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC)


def _time(at: datetime, words: str, *, is_age: bool = False) -> SafeString:
    machine = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    mark = mark_safe(" data-age") if is_age else ""
    return format_html('<time datetime="{}" title="{}"{}>{}</time>', machine, exact_words(at), mark, words)
