"""The list of what is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """``count`` is how many steps, items or visits one repetition has (``quick_count`` with ``--quick``).

    ``bars`` are the aims of this project by store; with ``is_rate`` more is better. ``has_floor``: a floor transaction
    is what the figure is compared with.
    """

    name: str
    title: str
    unit: str
    count: int
    quick_count: int
    repetitions: int = 5
    is_rate: bool = False
    has_floor: bool = False
    bars: tuple[tuple[str, float], ...] = ()

    def counted(self, quick: bool) -> int:
        return self.quick_count if quick else self.count

    def repeated(self, quick: bool) -> int:
        return min(3, self.repetitions) if quick else self.repetitions

    def bar(self, store: str) -> float | None:
        return dict(self.bars).get(store)


STEPS_200 = Subject(
    name="steps-200",
    has_floor=True,
    title="sequential effect step, run of 200",
    unit="ms",
    count=200,
    quick_count=200,
    bars=(("sqlite", 0.85), ("postgresql", 0.9)),
)
STEPS_1000 = Subject(
    name="steps-1000",
    has_floor=True,
    title="sequential effect step, run of 1 000",
    unit="ms",
    count=1000,
    quick_count=1000,
    bars=(("sqlite", 0.85), ("postgresql", 0.9)),
)
PURE = Subject(
    name="pure",
    title="pure step in a chain",
    unit="ms",
    count=1000,
    quick_count=400,
    bars=(("sqlite", 0.1), ("postgresql", 0.1)),
)
FAN_OUT = Subject(
    name="fan-out",
    title="fan-out of 200 items, concurrency 8",
    unit="items/s",
    count=200,
    quick_count=200,
    is_rate=True,
    bars=(("sqlite", 1700), ("postgresql", 1500)),
)
LATE_VISITS = Subject(
    name="late-visits",
    title="late visit against an early one, CPU",
    unit="×",
    count=10_000,
    quick_count=3_000,
    repetitions=3,
    bars=(("sqlite", 1.1), ("postgresql", 1.1)),
)
START = Subject(name="start", title="start to the first step", unit="ms", count=20, quick_count=10)
COMMAND = Subject(name="command", title="run_workflow --help", unit="ms", count=1, quick_count=1)

SUBJECTS = (STEPS_200, STEPS_1000, PURE, FAN_OUT, LATE_VISITS, START, COMMAND)
BY_NAME = {subject.name: subject for subject in SUBJECTS}
