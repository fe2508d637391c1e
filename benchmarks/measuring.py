"""Measures one engine on one store in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import stores
from benchmarks.engines import EngineEntry
from benchmarks.samples import Measured, measured_from_json
from benchmarks.subjects import Subject

#: How long one engine may take on one store, in seconds.
TIMEOUT_S = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A measurement that gave no figure, and why."""

    subject: str
    engine: str
    store: str
    reason: str


def measure(
    entry: EngineEntry,
    vendor: str,
    server: str | None,
    subjects: Sequence[Subject],
    *,
    quick: bool,
) -> list[Measured | Failed]:
    """Every subject of ``subjects`` on one fresh database."""
    with stores.temporary(vendor, server) as store:
        request = {
            "engine": entry.name,
            "store": asdict(store),
            "subjects": [_request(subject, quick) for subject in subjects],
        }
        return _ask(entry, vendor, request, [subject.name for subject in subjects])


def _request(subject: Subject, quick: bool) -> dict[str, Any]:
    return {
        "name": subject.name,
        "count": subject.counted(quick),
        "repetitions": subject.repeated(quick),
        "warm_up": subject.name != "late-visits",
    }


def _ask(entry: EngineEntry, vendor: str, request: dict[str, Any], names: list[str]) -> list[Measured | Failed]:
    environment = {**os.environ, "PYTHONPATH": str(stores.PROJECT)}
    child = subprocess.Popen(
        (sys.executable, "-m", "benchmarks.child"),
        cwd=stores.PROJECT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, complaints = child.communicate(json.dumps(request), timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        output, complaints = child.communicate()
        complaints += f"It took longer than {TIMEOUT_S} s."
    found: dict[str, Measured | Failed] = {}
    for line in output.splitlines():
        answer = json.loads(line)
        name = answer["subject"]
        if "failed" in answer:
            found[name] = Failed(subject=name, engine=entry.name, store=vendor, reason=answer["failed"])
        else:
            found[name] = measured_from_json(answer)
    reason = complaints.strip().splitlines()[-1] if complaints.strip() else f"it ended with {child.returncode}"
    for name in names:
        found.setdefault(name, Failed(subject=name, engine=entry.name, store=vendor, reason=reason))
    return [found[name] for name in names]
