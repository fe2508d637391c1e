"""The machine, its versions, and whether it is busy with something else."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path


def describe_machine() -> dict[str, str]:
    """What a reader needs to compare figures."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 0),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def load() -> float:
    """Processes that wanted to run during the last minute, on average."""
    return os.getloadavg()[0]


def load_warning(value: float) -> str | None:
    """A sentence when others keep the machine busy. ``value`` is the load before the first measurement."""
    cores = os.cpu_count() or 1
    if value < 0.5 * cores:
        return None
    return (
        f"The machine is loaded ({value:.1f} for {cores} cores): compare the figures with the floor beside them, "
        "not with those of another day."
    )


def _processor() -> str:
    names = _values_of("/proc/cpuinfo", "model name")
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> str:
    sizes = _values_of("/proc/meminfo", "MemTotal")
    return f"{int(sizes[0].split()[0]) / 1024 / 1024:.1f} GiB" if sizes else "unknown"


def _values_of(path: str, key: str) -> list[str]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return []
    return [line.partition(":")[2].strip() for line in lines if line.startswith(key)]
