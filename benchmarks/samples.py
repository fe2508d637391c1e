"""Samples of one measurement, and the clock they are taken with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """``value`` in the unit of its subject. ``cpu_ms`` is the processor time of this process per step or item."""

    value: float
    cpu_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    wall_s: float
    cpu_s: float

    def per(self, count: int) -> Sample:
        """Milliseconds for each of ``count``."""
        return Sample(value=self.wall_s * 1000 / count, cpu_ms=self.cpu_s * 1000 / count)

    def rate(self, count: int) -> Sample:
        """How many of ``count`` in a second."""
        return Sample(value=count / self.wall_s, cpu_ms=self.cpu_s * 1000 / count)


def timed(work: Callable[[], object]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Timing(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All samples of one subject, engine and store. ``floor_ms`` are durable transactions of the same database,
    measured between the repetitions. ``note`` says what a reader has to know about this engine's figure."""

    subject: str
    engine: str
    store: str
    samples: tuple[Sample, ...]
    floor_ms: tuple[float, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def value(self) -> float:
        return median(sample.value for sample in self.samples)

    @property
    def spread(self) -> tuple[float, float]:
        values = [sample.value for sample in self.samples]
        return min(values), max(values)

    @property
    def cpu_ms(self) -> float | None:
        known = [sample.cpu_ms for sample in self.samples if sample.cpu_ms is not None]
        return median(known) if known else None

    @property
    def floor(self) -> float | None:
        return median(self.floor_ms) if self.floor_ms else None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "median": self.value, "median_cpu_ms": self.cpu_ms, "median_floor_ms": self.floor}


def measured_from_json(data: dict[str, Any]) -> Measured:
    samples = tuple(Sample(**sample) for sample in data["samples"])
    return Measured(
        subject=data["subject"],
        engine=data["engine"],
        store=data["store"],
        samples=samples,
        floor_ms=tuple(data["floor_ms"]),
        versions=data["versions"],
        note=data["note"],
    )
