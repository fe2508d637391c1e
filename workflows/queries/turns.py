"""When somebody in the line of a rate goes on: what is known, else the earliest moment by what stands before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workflows.clock import database_now_ms
from workflows.models import LimitStart, Slot

#: Places in line that are looked at; further behind nothing is said.
MOST_AHEAD = 500


def turn_of(mine: Slot) -> int | None:
    """Unix milliseconds; None: no rate keeps it waiting, or too many stand before it. At most four queries."""
    if mine.due_ms is not None or mine.number is not None:
        return mine.due_ms if mine.number is None else None
    same = Slot.objects.filter(kind=mine.kind, name=mine.name)
    before = same.filter(number=None, pk__lte=mine.pk).order_by("pk").values_list("starts", "per_ms")
    line = list(before[: MOST_AHEAD + 1])
    if len(line) > MOST_AHEAD or not any(starts for starts, _ in line):
        return None
    now_ms = database_now_ms()
    most = max(starts or 0 for starts, _ in line)
    latest = LimitStart.objects.filter(name=mine.name).order_by("-started_ms").values_list("started_ms", flat=True)
    pending = same.filter(number__isnull=False, started_ms=None).count()
    turn_ms = earliest([*reversed(latest[:most]), *[now_ms] * pending], line, now_ms)
    return turn_ms if turn_ms > now_ms else None


def earliest(started: Sequence[int], line: Iterable[tuple[int | None, int | None]], now_ms: int) -> int:
    """The moment at which the last of a line may start, each as soon as its own rate lets it, none before the one that
    stands before it. ``started`` are the starts so far, the oldest first; an entry without a rate has None.

    >>> earliest([0], [(1, 1_000), (1, 1_000)], now_ms=10)
    2000
    >>> earliest([0], [(None, None)], now_ms=10)
    10
    """
    moments, turn_ms = list(started), now_ms
    for starts, per_ms in line:
        if starts is not None and per_ms is not None and len(moments) >= starts:
            turn_ms = max(turn_ms, moments[-starts] + per_ms)
        moments.append(turn_ms)
    return turn_ms
