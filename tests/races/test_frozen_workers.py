"""Workers that are stopped by a signal while they hold a lease, and continued later (LEASE.7)."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from django.db import connection

from tests.processes import Processes, lines_of
from tests.races.observing import TIMEOUT_S
from tests.support.hand import Hand, expire
from tests.support.plans import publish_run, workflow
from tests.support.rows import assert_sound, events_of, run_rows
from workflows.errors import Refusal
from workflows.models import Attempt, Run

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = workflow("  - { id: one, kind: shell, run: make, access: read }")

WORKER = """
import sys
from django.db import connection
from tests.ledger.test_paths_agree import advance_in_a_transaction
from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.tap import tap
from workflows.errors import Refusal

hand = Hand(int(sys.argv[1]), owner="frozen")
hand.step()
batch = hand.batch(hand.decide({"v1.1": ok("from the grave")}))
if connection.vendor == "postgresql":
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = 300")

def ready(sql):
    print("ready", flush=True)
    sys.stdin.readline()

def behind_the_fence(sql, seen=[]):
    if sql.startswith('UPDATE "workflows_attempt"') and not seen:
        seen.append(sql)
        ready(sql)

try:
    if sys.argv[2] == "inside":
        with tap(behind_the_fence):
            advance_in_a_transaction(batch)
    else:
        ready("")
        advance_in_a_transaction(batch)
    print("written")
except Refusal as refusal:
    print(refusal.code, refusal.message)
"""


class Worker:
    """A process that stands still with a result in hand: before its transaction, or inside, behind the fence."""

    def __init__(self, processes: Processes, run_id: int, where: str) -> None:
        self.process = processes.start_script(WORKER, str(run_id), where)
        assert lines_of(self.process, 1) == ["ready"]
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> str:
        """What it says after it was continued."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.process.send_signal(signal.SIGCONT)
        answer, errors = self.process.communicate(timeout=TIMEOUT_S)
        assert errors == ""
        return answer.rstrip("\n")


@pytest.fixture
def short_wait() -> Iterator[None]:
    """On SQLite this process gives up the lock soon."""
    options = connection.settings_dict["OPTIONS"]
    before = options.get("timeout")
    connection.close()
    if connection.vendor == "sqlite":
        options["timeout"] = 0.05
    yield
    connection.close()
    if connection.vendor == "sqlite":
        options["timeout"] = before


def test_a_worker_frozen_before_its_transaction_commits_nothing_when_it_thaws(processes: Processes) -> None:
    """LEASE.7"""
    run_id = publish_run(TEXT)
    worker = Worker(processes, run_id, "before")
    expire(run_id)
    Hand(run_id, owner="successor").step()
    before = run_rows(run_id)
    assert worker.thaw() == f"lease.lost The lease on run {run_id} was lost: epoch 2 took over from epoch 1."
    assert run_rows(run_id) == before
    assert_sound()


@pytest.mark.store("postgresql")
def test_the_server_ends_the_transaction_of_a_frozen_worker_and_its_repetition_is_lost(processes: Processes) -> None:
    """LEASE.7: the takeover waits for the row until the server has ended the idle transaction."""
    run_id = publish_run(TEXT)
    worker = Worker(processes, run_id, "inside")
    expire(run_id)
    successor = Hand(run_id, owner="successor")
    assert successor.grant.epoch == 2
    successor.step()
    before = run_rows(run_id)
    assert worker.thaw() == f"lease.lost The lease on run {run_id} was lost: epoch 2 took over from epoch 1."
    assert run_rows(run_id) == before
    assert list(Attempt.objects.order_by("number").values_list("status", flat=True)) == ["interrupted", "running"]
    assert_sound()


@pytest.mark.store("sqlite")
@pytest.mark.usefixtures("short_wait")
def test_nobody_takes_over_while_a_frozen_worker_holds_the_file_and_its_transaction_counts(
    processes: Processes,
) -> None:
    """LEASE.7: a transaction that had passed its fence may commit while nobody has taken over."""
    run_id = publish_run(TEXT)
    worker = Worker(processes, run_id, "inside")
    with pytest.raises(Refusal) as caught:
        Hand(run_id, at_ms=4_000_000_000_000)
    assert caught.value.code == "store.contended"
    assert f"process {worker.process.pid}, started " in caught.value.message
    assert worker.thaw() == "written"
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.lease_epoch) == ("succeeded", 1)
    assert events_of(run_id)[-1] == "run_succeeded"
    assert_sound()
