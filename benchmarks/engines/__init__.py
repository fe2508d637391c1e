"""One module per engine: how it is opened on a database, and how it runs each subject."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEntry:
    """``modules`` must be importable; ``packages`` are the distributions whose versions are shown."""

    name: str
    title: str
    module: str
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    subjects: tuple[str, ...]
    vendors: tuple[str, ...]

    def is_installed(self) -> bool:
        return all(importlib.util.find_spec(name.partition(".")[0]) is not None for name in self.modules)

    def versions(self) -> dict[str, str]:
        found = {}
        for package in self.packages:
            try:
                found[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                continue
        return found


_COMPARED = ("steps-200", "steps-1000", "fan-out")

WAYPOST = EngineEntry(
    name="waypost",
    title="Waypost",
    module="benchmarks.engines.waypost",
    modules=(),
    packages=("waypost", "Django", "psycopg"),
    subjects=(*_COMPARED, "pure", "late-visits", "start", "command"),
    vendors=("sqlite", "postgresql"),
)
PEERS = (
    EngineEntry(
        name="langgraph",
        title="LangGraph",
        module="benchmarks.engines.langgraph_peer",
        modules=("langgraph", "aiosqlite"),
        packages=("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres"),
        subjects=_COMPARED,
        vendors=("sqlite", "postgresql"),
    ),
    EngineEntry(
        name="dbos",
        title="DBOS",
        module="benchmarks.engines.dbos_peer",
        modules=("dbos",),
        packages=("dbos",),
        subjects=_COMPARED,
        vendors=("sqlite", "postgresql"),
    ),
    EngineEntry(
        name="absurd",
        title="Absurd",
        module="benchmarks.engines.absurd_peer",
        modules=("absurd_sdk", "absurdctl"),
        packages=("absurd-sdk",),
        subjects=_COMPARED,
        vendors=("postgresql",),
    ),
)
BY_NAME = {entry.name: entry for entry in (WAYPOST, *PEERS)}
