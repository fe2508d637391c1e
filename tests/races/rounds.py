"""Two calls against each other: one first, the other first, and both at the same instant, many times.

Whatever happens at the same instant must be what happens in one of the two orders. Nobody sleeps: an order is made by
stopping the first one before its commit and seeing the other wait for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.db import connection, connections

from tests.races.observing import TIMEOUT_S, Gate, in_thread, stopping_before_commit, threads, wait_for_lock_waits
from workflows.errors import Refusal
from workflows.ledger.write_queue import queue_for

#: Rounds of a race; ``python -m tests.races --rounds 1000`` plays more.
ROUNDS = int(os.environ.get("WAYPOST_TEST_ROUNDS", "50"))
Call = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """``left`` and ``right`` against each other; ``end`` says, after both, what has become of it."""

    left: Call
    right: Call
    end: Call


class Order(Enum):
    LEFT_FIRST = "left first"
    RIGHT_FIRST = "right first"


def in_order(race: Race, order: Order) -> tuple[str, str, str]:
    """What both answer, and the end, when the second one waits for the commit of the first."""
    first, second = (race.left, race.right) if order is Order.LEFT_FIRST else (race.right, race.left)
    gate = Gate()
    with threads(2) as pool:
        leading = in_thread(pool, stopping_before_commit(gate, first))
        assert gate.reached.wait(TIMEOUT_S)
        following = in_thread(pool, second)
        wait_for_a_waiter()
        gate.opened.set()
        answers = [said(leading.result(TIMEOUT_S)), said(following.result(TIMEOUT_S))]
    left, right = answers if order is Order.LEFT_FIRST else reversed(answers)
    return left, right, str(race.end())


def wait_for_a_waiter() -> None:
    """Until somebody waits: for a lock of the server, or in the queue of the file's writers."""
    if connection.vendor == "postgresql":
        wait_for_lock_waits(1)
        return
    threads_of_queue, pause = queue_for(connection)._threads, threading.Event()
    for _ in range(100_000):
        if threads_of_queue.waiting:
            return
        pause.wait(0.001)
    raise AssertionError("nobody ever waited in the queue")


class Pair:
    """Two threads that keep their connections over many rounds."""

    def __init__(self, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]) -> None:
        self._pools = pools

    def run(self, race: Race) -> tuple[str, str, str]:
        """What both answer, and the end, when they begin at the same instant."""
        start = threading.Barrier(2)

        def go(call: Call) -> object:
            start.wait(TIMEOUT_S)
            try:
                return call()
            except Exception as error:
                return error

        futures = [pool.submit(go, call) for pool, call in zip(self._pools, (race.left, race.right), strict=True)]
        left, right = (said(future.result(TIMEOUT_S)) for future in futures)
        return left, right, str(race.end())


@contextmanager
def pair() -> Iterator[Pair]:
    with ThreadPoolExecutor(1) as left, ThreadPoolExecutor(1) as right:
        try:
            yield Pair((left, right))
        finally:
            for pool in (left, right):
                pool.submit(connections.close_all).result(TIMEOUT_S)


def said(answer: object) -> str:
    """The code of a refusal, or what an answer says of itself: whether it was new, and so on."""
    if isinstance(answer, Refusal):
        return answer.code
    if isinstance(answer, Exception):
        raise answer
    for name in ("new", "created", "recovered"):
        if hasattr(answer, name):
            return f"{name} {getattr(answer, name)}"
    return str(answer) if isinstance(answer, bool | None) else "done"
