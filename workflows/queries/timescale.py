"""The axis of a timeline: from moments to places between 0 and 100, with round marks. Pure.

A run that waited two days for an approval would be one long pause with invisible work at its ends. So a scale may leave
out the middle of long pauses; where it does, the axis shows a break.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

#: Round steps between two marks, in seconds.
_STEPS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000),
)  # fmt: skip
#: Marks of an axis at most.
MOST_TICKS = 8
#: A pause is long from this part of the whole on, and a left-out one takes so much of the axis, in hundredths.
LONG_PAUSE = 0.05
BREAK_WIDTH = 3.0
#: Pauses are left out by themselves when they make up this part of the whole.
MOSTLY_PAUSED = 0.6
#: Marks of an axis with breaks are at least so far apart.
_APART = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A part of the axis: seconds since the start, and hundredths of its width."""

    start: float
    end: float
    left: float
    right: float
    is_break: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """``has_pauses``: there are pauses that can be left out, whether or not this scale does it."""

    start: datetime
    end: datetime
    pieces: tuple[_Piece, ...]
    has_pauses: bool = False

    @property
    def is_broken(self) -> bool:
        return any(piece.is_break for piece in self.pieces)

    @property
    def breaks(self) -> list[tuple[float, float]]:
        """Place and width of the pauses that are left out."""
        return [(piece.left, piece.right - piece.left) for piece in self.pieces if piece.is_break]

    def place(self, moment: datetime) -> float:
        """Where a moment is, from 0 to 100; moments outside are at the edges."""
        seconds = (moment - self.start).total_seconds()
        for piece in self.pieces:
            if seconds <= piece.end or piece is self.pieces[-1]:
                share = (seconds - piece.start) / (piece.end - piece.start) if piece.end > piece.start else 0.0
                return piece.left + min(max(share, 0.0), 1.0) * (piece.right - piece.left)
        return 0.0

    def ticks(self) -> list[Tick]:
        """Marks with the time since the start."""
        if not self.is_broken:
            return self._even_ticks()
        found: list[Tick] = []
        for piece in self.pieces:
            for at, seconds in [(piece.left, piece.start)] if piece.is_break else _marks(piece):
                if not found or at - found[-1].at >= _APART:
                    found.append(Tick(at=at, label=elapsed(seconds)))
        return found

    def _even_ticks(self) -> list[Tick]:
        return [Tick(at=at, label=elapsed(seconds)) for at, seconds in _marks(self.pieces[0])]


def _marks(piece: _Piece) -> list[tuple[float, float]]:
    """Round moments of a piece, as many as its width has room for: places, and seconds since the start."""
    width, length = piece.right - piece.left, piece.end - piece.start
    room = max(int(MOST_TICKS * width / 100), 1)
    longest = _STEPS[-1] * math.ceil(length / _STEPS[-1] / room)
    step = next((step for step in _STEPS if length / step <= room), longest)
    first = math.ceil(piece.start / step - 1e-9)
    last = int(piece.end / step + 1e-9)
    moments = [number * step for number in range(first, last + 1)]
    if piece.start not in moments[:1]:
        moments.insert(0, piece.start)
    return [(piece.left + (seconds - piece.start) / length * width, seconds) for seconds in moments]


def scale(
    start: datetime,
    end: datetime,
    busy: Iterable[tuple[datetime, datetime]],
    *,
    without_pauses: bool | None = None,
) -> Scale:
    """The scale from ``start`` to ``end``. ``busy`` are the times in which something was done; ``without_pauses`` None
    leaves long pauses out where they make up most of the whole."""
    end = max(end, start + timedelta(milliseconds=1))
    total = (end - start).total_seconds()
    pauses = [pause for pause in _pauses(start, total, busy) if pause[1] - pause[0] > total * LONG_PAUSE]
    paused = sum(until - since for since, until in pauses)
    leaves_out = paused > total * MOSTLY_PAUSED if without_pauses is None else without_pauses
    # a pause that took less of the axis than its break would is not worth one
    left_out = [one for one in pauses if (one[1] - one[0]) / total * 100 > BREAK_WIDTH] if leaves_out else []
    pieces = _pieces(total, left_out)
    return Scale(start=start, end=end, pieces=pieces, has_pauses=bool(pauses))


def _pauses(start: datetime, total: float, busy: Iterable[tuple[datetime, datetime]]) -> list[tuple[float, float]]:
    spans = sorted(((since - start).total_seconds(), (until - start).total_seconds()) for since, until in busy)
    found, reached = [], 0.0
    for since, until in spans:
        if since > reached:
            found.append((reached, min(since, total)))
        reached = max(reached, until)
    if spans and reached < total:
        found.append((reached, total))
    return found


def _pieces(total: float, left_out: list[tuple[float, float]]) -> tuple[_Piece, ...]:
    if not left_out:
        return (_Piece(start=0.0, end=total, left=0.0, right=100.0),)
    shown = total - sum(until - since for since, until in left_out)
    width = 100.0 - BREAK_WIDTH * len(left_out)
    pieces, reached, place = [], 0.0, 0.0
    for since, until in left_out:
        if since > reached:
            right = place + (since - reached) / shown * width
            pieces.append(_Piece(start=reached, end=since, left=place, right=right))
            place = right
        pieces.append(_Piece(start=since, end=until, left=place, right=place + BREAK_WIDTH, is_break=True))
        reached, place = until, place + BREAK_WIDTH
    if reached < total:
        pieces.append(_Piece(start=reached, end=total, left=place, right=100.0))
    return tuple(pieces)


def elapsed(seconds: float) -> str:
    """A time since the start, in the largest unit that says it exactly enough.

    >>> [elapsed(seconds) for seconds in (0, 0.02, 1.5, 10, 90, 3600, 5400, 90000, 1209600)]
    ['0', '20 ms', '1.5 s', '10 s', '1 min 30 s', '1 h', '1 h 30 min', '1 d 1 h', '14 d']
    """
    if seconds < 0.0005:
        return "0"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    whole = round(seconds)
    for (name, size), (smaller, part) in pairwise(units):
        if whole >= size:
            count, rest = divmod(whole, size)
            more = round(rest / part)
            if more * part >= size:
                count, more = count + 1, 0
            return f"{count} {name} {more} {smaller}" if more else f"{count} {name}"
    return f"{whole} s"
