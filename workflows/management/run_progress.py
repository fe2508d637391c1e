"""The visits of one run, kept up with its events: steps as lines, large maps as counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from workflows.facts import EventRow
from workflows.management.wording import counted, duration, one_line, seconds_between, until
from workflows.queries.progress import OpenMap, OpenVisit, Shape

#: Events that end a visit, and the mark its line gets.
ENDS = {
    "step_succeeded": "ok",
    "step_failed": "failed",
    "step_skipped": "skipped",
    "step_cancelled": "cancelled",
    "step_refused": "refused",
}
#: Events that leave a visit open, with the words for it; names in braces come from the event.
_PAUSES = {
    "step_retrying": "next attempt in {wait} after {code}",
    "step_waiting": "{until}",
    "step_interrupted": "interrupted",
    "step_parked": "parked: {missing}",
    "step_resumed": "goes on",
    "step_unreconciled": "was interrupted; nobody said what happened",
    "question_asked": "for an answer",
    "work_reserved": "{worker} has its work",
    "work_lapsed": "its work is offered again",
    "slot_awaited": 'for a place in "{group}"',
    "retry_postponed": "the function of the last attempt still runs",
    "step_timing_out": "its time is over",
}
#: The items of a larger map are counted instead of told one by one.
LARGE_MAP = 20
#: Failed steps of a large map that are told; further ones are only counted.
MOST_FAILURES = 5


@dataclass(slots=True, kw_only=True)
class StepLine:
    """A visit as the views show it. ``mark`` is running, waiting, or how it ended, ``outcome`` a way of its own in
    which it ended; ``said`` its latest progress.

    ``visit`` None: the step waits before its visit. ``label`` names its run if that is not the one asked for.
    """

    visit: int | None
    step: str
    path: str = ""
    label: str = ""
    mark: str = "running"
    attempt: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    detail: str = ""
    outcome: str = ""
    said: str = ""

    def __post_init__(self) -> None:
        self.path = self.path or self.step

    @property
    def is_over(self) -> bool:
        return self.mark in ENDS.values()

    @property
    def word(self) -> str:
        """How it stands in one word; an outcome that is neither good nor bad in itself stands for the mark."""
        return self.outcome or self.mark

    def seconds(self, now: datetime | None = None) -> float | None:
        """How long it took, or has been going on at ``now``."""
        return seconds_between(self.started_at, self.ended_at or now)


@dataclass(slots=True, kw_only=True)
class MapLine:
    """How the items of a map or the branches of a parallel step stand. ``running``: begun and not ended."""

    visit: int
    step: str
    path: str
    total: int
    started_at: datetime | None = None
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    running: int = 0

    @property
    def ended(self) -> int:
        return self.ok + self.failed + self.cancelled

    @property
    def is_large(self) -> bool:
        return self.total > LARGE_MAP

    def text(self) -> str:
        """
        >>> MapLine(visit=1, step="each", path="each", total=300, ok=40, failed=2, running=8).text()
        '40 of 300 done, 2 failed, 8 running'
        """
        parts = [f"{self.ok} of {self.total} done"]
        counts = {"failed": self.failed, "cancelled": self.cancelled, "running": self.running}
        parts += [f"{count} {name}" for name, count in counts.items() if count]
        return ", ".join(parts)


PathsOf = Callable[[Collection[int]], Mapping[int, str]]
#: The open visits and maps of a run as its rows have them.
Standing = tuple[list[OpenVisit], list[OpenMap]]


class RunProgress:
    """One run. ``label`` is printed before its lines; ``order`` counts the other runs of a view from 1.

    ``is_stale``: somebody else may have driven the run since the last events, so its rows are read with the next ones;
    ``standing`` reads them, and gives None when they cannot be read.
    """

    def __init__(
        self,
        *,
        label: str = "",
        order: int = 0,
        shape: Shape | None = None,
        paths_of: PathsOf = lambda visits: {},
        standing: Callable[[], Standing | None] = lambda: None,
    ) -> None:
        self.label = label
        self.order = order
        self.lines: dict[int, StepLine] = {}
        self.maps: dict[int, MapLine] = {}
        self._shape = shape or Shape()
        self._paths_of = paths_of
        self._standing = standing
        self.is_stale = True
        self._failures: dict[str, int] = {}

    def take(self, events: Iterable[EventRow]) -> list[StepLine]:
        """The lines that these events have changed and that are to be shown, in order; one that changed twice is
        there twice."""
        changed = []
        for event in events:
            line = self._take(event)
            # asked after each event: the last items of a map end together with it
            if line is not None and self._is_shown(line):
                changed.append(line)
        if self.is_stale and (standing := self._standing()) is not None:
            self._catch_up(*standing)
        self.is_stale = False
        self._count_running()
        return self._with_paths(changed)

    def says(self, visit: int, text: str) -> StepLine | None:
        line = self.lines.get(visit)
        if line is None:
            return None
        line.said = one_line(text, 200)
        return line if self._large_map_of(line.step) is None else None

    def shown(self) -> list[StepLine]:
        """The open visits to be shown; those inside of large maps are counted by them."""
        lines = list(self.lines.values())
        return [line for line in lines if line.visit not in self.maps and self._large_map_of(line.step) is None]

    def _take(self, event: EventRow) -> StepLine | None:
        data: dict[str, Any] = json.loads(event.payload)
        if event.type == "scope_ended":
            self._end_item(event, data)
            return None
        if event.visit is None:
            return self._line_without_visit(event, data)
        if not (event.type.startswith("step_") or event.type in _PAUSES):
            return None
        line = self._line(event, data)
        if event.type in ("step_started", "step_resumed"):
            _begin(line, event)
        elif event.type == "step_fanned_out":
            self._fan_out(line, event, data)
        elif event.type in ENDS:
            _end(line, event, data)
            self._close(line)
        else:
            line.mark = "waiting"
            line.detail = _pause_text(event.type, data)
        return replace(line)

    def _line(self, event: EventRow, data: Mapping[str, Any]) -> StepLine:
        assert event.visit is not None
        line = self.lines.get(event.visit)
        if line is None:
            step = data.get("step", "")
            line = StepLine(visit=event.visit, step=step, label=self.label)
            self.lines[event.visit] = line
        return line

    def _line_without_visit(self, event: EventRow, data: Mapping[str, Any]) -> StepLine | None:
        """A step that stands in line before it is entered."""
        if event.type != "slot_awaited":
            return None
        step = data.get("step", "")
        return StepLine(visit=None, step=step, label=self.label, mark="waiting", detail=_pause_text(event.type, data))

    # ---- maps -------------------------------------------------------------------------------------------------------

    def _fan_out(self, line: StepLine, event: EventRow, data: Mapping[str, Any]) -> None:
        assert line.visit is not None
        _begin(line, event)
        total = data.get("items", 0)
        line.detail = counted(total, "item")
        self.maps[line.visit] = MapLine(
            visit=line.visit, step=line.step, path=line.path, total=total, started_at=line.started_at
        )

    def _end_item(self, event: EventRow, data: Mapping[str, Any]) -> None:
        map_line = self.maps.get(event.visit) if event.visit is not None else None
        outcome = data.get("outcome")
        if map_line is not None and outcome in ("ok", "failed", "cancelled"):
            setattr(map_line, outcome, getattr(map_line, outcome) + 1)

    def _close(self, line: StepLine) -> None:
        assert line.visit is not None
        self.lines.pop(line.visit, None)
        map_line = self.maps.pop(line.visit, None)
        if map_line is not None and map_line.total:
            map_line.running = 0
            line.detail = "; ".join(part for part in (line.detail, map_line.text()) if part)

    def _count_running(self) -> None:
        """An item runs while one of the steps of its body is open; a block that several maps share bounds it."""
        for map_line in self.maps.values():
            members = self._shape.members.get(map_line.step, frozenset())
            inside = sum(1 for line in list(self.lines.values()) if line.step in members)
            map_line.running = min(inside, map_line.total - map_line.ended)

    def _catch_up(self, visits: list[OpenVisit], maps: list[OpenMap]) -> None:
        opened_visits = {visit.number for visit in visits}
        self.lines = {number: line for number, line in self.lines.items() if number in opened_visits}
        self.maps = {}
        for visit in visits:
            self.lines.setdefault(
                visit.number,
                StepLine(
                    visit=visit.number,
                    step=visit.step,
                    path=visit.path,
                    label=self.label,
                    mark="waiting",
                    started_at=visit.started_at,
                ),
            )
        for opened in maps:
            line = self.lines.get(opened.visit)
            if line is None:
                continue
            line.mark = "running"
            self.maps[opened.visit] = MapLine(
                visit=opened.visit,
                step=line.step,
                path=line.path,
                total=opened.total,
                started_at=line.started_at,
                ok=opened.ok,
                failed=opened.failed,
                cancelled=opened.cancelled,
            )

    def _large_map_of(self, step: str) -> str | None:
        """The large map that is open and in which a step stands."""
        around = self._shape.outermost.get(step, frozenset())
        return next((one.step for one in list(self.maps.values()) if one.step in around and one.is_large), None)

    def _is_shown(self, line: StepLine) -> bool:
        large = self._large_map_of(line.step)
        if large is None:
            return True
        if line.mark != "failed":
            return False
        self._failures[large] = self._failures.get(large, 0) + 1
        return self._failures[large] <= MOST_FAILURES

    def _with_paths(self, lines: list[StepLine]) -> list[StepLine]:
        """Steps of bodies get the path that tells their items apart."""
        unknown = {line.visit for line in lines if line.visit is not None and self._lacks_path(line)}
        paths = self._paths_of(unknown) if unknown else {}
        for line in lines:
            if line.visit is not None and line.visit in paths:
                line.path = paths[line.visit]
                if line.visit in self.lines:
                    self.lines[line.visit].path = line.path
        return lines

    def _lacks_path(self, line: StepLine) -> bool:
        return line.step in self._shape.nested and line.path == line.step


def _begin(line: StepLine, event: EventRow) -> None:
    line.mark, line.detail = "running", ""
    line.attempt = event.attempt or line.attempt
    line.started_at = line.started_at or event.at


def _end(line: StepLine, event: EventRow, data: Mapping[str, Any]) -> None:
    mark = ENDS[event.type]
    outcome, code = data.get("outcome", mark), data.get("code", "")
    line.mark = mark
    line.attempt = event.attempt or line.attempt
    line.ended_at = event.at
    if mark == "ok" and outcome != mark:
        line.outcome, outcome = outcome, ""
    line.detail = ", ".join(dict.fromkeys(word for word in (outcome, code) if word and word != mark))


def _pause_text(type: str, data: Mapping[str, Any]) -> str:
    moment = f"until {until(data['until_ms'])}" if "until_ms" in data else ""
    words = {
        "wait": duration(data.get("wait_ms", 0) / 1000),
        "code": data.get("code", "a failure"),
        "until": 'for the signal "{}"'.format(data["signal"]) if "signal" in data else moment or "for something",
        "missing": data.get("missing") or data.get("code", ""),
        "group": data.get("group", ""),
        "worker": one_line(data.get("worker", ""), 60),
    }
    return _PAUSES.get(type, type).format(**words)
