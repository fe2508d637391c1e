"""Words of the templates of a run: ``{% load runs %}``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString

from workflows.pages import run_context
from workflows.pages.wording import count_words, duration_words
from workflows.queries.schedules import schedule_of_run
from workflows.queries.timeline import Bar, Counts, Fold

register = template.Library()

#: Steps of indentation that the style sheet knows.
MOST_DEPTH = 8
#: Characters of a member of an event that are shown.
MOST_MEMBER = 300

_ORIGINS = {
    "cli": "from a shell",
    "page": "on this site",
    "api": "through the interface for programs",
    "schedule": "by its schedule",
    "child": "as a child run",
    "fork": "as a fork",
}
#: Picture and colour of a reason, by its code.
_REASONS = {
    "held": "paused",
    "people": "question",
    "signal": "inbox",
    "timer": "clock",
    "retry": "waiting",
    "child": "runs",
    "concurrency": "queued",
    "limit": "queued",
    "reconcile": "interrupted",
    "missing_code": "blocked",
    "silent_worker": "worker",
    "worker_lost": "worker",
    "no_worker": "worker",
    "unknown_engine": "worker",
    "crashes": "warning",
    "run.poisoned": "failed",
}
_COLOURS = {
    "held": "paused",
    "people": "paused",
    "reconcile": "blocked",
    "missing_code": "blocked",
    "no_worker": "blocked",
    "worker_lost": "blocked",
    "silent_worker": "blocked",
    "unknown_engine": "blocked",
    "crashes": "failed",
    "run.poisoned": "failed",
}
_EVENTS = {
    "run_started": "run started",
    "run_waiting": "run waits",
    "run_paused": "run paused",
    "run_blocked": "run blocked",
    "run_closing": "run is closing",
    "run_cancelling": "run is being cancelled",
    "control_accepted": "message accepted",
    "lease_recovered": "another worker took over",
    "step_fanned_out": "step fanned out",
    "step_unreconciled": "step ended without anybody saying what happened",
    "attempt_reconciled": "attempt reconciled",
    "child_ended": "child run ended",
    "retry_hurried": "retry now",
    "retry_postponed": "retry postponed",
}


@register.simple_tag
def address(name: str, *args: Any) -> str:
    """The address of a page, "" where there is none."""
    return run_context.address(name, *args)


@register.simple_tag
def query(**values: Any) -> SafeString:
    """A query of an address; what is empty is left out."""
    given = {name: value for name, value in values.items() if value not in (None, "", [])}
    return SafeString(f"?{escape(urlencode(given, doseq=True))}")


@register.filter
def json_of(value: Any) -> str:
    """A text as JSON inside of an attribute; the template escapes it."""
    return json.dumps(value)


@register.filter
def shortened(value: Any, limit: int) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@register.filter
def css_word(value: Any) -> str:
    """A status as a class name; one that cannot be one is ``unknown``."""
    text = str(value)
    return text if text.isascii() and text.replace("_", "").isalpha() else "unknown"


@register.filter
def origin_words(value: str) -> str:
    return _ORIGINS.get(value, value)


@register.simple_tag
def schedule_number(run: int) -> int | None:
    """The schedule that started a run."""
    return schedule_of_run(run)


@register.filter
def is_past(at: datetime) -> bool:
    return at < timezone.now()


@register.filter
def reason_icon(code: str) -> str:
    return _REASONS.get(code, "waiting")


@register.filter
def reason_status(code: str) -> str:
    return _COLOURS.get(code, "waiting")


@register.filter
def event_words(type: str) -> str:
    """An event in words; one that this version does not know is told as it is."""
    return _EVENTS.get(type) or type.replace("_", " ")


@register.filter
def taker(value: str) -> str:
    """What took a message: a visit, or the run itself."""
    return value or "the run"


@register.filter
def stacked(shares: Iterable[tuple[str, int, float]]) -> list[tuple[str, str, str]]:
    """Shares of a whole one beside the other: name, left edge, width, in hundredths."""
    found, left = [], 0.0
    for name, _, width in shares:
        found.append((name, f"{left:.2f}", f"{width:.2f}"))
        left += width
    return found


@register.filter
def percent(value: float) -> str:
    return f"{value:.2f}%"


@register.filter
def depth(value: int) -> int:
    return min(value, MOST_DEPTH)


@register.filter
def counts_words(counts: Counts) -> str:
    """How items stand: ``40 of 300 done, 2 failed, 8 open``."""
    words = [f"{count_words(counts.ok)} of {count_words(counts.total)} ok"]
    rest = (("failed", counts.failed), ("cancelled", counts.cancelled), ("open", counts.running))
    return ", ".join(words + [f"{count_words(count)} {name}" for name, count in rest if count])


@register.filter
def counts_listed(counts: Counts) -> list[tuple[str, int]]:
    """The outcomes that occur, with how many items have each; ``running`` are those that have not ended."""
    parts = (("failed", counts.failed), ("running", counts.running), ("ok", counts.ok), ("cancelled", counts.cancelled))
    return [(name, count) for name, count in parts if count]


@register.filter
def counts_shares(counts: Counts) -> list[tuple[str, str, str]]:
    whole = max(counts.total, 1)
    return stacked((name, count, count / whole * 100) for name, count in counts_listed(counts))


@register.filter
def last_item(fold: Fold) -> int:
    return fold.first + fold.shown - 1


@register.filter
def bar_words(bar: Bar) -> str:
    """What a bar is, for whoever points at it."""
    what = {"attempt": f"attempt {bar.attempt}", "container": "all of it", "point": "at once"}.get(bar.kind, bar.kind)
    length = "" if bar.ended_at is None else f", {duration_words(bar.ended_at - bar.started_at)}"
    return f"{what}: {bar.state}{length}"


@register.filter
def told(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The members of a small object, each as a short text."""
    return [(name, shortened(_text(value), MOST_MEMBER)) for name, value in data.items()]


@register.filter
def fork_address(visit: int, run: int) -> str:
    """Where a fork from a visit is asked for, "" while there is no such action."""
    return run_context.fork_address(run, f"?from=v{visit}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
