"""The live view of a terminal: what is over scrolls away as it happened, what goes on stays at the bottom."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from workflows.facts import EventRow, RunState
from workflows.management.places import Places
from workflows.management.progress import PlainView
from workflows.management.run_progress import MapLine, StepLine
from workflows.management.wording import duration, seconds_between

_STYLES = {
    "ok": "green",
    "failed": "red",
    "cancelled": "yellow",
    "refused": "yellow",
    "skipped": "dim",
    "waiting": "cyan",
    "running": "bold",
}
_SIGNS = {"ok": "✓", "failed": "✗", "cancelled": "■", "refused": "–", "skipped": "–", "waiting": "◷"}
#: Lines of running steps at the bottom; the others are counted.
MOST_LIVE = 12
REFRESH_PER_SECOND = 4


class LiveView(PlainView):
    """Like :class:`PlainView`, with a spinner and the time for what runs, and a bar for each large map.

    Drawn by a thread of its own, which reads what the drivers' threads change.
    """

    def __init__(self, console: Console, places: Places | None = None) -> None:
        super().__init__(self._print_text, places)
        self._console = console
        self._notice = ""
        self._waits = ""
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console,
            get_renderable=self._bottom,
            refresh_per_second=REFRESH_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
        with self._lock:
            self._waits = ""
            run = self.run(run_id)
            over = [line for line in run.take(events) if line.is_over and self.tells(run, line)]
            words = self.run_words(run, events, state)
            self.leave(run_id, state)
        # printing takes the console's lock, which the drawing thread holds while it asks for the bottom
        for line in over:
            self._console.print(_row([line], datetime.now(UTC)))
        for text in words:
            self._print_text(f"  {run.label}{text}")

    def progress(self, run_id: int, visit: int, text: str) -> None:
        with self._lock:
            if run_id in self._runs:
                self._runs[run_id].says(visit, text)

    def notice(self, text: str) -> None:
        self._notice = text

    def waits(self, text: str) -> None:
        self._waits = text

    def close(self) -> None:
        self._live.stop()

    def _print_text(self, text: str) -> None:
        self._console.print(Text(text))

    def _bottom(self) -> Group:
        now = datetime.now(UTC)
        with self._lock:
            runs = list(self._runs.values())
            lines = [line for run in runs for line in run.shown()]
            bars = [_bar(run.label, one, now) for run in runs for one in run.maps.values()]
        parts: list[Table | Text] = [_row(lines[:MOST_LIVE], now, self._spinner)] if lines else []
        if len(lines) > MOST_LIVE:
            parts.append(Text(f"  and {len(lines) - MOST_LIVE} more", style="dim"))
        parts += bars[:MOST_LIVE]
        if self._waits:
            parts.append(Text(f"◷ {self._waits}", style="cyan"))
        if self._notice:
            parts.append(Text(self._notice, style="yellow"))
        return Group(*parts)


def _bar(label: str, line: MapLine, now: datetime) -> Table:
    grid = Table.grid(padding=(0, 1))
    for width in (1, 4, 24, 20):
        grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(total=max(line.total, 1), completed=line.ended, width=20)
    told = Text(line.text())
    seconds = seconds_between(line.started_at, now)
    if seconds is not None:
        told.append(f" {duration(seconds)}", style="dim")
    grid.add_row("", Text(f"v{line.visit}", style="dim"), Text(f"{label}{line.path}"), bar, told)
    return grid


def _row(lines: list[StepLine], now: datetime, spinner: Spinner | None = None) -> Table:
    grid = Table.grid(padding=(0, 1))
    for width in (1, 4, 24):
        grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines:
        style = _STYLES.get(line.mark, "default")
        is_running = line.mark == "running" and spinner is not None
        sign = spinner if is_running and spinner is not None else Text(_SIGNS.get(line.mark, " "), style=style)
        grid.add_row(
            sign,
            Text("" if line.visit is None else f"v{line.visit}", style="dim"),
            Text(f"{line.label}{line.path}"),
            _told(line, now, style),
        )
    return grid


def _told(line: StepLine, now: datetime, style: str) -> Text:
    """Status, time, attempt, what it waits for or says."""
    text = Text(line.word, style=style)
    if line.detail:
        text.append(f" ({line.detail})", style="default")
    seconds = line.seconds(now)
    if seconds is not None and line.mark != "waiting":
        text.append(f" {duration(seconds)}", style="dim")
    if line.attempt > 1:
        text.append(f" attempt {line.attempt}", style="dim")
    if line.said and not line.is_over:
        text.append(f"  {line.said}", style="italic default")
    return text
