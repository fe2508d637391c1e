"""The figures as tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.engines import BY_NAME as ENGINES
from benchmarks.engines import WAYPOST
from benchmarks.measuring import Failed
from benchmarks.samples import Measured
from benchmarks.subjects import BY_NAME as SUBJECTS
from benchmarks.subjects import Subject

_HEAD = ("", "median", "lowest", "highest", "CPU ms", "floor ms", "× floor", "bar")
_STORES = {"sqlite": "SQLite, WAL, synchronous=FULL", "postgresql": "PostgreSQL"}


def heading(machine: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in machine.items()]


def table(results: Sequence[Measured | Failed]) -> list[str]:
    """One table per store: a line for this project, then a line per peer with the ratio to it."""
    lines: list[str] = []
    for store in dict.fromkeys(result.store for result in results):
        here = [result for result in results if result.store == store]
        lines += ["", _STORES[store], *_aligned([_HEAD, *_rows(here)])]
        floors = [floor for result in here if isinstance(result, Measured) for floor in result.floor_ms]
        if floors:
            lines.append(f"floor (a durable transaction of three statements): {min(floors):.2f}–{max(floors):.2f} ms")
    lines += ["", *_versions(results), *_notes(results)]
    return lines


def _rows(results: Sequence[Measured | Failed]) -> Iterable[tuple[str, ...]]:
    for name in dict.fromkeys(result.subject for result in results):
        subject = SUBJECTS[name]
        group = [result for result in results if result.subject == name]
        own = next((one for one in group if one.engine == WAYPOST.name and isinstance(one, Measured)), None)
        for result in group:
            is_own = result.engine == WAYPOST.name
            label = f"{subject.title} ({subject.unit})" if is_own else f"  {ENGINES[result.engine].title}"
            if isinstance(result, Failed):
                yield (label, f"no figure: {result.reason}", *[""] * (len(_HEAD) - 2))
            else:
                yield (label, *_figures(subject, result), _last_column(subject, result, own))


def _figures(subject: Subject, result: Measured) -> tuple[str, ...]:
    lowest, highest = result.spread
    floor = result.floor
    per_floor = f"{result.value / floor:.1f}" if floor is not None and subject.has_floor else ""
    return (
        _number(result.value),
        _number(lowest),
        _number(highest),
        "" if result.cpu_ms is None else _number(result.cpu_ms),
        "" if floor is None else _number(floor),
        per_floor,
    )


def _last_column(subject: Subject, result: Measured, own: Measured | None) -> str:
    """The bar for this project; for a peer how much longer it takes than this project."""
    if result.engine != WAYPOST.name:
        if own is None:
            return ""
        ratio = own.value / result.value if subject.is_rate else result.value / own.value
        return f"{ratio:.2f} × Waypost's time"
    bar = subject.bar(result.store)
    if bar is None:
        return ""
    holds = result.value >= bar if subject.is_rate else result.value <= bar
    return f"{'≥' if subject.is_rate else '≤'} {bar:g} {'met' if holds else 'missed'}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns padded to their width; a long last cell of a row (why there is no figure) does not widen its column."""
    full = [row for row in rows if any(row[2:])]
    widths = [max(len(row[column]) for row in full) for column in range(len(_HEAD))]
    widths[0] = max(len(row[0]) for row in rows)
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=False)),
        ]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return lines


def _versions(results: Sequence[Measured | Failed]) -> list[str]:
    found: dict[str, str] = {}
    for result in results:
        if isinstance(result, Measured):
            found |= result.versions
    return ["versions: " + ", ".join(f"{name} {version}" for name, version in found.items())] if found else []


def _notes(results: Sequence[Measured | Failed]) -> list[str]:
    notes = {result.engine: result.note for result in results if isinstance(result, Measured) and result.note}
    return [f"{ENGINES[engine].title}: {note}" for engine, note in notes.items()]
