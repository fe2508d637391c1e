"""Durations as the format writes them: ``500ms``, ``30s``, ``5m``, ``2h``, ``7d``, ``1h30m``."""

from __future__ import annotations

import re

UNITS_MS: dict[str, int] = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
EXAMPLES = "500ms, 30s, 5m, 2h, 1h30m, 7d"
#: Ten thousand years would not fit into any clock; longer ones are mistakes.
LONGEST_MS = 3_650 * UNITS_MS["d"]

_PATTERN = re.compile(
    r"(?=[0-9])(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+)s)?(?:([0-9]+)ms)?", re.ASCII
)
_RATE = re.compile(r"([0-9]+)/([0-9]+)([smh])", re.ASCII)


class DurationError(ValueError):
    """The text is not a duration. ``without_unit``: it is a bare number, so only the unit is missing."""

    def __init__(self, written: object) -> None:
        self.written = written
        bare = isinstance(written, (int, float)) and not isinstance(written, bool)
        self.without_unit = bare or (
            isinstance(written, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", written) is not None
        )
        super().__init__(f'"{written}" is not a duration. Examples: {EXAMPLES}.')


def parse_duration(written: object) -> int:
    """Milliseconds of a duration.

    >>> parse_duration("1h30m")
    5400000

    Raises :class:`DurationError` for everything else, also for units in another order or longer than ten years.
    """
    if not isinstance(written, str):
        raise DurationError(written)
    found = _PATTERN.fullmatch(written)
    if found is None:
        raise DurationError(written)
    total = sum(int(count) * unit for count, unit in zip(found.groups(), UNITS_MS.values(), strict=True) if count)
    if total > LONGEST_MS:
        raise DurationError(written)
    return total


def write_duration(milliseconds: int) -> str:
    """The shortest text of a duration; the inverse of :func:`parse_duration`.

    >>> write_duration(5_400_000)
    '1h30m'
    """
    parts = []
    rest = milliseconds
    for unit, size in UNITS_MS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_rate(written: str) -> tuple[int, int]:
    """Starts and milliseconds of a rate: ``60/1m`` is ``(60, 60000)``. Raises ``ValueError`` for everything else."""
    found = _RATE.fullmatch(written)
    if found is None or int(found[1]) == 0 or int(found[2]) == 0:
        raise ValueError(f'"{written}" is not a rate. Example: 60/1m.')
    return int(found[1]), int(found[2]) * UNITS_MS[found[3]]
