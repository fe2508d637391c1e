"""The process of one engine on one store: ``python -m benchmarks.child``, a request on standard input, JSON lines out.

The request is ``{engine, store, subjects: [{name, count, repetitions}]}``; every line answers one subject.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from benchmarks import engines
from benchmarks.engines.contract import Engine
from benchmarks.floor import floor_of
from benchmarks.samples import Measured, Sample
from benchmarks.stores import Store


def main() -> int:
    request = json.load(sys.stdin)
    answers, sys.stdout = sys.stdout, sys.stderr  # what an engine prints is not an answer
    store = Store(**request["store"])
    entry = engines.BY_NAME[request["engine"]]
    with floor_of(store) as floor, importlib.import_module(entry.module).open_engine(store) as engine:
        for wanted in request["subjects"]:
            try:
                line = measure(engine, floor, entry, store, wanted).as_json()
            except Exception as error:
                traceback.print_exc()
                line = {"subject": wanted["name"], "failed": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(line) + "\n")
            answers.flush()
    return 0


def measure(
    engine: Engine, floor: Callable[[], float], entry: engines.EngineEntry, store: Store, wanted: dict[str, Any]
) -> Measured:
    """One warm-up, then the repetitions, each between two looks at the floor."""
    run = engine.runner(wanted["name"])
    if wanted["warm_up"]:
        run(min(wanted["count"], 200))
    samples: list[Sample] = []
    floors = [floor()]
    for _ in range(wanted["repetitions"]):
        samples.append(run(wanted["count"]))
        floors.append(floor())
    return Measured(
        subject=wanted["name"],
        engine=entry.name,
        store=store.vendor,
        samples=tuple(samples),
        floor_ms=tuple(floors),
        versions=entry.versions(),
        note=engine.note,
    )


if __name__ == "__main__":
    sys.exit(main())
