"""Absurd: a task of steps, and a queue of tasks that a worker of eight threads takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL

from benchmarks.engines.contract import Runner
from benchmarks.samples import timed
from benchmarks.stores import Store


@contextmanager
def open_engine(store: Store) -> Iterator[AbsurdEngine]:
    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute(BUNDLED_SCHEMA_SQL)
    app = Absurd(store.url)
    app.create_queue()
    try:
        yield AbsurdEngine(app, store.url)
    finally:
        app.close()


class AbsurdEngine:
    note = "fan-out: a worker of 8 threads that polls every 10 ms"

    def __init__(self, app: Any, url: str) -> None:
        self.app = app
        self.url = url

        @app.register_task(name="sequence")
        def sequence(params: Any, context: Any) -> int:
            return sum(context.step("call", lambda: 42) for _ in range(params["count"]))

        @app.register_task(name="one")
        def one(params: Any, context: Any) -> int:
            value: int = context.step("call", lambda: 42)
            return value

    def runner(self, subject: str) -> Runner:
        if subject == "fan-out":
            return lambda count: timed(lambda: self.collect(count)).rate(count)
        return lambda count: timed(lambda: self.run_sequence(count)).per(count)

    def run_sequence(self, count: int) -> None:
        task = self.app.spawn("sequence", {"count": count})
        self.app.work_batch()
        assert self.app.fetch_task_result(task["task_id"]).result == 42 * count

    def collect(self, count: int) -> None:
        for _ in range(count):
            self.app.spawn("one", {})
        worker = threading.Thread(target=self.app.start_worker, kwargs={"concurrency": 8, "poll_interval": 0.01})
        worker.start()
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                while connection.execute(_UNFINISHED).fetchone() != (0,):
                    time.sleep(0.005)
        finally:
            self.app.stop_worker()
            worker.join()


_UNFINISHED = "SELECT count(*) FROM absurd.t_default WHERE state <> 'completed'"
