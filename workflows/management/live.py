"""The live view of a terminal: what is over scrolls away as it happened, what goes on stays at the bottom."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from workflows.facts import EventRow, RunState
from workflows.management.progress import PlainView, Progress, StepLine
from workflows.management.wording import duration

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
    """Like :class:`PlainView`, with a spinner and the time for what runs. Drawn by a thread of its own."""

    def __init__(self, console: Console) -> None:
        super().__init__(lambda line: None)
        self._console = console
        self._steps = Progress()
        self._notice = ""
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
        for line in self._steps.take(events):
            if line.is_over:
                self._steps.lines.pop(line.visit, None)
                self._console.print(_row([line], datetime.now(UTC)))

    def progress(self, run_id: int, visit: int, text: str) -> None:
        self._steps.says(visit, text)

    def notice(self, text: str) -> None:
        self._notice = text

    def close(self) -> None:
        self._live.stop()

    def _bottom(self) -> Group:
        now = datetime.now(UTC)
        lines = list(self._steps.lines.values())
        parts: list[Table | Text] = [_row(lines[:MOST_LIVE], now, self._spinner)] if lines else []
        if len(lines) > MOST_LIVE:
            parts.append(Text(f"  and {len(lines) - MOST_LIVE} more", style="dim"))
        if self._notice:
            parts.append(Text(self._notice, style="yellow"))
        return Group(*parts)


def _row(lines: list[StepLine], now: datetime, spinner: Spinner | None = None) -> Table:
    grid = Table.grid(padding=(0, 1))
    for width in (1, 4, 24):
        grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines:
        style = _STYLES[line.mark]
        is_running = line.mark == "running" and spinner is not None
        sign = spinner if is_running and spinner is not None else Text(_SIGNS.get(line.mark, " "), style=style)
        grid.add_row(sign, Text(f"v{line.visit}", style="dim"), Text(line.step), _told(line, now, style))
    return grid


def _told(line: StepLine, now: datetime, style: str) -> Text:
    """Status, time, attempt, what it waits for or says."""
    text = Text(line.mark, style=style)
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
