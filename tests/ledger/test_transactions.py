"""The runner of ledger verbs: whole, durable, repeated only when nothing can have been written (docs/architecture.md, EVT.3)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from tests.postgresql_proxy import Proxy
from tests.processes import Processes, run_in_threads
from workflows.errors import Refusal
from workflows.ledger import write_queue
from workflows.ledger.transactions import (
    PAUSES_S,
    NestedLedgerTransactionError,
    after_commit,
    ledger_transaction,
    require_ledger_transaction,
    run_single_statement,
)
from workflows.models.guard import OutsideLedgerError
from workflows.stores.failures import StoreFailureKind

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_groups")]


@ledger_transaction
def add_group(*, name: str) -> str:
    require_ledger_transaction()
    return Group.objects.create(name=name).name


def find_group(*, name: str) -> str | None:
    found = Group.objects.filter(name=name).first()
    return None if found is None else found.name


def group_names() -> list[str]:
    return list(Group.objects.order_by("name").values_list("name", flat=True))


@pytest.fixture
def short_wait() -> Iterator[None]:
    """SQLite gives up a lock at once."""
    options = connection.settings_dict["OPTIONS"]
    connection.close()
    before, options["timeout"] = options["timeout"], 0.01
    yield
    connection.close()
    options["timeout"] = before


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """The connection of this thread leads through a proxy that can cut it."""
    settings = connection.settings_dict
    connection.ensure_connection()
    opened = Proxy(connection.connection.info.host, connection.connection.info.port)
    before = settings["HOST"], settings["PORT"]
    connection.close()
    settings["HOST"], settings["PORT"] = "127.0.0.1", str(opened.port)
    yield opened
    connection.close()
    settings["HOST"], settings["PORT"] = before
    opened.close()


def test_a_verb_commits_and_returns_its_answer() -> None:
    assert add_group(name="a") == "a"
    assert group_names() == ["a"]


def test_a_verb_that_raises_leaves_nothing() -> None:
    @ledger_transaction
    def fail() -> None:
        Group.objects.create(name="gone")
        raise LookupError("as it was raised")

    with pytest.raises(LookupError, match=r"^as it was raised$"):
        fail()
    assert group_names() == []


def test_a_verb_inside_a_verb_is_refused() -> None:
    @ledger_transaction
    def outer() -> None:
        add_group(name="inner")

    with pytest.raises(NestedLedgerTransactionError) as caught:
        outer()
    assert str(caught.value) == "add_group opens a transaction of its own and was called inside one."
    assert group_names() == []


def test_a_verb_inside_a_plain_transaction_is_refused() -> None:
    with pytest.raises(NestedLedgerTransactionError), transaction.atomic():
        add_group(name="inner")
    assert group_names() == []


def test_generators_and_coroutines_are_no_verbs() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def coroutine() -> None:
        await asyncio.sleep(0)

    for body in (generator, coroutine):
        with pytest.raises(TypeError, match=r"is not a plain function\.$"):
            ledger_transaction(body)


def test_the_guard_is_open_inside_a_verb_only() -> None:
    add_group(name="a")
    with pytest.raises(OutsideLedgerError):
        require_ledger_transaction()
    with pytest.raises(RuntimeError, match=r"^after_commit belongs inside a ledger transaction\.$"):
        after_commit(lambda: None)


def test_listeners_run_after_the_commit_and_a_failing_one_stops_none(caplog: pytest.LogCaptureFixture) -> None:
    """EVT.3"""
    seen: list[object] = []

    @ledger_transaction
    def publish() -> None:
        Group.objects.create(name="x")
        after_commit(lambda: seen.append(group_names()))
        after_commit(lambda: 1 / 0)
        after_commit(lambda: seen.append(add_group(name="from a listener")))

    publish()
    assert seen == [["x"], "from a listener"]
    assert [record.message for record in caplog.records] == ["A listener of a committed ledger transaction failed."]


def test_listeners_of_a_rolled_back_verb_never_run() -> None:
    seen: list[str] = []

    @ledger_transaction
    def fail() -> None:
        after_commit(lambda: seen.append("called"))
        raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert seen == []


def test_many_threads_write_at_once_and_nothing_is_lost() -> None:
    """DB.1"""

    def write(thread: int) -> int:
        for number in range(20):
            add_group(name=f"{thread}-{number}")
        return thread

    assert run_in_threads(*(lambda thread=thread: write(thread) for thread in range(6))) == [0, 1, 2, 3, 4, 5]
    assert Group.objects.count() == 120


WRITER = """
import sys
from django.contrib.auth.models import Group
from workflows.ledger.transactions import ledger_transaction

@ledger_transaction
def add(name):
    Group.objects.create(name=name)

for number in range(25):
    add(f"{sys.argv[1]}-{number}")
print("done")
"""


def test_many_processes_write_at_once_and_nothing_is_lost(processes: Processes) -> None:
    """DB.1"""
    started = [processes.start_script(WRITER, str(number)) for number in range(4)]
    assert [process.communicate(timeout=60) for process in started] == [("done\n", "")] * 4
    assert Group.objects.count() == 100


@pytest.mark.usefixtures("short_wait")
@pytest.mark.store("sqlite")
def test_a_lock_that_is_never_free_ends_as_contended_and_names_the_last_writer() -> None:
    add_group(name="first")
    bodies: list[str] = []

    @ledger_transaction
    def add() -> None:
        bodies.append("began")

    foreign = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    try:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(Refusal) as caught:
            add()
    finally:
        foreign.close()
    writer = write_queue.queue_for(connection).last_writer()
    assert writer is not None
    assert caught.value.code == "store.contended"
    assert caught.value.message == f"The database is busy: another process is writing (last seen: {writer})."
    assert caught.value.exit_code == 75
    assert bodies == []
    add()
    assert bodies == ["began"]


@pytest.mark.usefixtures("short_wait")
@pytest.mark.store("sqlite")
def test_a_full_disk_is_a_refusal_and_writes_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # no room that earlier tests have left inside of the file
        cursor.execute("PRAGMA max_page_count=1")

    @ledger_transaction
    def add_many() -> None:
        Group.objects.bulk_create([Group(name=f"{number} {'x' * 100}") for number in range(10_000)])

    with pytest.raises(Refusal) as caught:
        add_many()
    connection.close()
    assert caught.value.message == "The database cannot be used: the disk is full."
    assert caught.value.hint == "Free some space, then try again."
    assert group_names() == []


@pytest.mark.store("postgresql")
def test_deadlocked_verbs_are_run_again_whole() -> None:
    """DB.2"""
    add_group(name="a")
    add_group(name="b")
    both_hold_one = threading.Barrier(2)
    bodies: list[str] = []

    @ledger_transaction
    def rename(first: str, second: str) -> str:
        bodies.append(first)
        Group.objects.select_for_update().get(name__startswith=first)
        if len(bodies) <= 2:
            both_hold_one.wait(10)
        Group.objects.filter(name__startswith=second).update(name=f"{second} by {first}")
        return first

    assert run_in_threads(lambda: rename("a", "b"), lambda: rename("b", "a")) == ["a", "b"]
    assert len(bodies) == 3
    assert group_names() == ["a by b", "b by a"]


@pytest.mark.store("postgresql")
def test_serialization_failures_without_end_become_contended() -> None:
    """DB.2"""
    bodies: list[int] = []

    @ledger_transaction
    def collide() -> None:
        bodies.append(1)
        with connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'made up' USING ERRCODE = '40001'; END $$")

    with pytest.raises(Refusal) as caught:
        collide()
    assert caught.value.message == "The database is busy: the transaction collided with another one."
    assert len(bodies) == 1 + len(PAUSES_S[StoreFailureKind.CONTENDED])


@pytest.mark.store("postgresql")
def test_a_connection_that_breaks_before_the_commit_is_replaced_and_the_verb_runs_again() -> None:
    """DB.2"""
    bodies: list[int] = []

    @ledger_transaction
    def add() -> str:
        bodies.append(1)
        Group.objects.create(name="once")
        if len(bodies) == 1:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return "answer"

    assert add() == "answer"
    assert len(bodies) == 2
    assert group_names() == ["once"]


@pytest.mark.store("postgresql")
def test_after_a_lost_commit_reply_the_verb_finds_that_it_was_written(proxy: Proxy) -> None:
    """DB.2"""
    seen: list[str] = []

    @ledger_transaction(already_mine=find_group)
    def add(*, name: str) -> str:
        proxy.lose_the_reply_to(b"COMMIT")
        after_commit(lambda: seen.append("published"))
        return Group.objects.create(name=name).name

    assert add(name="mine") == "mine"
    assert proxy.replies_lost == 1
    assert group_names() == ["mine"]
    assert seen == ["published"]


@pytest.mark.store("postgresql")
def test_a_commit_that_never_arrived_is_not_repeated_and_said_to_be_unwritten(proxy: Proxy) -> None:
    """DB.2"""
    bodies: list[int] = []

    @ledger_transaction(already_mine=find_group)
    def add(*, name: str) -> str:
        bodies.append(1)
        proxy.swallow(b"COMMIT")
        return Group.objects.create(name=name).name

    with pytest.raises(Refusal) as caught:
        add(name="lost")
    assert caught.value.message == (
        "The database cannot be used: the connection broke while add was being committed, "
        "and nothing of it was written."
    )
    assert caught.value.hint == "Try again."
    assert bodies == [1]
    assert group_names() == []


@pytest.mark.store("postgresql")
def test_a_lost_commit_reply_without_a_lookup_is_said_to_be_unknown(proxy: Proxy) -> None:
    """DB.2"""

    @ledger_transaction
    def add() -> None:
        proxy.lose_the_reply_to(b"COMMIT")
        Group.objects.create(name="written")

    with pytest.raises(Refusal) as caught:
        add()
    assert caught.value.message == (
        "The database cannot be used: the connection broke while add was being committed, "
        "and whether it was written is not known."
    )
    assert caught.value.data["commit_unknown"] is True
    assert group_names() == ["written"]


@pytest.mark.store("postgresql")
def test_the_limits_of_a_session_end_together_before_a_lease_does() -> None:
    limits: dict[str, Any] = {}
    with connection.cursor() as cursor:
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute("SELECT setting::bigint FROM pg_settings WHERE name = %s", [name])
            limits[name] = cursor.fetchone()[0]
    assert limits == {
        "lock_timeout": 10_000,
        "statement_timeout": 25_000,
        "idle_in_transaction_session_timeout": 15_000,
    }
    assert sum(limits.values()) < 60_000


def test_a_single_statement_is_a_transaction_of_its_own() -> None:
    def write() -> int:
        require_ledger_transaction()
        return Group.objects.filter(name="a").update(name="b")

    add_group(name="a")
    assert run_single_statement(write, verb="rename", already_mine=lambda: None) == 1
    assert group_names() == ["b"]


def insert_group(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO auth_group (name) VALUES (%s)", [name])
        return cursor.rowcount


@pytest.mark.store("postgresql")
def test_a_single_statement_whose_reply_is_lost_is_found_again(proxy: Proxy) -> None:
    """DB.2"""
    bodies: list[int] = []

    def write() -> int:
        bodies.append(1)
        proxy.lose_the_reply_to(b"INSERT")
        return insert_group("mine")

    answer = run_single_statement(write, verb="add", already_mine=lambda: Group.objects.count() or None)
    assert (answer, proxy.replies_lost, bodies) == (1, 1, [1])
    assert group_names() == ["mine"]


@pytest.mark.store("postgresql")
def test_a_single_statement_on_a_connection_that_died_while_idle_runs_again(proxy: Proxy) -> None:
    """DB.2"""
    bodies: list[int] = []

    def write() -> int:
        bodies.append(1)
        if len(bodies) == 1:
            proxy.swallow(b"INSERT")
        return insert_group("once")

    answer = run_single_statement(write, verb="add", already_mine=lambda: Group.objects.count() or None)
    assert (answer, bodies) == (1, [1, 1])
    assert group_names() == ["once"]
