"""Which points are worth a kill: every one, each different write once, or a sample of all windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.crashes.moments import KILL_WINDOWS, Point

#: A point of a run that nobody disturbed, with the number of that run in its case.
Place = tuple[int, Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``all``: every point, the equal ones too. ``windows``: only windows whose names contain one of these words.
    ``most``: at most so many points of a file."""

    all: bool = False
    windows: Sequence[str] = ()
    most: int | None = None

    def of(self, places: Iterable[Place], known: set[tuple[str, ...]], *, start: int = 0) -> list[Place]:
        """The points of one file to kill a driver at; ``start`` turns a sample, so that it varies.

        ``known`` collects what is written in all files of a case alike: unless all points are wanted, one of the files
        tries it.
        """
        wanted = [place for place in places if self.is_wanted(place[1])]
        if not self.all:
            wanted = each_write_twice([place for place in wanted if place[1].write not in known])
            known |= {point.write for _, point in wanted if not point.depends_on_promises}
        return wanted if self.most is None else spread(wanted, self.most, start=start)

    def is_wanted(self, point: Point) -> bool:
        return not self.windows or any(words in name for words in self.windows for name in point.windows)


def each_write_twice(places: Sequence[Place]) -> list[Place]:
    """Of all points that write the same in the same place the first one and the last one."""
    first: dict[tuple[str, ...], Place] = {}
    last: dict[tuple[str, ...], Place] = {}
    for place in places:
        first.setdefault(place[1].write, place)
        last[place[1].write] = place
    return list(dict.fromkeys([*first.values(), *last.values()]))


def spread(places: Sequence[Place], most: int, *, start: int = 0) -> list[Place]:
    """At most ``most`` points, from as many windows as there are; those of promise KILL come first."""
    turn = start * 5 % len(places) if places else 0
    left = [*places[turn:], *places[:turn]]
    chosen: list[Place] = []
    tried: Counter[str] = Counter()
    while left and len(chosen) < most:
        best = min(left, key=lambda place: _weight(place[1], tried))
        left.remove(best)
        chosen.append(best)
        tried.update(best[1].windows)
    return chosen


def _weight(point: Point, tried: Mapping[str, int]) -> tuple[int, int]:
    """How often the rarest window of a point was tried; windows without a promise count as tried twice."""
    return min((tried[name] + (0 if name in KILL_WINDOWS else 2), tried[name]) for name in point.windows)


def belongs_to_the_start(point: Point) -> bool:
    """Whether a point lies before anything that depends on the scenario: one scenario of a file tries it for all."""
    return point.subject in ("publish_plan", "publish") or (point.subject == "acquire" and not point.turn)


def worth_a_second_death(points: Sequence[Point], most: int) -> list[Point]:
    """First deaths that leave their successors the most to do: something to recover, something to reconcile."""
    done = [point for point in points if point.place == "done"]
    effects = done + [point for point in points if point.place == "began"]
    others = [point for point in points if point.place == "before COMMIT" and point.subject != "publish"]
    middle = effects[len(effects) // 4 :] + effects[: len(effects) // 4]
    return (middle or others)[:most]
