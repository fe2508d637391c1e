"""Every verb of the ledger is whole or nothing, wherever it is cut: a failing statement, a killed process, a server that
ends the session (promises PUB.1, SET.1, DB.2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection

from tests.attacks.everything import ATTACKED, ATTACKS, ledger_verbs
from tests.attacks.snapshots import snapshot
from tests.processes import Processes
from tests.support.rows import assert_sound
from tests.support.tap import Injected, counted, failing_at, tap

pytestmark = pytest.mark.django_db(transaction=True)

#: The killing process attacks so many verbs before another one starts: Django costs more than most of them.
WORLDS_OF_A_PROCESS = 16
NAMES = sorted(ATTACKS)


def test_every_verb_is_attacked() -> None:
    """A new verb of the ledger needs a world in ``tests/attacks/verbs.py``."""
    missing = set(ledger_verbs()) - ATTACKED
    assert sorted(f"{verb.__module__}.{verb.__name__}" for verb in missing) == []
    assert len(ATTACKED) > 15


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_that_fails_at_any_of_its_statements_leaves_nothing_and_succeeds_when_it_is_repeated(name: str) -> None:
    """PUB.1, SET.1"""
    call = ATTACKS[name]()
    before, failed = snapshot(), 0
    for number in range(1, 200):
        try:
            with failing_at(number) as seen:
                call()
        except Injected:
            failed += 1
            assert snapshot() == before, seen[-1]
        else:
            break
    assert failed == len(seen) > 0
    assert snapshot() != before
    assert_sound()


@pytest.mark.parametrize("first", range(0, len(NAMES), WORLDS_OF_A_PROCESS))
def test_a_process_that_is_killed_at_any_write_or_before_the_commit_leaves_nothing(
    first: int, processes: Processes
) -> None:
    """PUB.1, SET.1, KILL"""
    names = NAMES[first : first + WORLDS_OF_A_PROCESS]
    # the last connection to an SQLite file that is closed writes all of it: this one stays
    connection.ensure_connection()
    killer = processes.start_python("-m", "tests.attacks.kills", "--sample", *names)
    stdout, stderr = killer.communicate(timeout=180)
    assert killer.returncode == 0, stderr
    told = json.loads(stdout)
    assert {name: report["complaints"] for name, report in told.items()} == {name: [] for name in names}
    assert all(report["deaths"] > 0 for report in told.values())
    if connection.vendor == "sqlite":
        assert all(report["at_commit"] for report in told.values())


def growth(call: Callable[[], object]) -> Counter[str]:
    """How many rows each table gains by a call. Payloads are stored once, whoever needs them."""
    before = snapshot()
    call()
    return Counter({table: len(rows) - len(before[table]) for table, rows in snapshot().items() if table != "Payload"})


def ending_session_at(number: int, call: Callable[[], object]) -> Callable[[], int]:
    """``call`` with the session ended at a statement, and how many statements were sent in that session."""

    def disturbed() -> int:
        sent = 0

        def count(sql: str) -> None:
            nonlocal sent
            sent += 1
            if sent == number:
                end_this_session()

        with tap(count):
            call()
        return sent

    return disturbed


@pytest.mark.store("postgresql")
@pytest.mark.parametrize("name", NAMES)
def test_a_verb_whose_session_the_server_ends_in_the_middle_runs_again_and_counts_once(name: str) -> None:
    """DB.2"""
    call = ATTACKS[name]()
    with counted() as seen:
        call()
    grown = growth(ATTACKS[name]())
    for number in sorted({1, len(seen) // 2 + 1, len(seen)}):
        assert growth(ending_session_at(number, ATTACKS[name]())) == grown, seen[number - 1]
    assert_sound()


def end_this_session() -> None:
    """The server ends the session of this thread's connection, as a restart of it would."""
    import psycopg

    session = connection.connection.pgconn.backend_pid
    words = {name: value for name, value in connection.get_connection_params().items() if name in _PLACE}
    with psycopg.connect(**words, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [session])


_PLACE = frozenset({"dbname", "host", "port", "user", "password"})
