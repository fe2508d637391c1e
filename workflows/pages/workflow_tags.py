"""Words of the templates about workflows: ``{% load workflow %}``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from workflows.pages.wording import duration_words
from workflows.queries.workflow_pages import Bar, summary_of

register = template.Library()
register.filter("summary", summary_of)

_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_ENTRY = re.compile(r"[-*] +")


@register.filter
def prose(text: str) -> SafeString:
    """A description with paragraphs, lists, `code` and **bold**. Everything else of Markdown stays as it is written,
    so nothing in a file can become a link or a picture."""
    blocks = [block for block in re.split(r"\n\s*\n", text.strip()) if block.strip()]
    return mark_safe("".join(_block(block.splitlines()) for block in blocks))  # noqa: S308 # escaped line by line


def _block(lines: list[str]) -> str:
    stripped = [line.strip() for line in lines]
    if all(_ENTRY.match(line) for line in stripped):
        return "<ul>" + "".join(f"<li>{_marked(_ENTRY.sub('', line, count=1))}</li>" for line in stripped) + "</ul>"
    return f"<p>{_marked(' '.join(stripped))}</p>"


def _marked(text: str) -> str:
    marked = _BOLD.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", str(escape(text))))
    return f"<bdi>{marked}</bdi>"


@register.filter
def bar_words(bar: Bar) -> str:
    """A run of a strip in words."""
    took = f" in {duration_words(timedelta(seconds=bar.seconds))}" if bar.seconds is not None else ""
    return f"Run {bar.run}: {bar.status}{took}"


@register.simple_tag
def lines_of(text: str, marked: Iterable[int] = (), prefix: str = "line-") -> SafeString:
    """A text as numbered lines that can be linked to; ``marked`` lines stand out."""
    chosen = set(marked)
    rows = [
        format_html(
            '<li id="{}{}"{}><code>{}</code></li>',
            prefix,
            number,
            mark_safe(' class="is-marked"') if number in chosen else "",
            line,
        )
        for number, line in enumerate(text.splitlines(), start=1)
    ]
    return format_html('<ol class="source">{}</ol>', mark_safe("".join(rows)))  # noqa: S308 # escaped one by one


@register.filter
def next_number(number: int) -> int:
    return number + 1
