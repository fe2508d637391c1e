"""DBOS: a workflow of steps, and a queue of workflows of one step each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbos import DBOS

from benchmarks.engines.contract import Runner
from benchmarks.samples import timed
from benchmarks.stores import Store


@contextmanager
def open_engine(store: Store) -> Iterator[Dbos]:
    url = f"sqlite:///{store.path}" if store.vendor == "sqlite" else store.url
    DBOS(config={"name": "benchmark", "system_database_url": url, "log_level": "ERROR"})
    engine = Dbos()
    DBOS.launch()
    DBOS.register_queue("items", worker_concurrency=8, polling_interval_sec=0.05)
    try:
        yield engine
    finally:
        DBOS.destroy()


class Dbos:
    note = "fan-out: a queue polled every 50 ms"

    def __init__(self) -> None:
        @DBOS.step()
        def constant() -> int:
            return 42

        @DBOS.workflow()
        def sequence(count: int) -> int:
            return sum(constant() for _ in range(count))

        @DBOS.workflow()
        def one() -> int:
            return constant()

        self.sequence: Any = sequence
        self.one: Any = one

    def runner(self, subject: str) -> Runner:
        if subject == "fan-out":
            return lambda count: timed(lambda: self.collect(count)).rate(count)
        return lambda count: timed(lambda: self.sequence(count)).per(count)

    def collect(self, count: int) -> None:
        handles = [DBOS.enqueue_workflow("items", self.one) for _ in range(count)]
        assert all(handle.get_result(polling_interval_sec=0.01) == 42 for handle in handles)
