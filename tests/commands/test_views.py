"""What the views of a run make of its events: words, durations, and what nobody's terminal may be told."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from workflows.facts import EventRow, RunState
from workflows.management.live import LiveView
from workflows.management.progress import PlainView
from workflows.management.targets import is_file, visit_number
from workflows.management.wording import duration, one_line, reason_text

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUNNING = RunState(status="running")


def event(sequence: int, type: str, *, visit: int | None = 1, attempt: int | None = 1, **data: Any) -> EventRow:
    return EventRow(
        sequence=sequence,
        revision=sequence,
        type=type,
        at=START + timedelta(seconds=sequence),
        visit=visit,
        attempt=attempt,
        payload=json.dumps(data),
    )


RETRIED = (
    event(2, "step_started", step="fetch"),
    event(3, "step_retrying", step="fetch", code="timeout", wait_ms=1500),
    event(5, "step_started", step="fetch", attempt=2),
    event(9, "step_succeeded", step="fetch", attempt=2, outcome="unchanged"),
)


def test_a_plain_view_has_a_line_for_every_wait_and_every_end() -> None:
    lines: list[str] = []
    PlainView(lines.append).committed(1, RETRIED, RUNNING)
    assert [" ".join(line.split()) for line in lines] == [
        "v1 fetch waiting (next attempt in 1.50s after timeout)",
        "v1 fetch unchanged 7.00s attempt 2",
    ]


def test_progress_is_one_line_without_control_characters() -> None:
    lines: list[str] = []
    view = PlainView(lines.append)
    view.committed(1, RETRIED[:1], RUNNING)
    view.progress(1, 1, "half\x1b[2J\nway")
    view.progress(1, 99, "of a step that is over")
    assert [" ".join(line.split()) for line in lines] == ["v1 fetch half [2J way"]


def test_events_of_a_newer_version_are_shown_as_they_are() -> None:
    lines: list[str] = []
    PlainView(lines.append).committed(
        1, (event(2, "step_pondering", step="a"), event(3, "run_dreams", visit=None)), RUNNING
    )
    assert [" ".join(line.split()) for line in lines] == ["v1 a waiting (step_pondering)"]


def test_a_live_view_keeps_what_is_over_and_clears_the_rest() -> None:
    screen = io.StringIO()
    view = LiveView(Console(file=screen, force_terminal=True, width=80, color_system=None))
    view.committed(1, RETRIED, RUNNING)
    view.committed(1, (event(10, "step_started", step="next", visit=2),), RUNNING)
    view.progress(1, 2, "[bold]not markup[/bold]")
    view.notice("Handing back.")
    view.close()
    assert "✓ v1   fetch                    unchanged 7.00s attempt 2" in screen.getvalue()
    assert "[bold]not markup[/bold]" in screen.getvalue()
    assert "Handing back." in screen.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.00s"), (0.004, "0.00s"), (59.994, "59.99s"), (61, "1m 01s"), (3600, "1h 00m"), (90_000, "1d 01h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            {"cause": "timer", "step": "nap", "until_ms": 1_772_366_400_000},
            "nap waits for a moment (until 2026-03-01 12:00:00 UTC)",
        ),
        ({"cause": "held"}, "an operator holds the run"),
        ({"cause": "code", "step": "post"}, "post needs code that this server lacks"),
        ({"cause": "moonlight", "step": "a"}, "a waits for: moonlight"),
    ],
)
def test_reasons(reason: dict[str, Any], text: str) -> None:
    assert reason_text(reason) == text


def test_a_long_text_is_cut_where_the_line_ends() -> None:
    assert one_line("a b\n\tc", 10) == "a b c"
    assert one_line("x" * 11, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("target", "expected"),
    [("demo", False), ("demo.yaml", True), ("./demo", True), ("-", True), ("dir/demo", True), ("No-Such", False)],
)
def test_what_is_a_file(target: str, expected: bool) -> None:
    assert is_file(target) is expected


def test_visits_are_named_as_they_are_shown() -> None:
    assert (visit_number("v12"), visit_number("12")) == (12, 12)
    for text in ("", "v", "vv1", "-1", "v1.2", "²"):
        with pytest.raises(ValueError, match="is not a visit such as v3"):
            visit_number(text)
