"""The filter of the run list as it stands in an address: what is written there, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from workflows.models import RunFilter
from workflows.models.run_order import SORTS, RunOrder
from workflows.pages.causes import CAUSES
from workflows.statuses import LIVE_STATUSES, RunStatus

#: Groups of statuses that a link may name instead of each status.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "live": tuple(status.value for status in RunStatus if status in LIVE_STATUSES),
    "ended": tuple(status.value for status in RunStatus if status not in LIVE_STATUSES),
}
MOST_TEXT = 200
_MOMENTS = ("created_from", "created_to", "ended_from", "ended_to")
#: Ends of a time: a day that is named is a part of it.
_INCLUSIVE = ("created_to", "ended_to", "until")
#: Names in the address of choices that are texts, and what they are of a :class:`RunFilter`.
_TEXTS = {
    "text": "text",
    "workflow": "workflow",
    "by": "started_by",
    "key": "concurrency_key",
    "error": "error_code",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """``shown`` are the texts of the form; ``faults`` name what could not be understood and does not count."""

    filter: RunFilter
    shown: Mapping[str, str] = field(default_factory=dict)
    order: RunOrder = field(default_factory=RunOrder)
    faults: tuple[str, ...] = ()

    @property
    def narrows(self) -> bool:
        """Whether anything but statuses is chosen: the form is open then."""
        return bool(set(self.filter.as_json()) - {"statuses", "before", "after", "text"})


def chosen(given: QueryDict) -> Chosen:
    """What an address chooses. Nothing in it is ever an error of the page."""
    faults: list[str] = []
    values: dict[str, Any] = {"statuses": _statuses(given.getlist("status"), faults)}
    for name, target in _TEXTS.items():
        values[target] = _text(name, given.get(name, ""), faults) or None
    for name in _MOMENTS:
        values[name] = moment_in(name, given.get(name, "").strip(), faults)
    for name in ("parent", "before", "after"):
        values[name] = number_in(name, given.get(name, "").strip(), faults)
    cause = given.get("waits_for", "").strip()
    if cause and cause not in CAUSES:
        faults.append(f"“{cause[:60]}” is nothing that runs wait for.")
    values["waits_for"] = cause if cause in CAUSES else None
    values["is_stalled"] = given.get("stalled") in ("1", "on", "true")
    shown = {name: given.get(name, "")[:MOST_TEXT] for name in (*_TEXTS, *_MOMENTS, "parent", "waits_for", "stalled")}
    return Chosen(
        filter=RunFilter(**values),
        shown=shown,
        order=_order(given.get("sort", ""), faults),
        faults=tuple(faults),
    )


def _order(text: str, faults: list[str]) -> RunOrder:
    """``started`` sorts by the start, ``-started`` the other way round; ``oldest`` is short for ``number``."""
    name = text.removeprefix("-") or "number"
    if text == "oldest":
        return RunOrder(goes_up=True)
    if name not in SORTS:
        faults.append(f"“{text[:60]}” is nothing that runs are sorted by.")
        return RunOrder()
    return RunOrder(by=name, goes_up=bool(text) and not text.startswith("-"))


def _text(name: str, text: str, faults: list[str]) -> str:
    if "\0" in text:
        faults.append(f"The text of “{name}” contains a character that no text here has.")
        return ""
    return text.strip()[:MOST_TEXT]


def _statuses(words: list[str], faults: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for word in words:
        if word in RunStatus.values:
            found.append(word)
        elif word in GROUPS:
            found += GROUPS[word]
        elif word:
            faults.append(f"“{word[:60]}” is no status.")
    return tuple(dict.fromkeys(found))


def number_in(name: str, text: str, faults: list[str]) -> int | None:
    digits = text.removeprefix("#")
    if not digits:
        return None
    if digits.isascii() and digits.isdigit() and len(digits) < 19:
        return int(digits)
    faults.append(f"“{text[:60]}” is no number of a run ({name}).")
    return None


def moment_in(name: str, text: str, faults: list[str]) -> datetime | None:
    """A date, or a date and a time. Without a zone it is in the time zone of the site; a last day is included."""
    if not text:
        return None
    try:
        day, moment = parse_date(text), parse_datetime(text)
    except ValueError:
        day = moment = None
    if day is not None:
        begin = datetime(day.year, day.month, day.day)  # noqa: DTZ001 # made aware below
        try:
            moment = begin + timedelta(days=1) if name in _INCLUSIVE else begin
        except OverflowError:
            moment = begin
    if moment is None:
        faults.append(f"“{text[:60]}” is no date such as 2026-01-31 or 2026-01-31T09:30.")
        return None
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
