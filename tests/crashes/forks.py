"""Lives in processes of their own, forked from one that has everything loaded and no thread and no connection."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connections

from tests.crashes.life import Order, live

#: A life that takes longer has hung.
LONGEST_LIFE_S = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a life ended: ``report`` of one that came to its end, ``killed`` the signal of one that did not."""

    report: dict[str, Any] | None
    killed: int | None
    complaint: str


def live_all(orders: Sequence[Order], directory: Path, jobs: int) -> Iterator[tuple[int, Ended]]:
    """Live every order, ``jobs`` at a time; yields index and ending in the order of their ends."""
    connections.close_all()
    running: dict[int, int] = {}
    waiting = iter(enumerate(orders))
    try:
        while True:
            while len(running) < jobs and (order := next(waiting, None)) is not None:
                running[_fork(order[1], directory, order[0])] = order[0]
            if not running:
                return
            process, status = os.wait()
            if process in running:
                yield running[process], _collect(directory, running.pop(process), status)
    finally:
        for process in running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _fork(order: Order, directory: Path, index: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _be_born(order, directory, index)
    return process


def _be_born(order: Order, directory: Path, index: int) -> None:
    code = 1
    try:
        complaints = os.open(directory / f"{index}.complaint", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(complaints, 2)
        signal.alarm(LONGEST_LIFE_S)
        report = live(order)
        (directory / f"{index}.report").write_text(json.dumps(report))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _collect(directory: Path, index: int, status: int) -> Ended:
    report, complaint = directory / f"{index}.report", directory / f"{index}.complaint"
    told = json.loads(report.read_text()) if report.exists() else None
    text = complaint.read_text() if complaint.exists() else ""
    report.unlink(missing_ok=True)
    complaint.unlink(missing_ok=True)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return Ended(report=told, killed=killed, complaint=text)
