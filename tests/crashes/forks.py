"""Lives in processes of their own, forked from one that has everything loaded and no thread and no connection."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from django.db import connections

from tests.crashes.life import Lives, Order
from workflows.engine.supervisor import Supervisor
from workflows.engine.supervisor_process import supervise

#: A life that takes longer has hung.
LONGEST_LIFE_S = 90
#: How many lives that nobody kills share a process.
LIVES_OF_A_PROCESS = 8

Indexed = tuple[int, Order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a life ended: ``report`` of one that came to its end, ``killed`` the signal of one that did not."""

    report: dict[str, Any] | None
    killed: int | None
    complaint: str


def live_here(orders: Sequence[Order]) -> list[Ended]:
    """Live orders in this process. It has done everything once afterwards, so what is forked from it begins fast."""
    lives = Lives()
    endings = [Ended(report=lives.live(order), killed=None, complaint="") for order in orders]
    lives.close()
    return endings


def live_all(orders: Sequence[Order], directory: Path, jobs: int) -> list[Ended]:
    """Live every order in another process, ``jobs`` processes at a time; how each ended."""
    connections.close_all()
    if threading.active_count() > 1:
        raise RuntimeError(f"A process with threads cannot be forked soundly: {threading.enumerate()}")
    gc.freeze()  # what is there already is never looked at again, so it is not copied for the forked processes
    waiting = iter(list(_groups(orders)))
    running: dict[int, list[int]] = {}
    endings: dict[int, Ended] = {}
    try:
        while True:
            while len(running) < jobs and (group := next(waiting, None)) is not None:
                running[_fork(group, directory)] = [index for index, _ in group]
            if not running:
                return [endings[index] for index in range(len(orders))]
            process, status = os.wait()
            for index in running.pop(process, ()):
                endings[index] = _collect(directory, index, status)
    finally:
        for process in running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _groups(orders: Sequence[Order]) -> Iterator[list[Indexed]]:
    """A process for each life that ends in a kill, one for some others together."""
    gentle: list[Indexed] = []
    for index, order in enumerate(orders):
        if order.dies_at is not None:
            yield [(index, order)]
            continue
        gentle.append((index, order))
        if len(gentle) == LIVES_OF_A_PROCESS:
            yield gentle
            gentle = []
    if gentle:
        yield gentle


def _fork(group: Sequence[Indexed], directory: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _be_born(group, directory)
    return process


def _be_born(group: Sequence[Indexed], directory: Path) -> None:
    try:
        lives = Lives()
        lend_supervisor_process(lives.worker.supervisor)
        for index, order in group:
            _live_one(lives, order, directory, index)
    finally:
        os._exit(0)


class ForkedSupervisor:
    """A supervisor process that was forked instead of started: the same program, without the time a Python needs to
    start. It stands for the ``Popen`` of the one that a worker starts."""

    def __init__(self) -> None:
        source, target = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(target)
                os.setsid()
                supervise(source)
            finally:
                os._exit(0)
        os.close(source)
        self.stdin = os.fdopen(target, "wb", buffering=0)

    def wait(self) -> int:
        os.waitpid(self.pid, 0)
        return 0


def lend_supervisor_process(supervisor: Supervisor) -> None:
    """Let a worker's supervisor have a process before there are threads; a further one it starts itself."""
    ready, start = [ForkedSupervisor()], supervisor._start
    # a forked copy of this process has to start one of its own, as any worker does
    supervisor._start = lambda: cast(subprocess.Popen[bytes], ready.pop()) if ready else start()  # type: ignore[method-assign]


def _live_one(lives: Lives, order: Order, directory: Path, index: int) -> None:
    complaints = os.open(directory / f"{index}.complaint", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(complaints, 2)
    os.close(complaints)
    signal.alarm(LONGEST_LIFE_S)
    try:
        (directory / f"{index}.report").write_text(json.dumps(lives.live(order)))
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()


def _collect(directory: Path, index: int, status: int) -> Ended:
    report, complaint = directory / f"{index}.report", directory / f"{index}.complaint"
    told = json.loads(report.read_text()) if report.exists() else None
    text = complaint.read_text() if complaint.exists() else ""
    report.unlink(missing_ok=True)
    complaint.unlink(missing_ok=True)
    return Ended(report=told, killed=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None, complaint=text)
