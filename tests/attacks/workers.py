"""Verbs about workers themselves in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from functools import partial

from tests.attacks.verbs import Call, attacked, fresh
from tests.support.plans import START
from workflows.clock import unix_ms
from workflows.ledger import tallying, workers

NOW_MS = unix_ms(START)


def registering(name: str) -> Call:
    return partial(
        workers.register,
        name=name,
        kind="run_worker",
        pool="",
        drivers=4,
        engine_versions=frozenset({1}),
        code_version="1.0",
        now_ms=NOW_MS,
    )


def registered() -> str:
    name = fresh()
    registering(name)()
    return name


@attacked(workers.register)
def registers_a_worker() -> Call:
    return registering(fresh())


@attacked(workers.beat)
def shows_that_a_worker_lives() -> Call:
    return partial(workers.beat, name=registered(), now_ms=NOW_MS + 15_000)


@attacked(workers.stop)
def says_that_a_worker_stops() -> Call:
    return partial(workers.stop, name=registered(), now_ms=NOW_MS + 15_000)


@attacked(workers.forget)
def forgets_a_silent_worker() -> Call:
    registered()
    return partial(workers.forget, now_ms=NOW_MS + 2 * workers.SILENT_STAYS_MS)


@attacked(tallying.add_up)
def adds_up_what_was_counted() -> Call:
    return partial(tallying.add_up, counts={("attempt", "shell", "succeeded"): 2, ("event", fresh(), ""): 1})
