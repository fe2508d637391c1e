"""Celery workers as processes: they drive, are killed, lose their broker, and hear everything twice (LEASE 9, 12, 13)."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.celery.brokers import PrivateRabbit, PrivateRedis
from tests.celery.conftest import CeleryWorker
from tests.commands.support import workflow_file
from tests.commands.test_processes import wait_until
from tests.processes import TIMEOUT_S
from workflows.models import Attempt, Lease, Run, Worker
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.workflows import definition_of_file
from workflows.tasks.app import DRIVE_RUN, make_app

pytestmark = pytest.mark.django_db(transaction=True)

#: Each step notes in a file that its effect began.
STEPS = """
steps:
  - { id: one, kind: shell, access: read, env: { RUN: "${ run.id }" }, run: 'echo one-$RUN >> "LOG"' }
  - { id: rest, kind: wait, for: 1500ms }
  - { id: two, kind: shell, access: read, env: { RUN: "${ run.id }" }, run: 'sleep SLEEP; echo two-$RUN >> "LOG"' }
"""


def started(folder: Path, count: int, *, sleep: str = "0") -> list[int]:
    text = STEPS.replace("LOG", str(folder / "log")).replace("SLEEP", sleep)
    definition = definition_of_file(Path(workflow_file(folder, text)).read_bytes())
    actor = Actor(name="alice", recorded="alice")
    return [start(Start(definition=definition, actor=actor)).run_id for _ in range(count)]


def ring(broker: str, *runs: int) -> None:
    app = make_app(broker, "")
    with app.connection_for_write() as connection:
        producer = app.amqp.Producer(connection)
        for run in runs:
            app.send_task(DRIVE_RUN, args=[run], producer=producer)


def effects(folder: Path) -> Counter[str]:
    log = folder / "log"
    return Counter(log.read_text().split()) if log.exists() else Counter()


def statuses(runs: list[int]) -> set[str]:
    return set(Run.objects.filter(pk__in=runs).values_list("status", flat=True))


def wait_for_end(runs: list[int]) -> None:
    wait_until(lambda: not Run.objects.live().filter(pk__in=runs).exists())
    assert statuses(runs) == {"succeeded"}


def once_each(runs: list[int]) -> Counter[str]:
    return Counter(f"{step}-{run}" for run in runs for step in ("one", "two"))


@pytest.mark.parametrize("broker", ["redis", "rabbit"])
def test_runs_are_driven_to_their_end_with_timers_between(
    request: pytest.FixtureRequest, broker: str, celery_worker: CeleryWorker, tmp_path: Path
) -> None:
    """LEASE.12: every message is sent twice, and one names a run that is not there; nobody rings when a timer is due."""
    server: PrivateRedis | PrivateRabbit = request.getfixturevalue(broker)
    runs = started(tmp_path, 4)
    celery_worker(server.url)
    ring(server.url, *runs, *runs, 10**9)
    wait_for_end(runs)
    assert effects(tmp_path) == once_each(runs)
    assert set(Worker.objects.values_list("kind", flat=True)) == {"celery"}


def test_runs_nobody_rang_for_are_found_by_the_sweep(
    redis: PrivateRedis, celery_worker: CeleryWorker, tmp_path: Path
) -> None:
    """LEASE.12"""
    runs = started(tmp_path, 2)
    celery_worker(redis.url)
    wait_for_end(runs)
    assert effects(tmp_path) == once_each(runs)


def test_a_worker_that_is_killed_and_a_broker_that_forgets_lose_and_double_nothing(
    redis: PrivateRedis, celery_worker: CeleryWorker, tmp_path: Path
) -> None:
    """LEASE.12: killed in the middle of an effect, with messages in the queue; then all messages are lost."""
    runs = started(tmp_path, 4, sleep="1")
    victim = celery_worker(redis.url)
    ring(redis.url, *runs)
    wait_until(lambda: any(step.startswith("one") for step in effects(tmp_path)))
    wait_until(lambda: _driven_by_a_child_of(victim.pid))
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait(TIMEOUT_S)
    redis.kill()
    celery_worker(redis.url)
    redis.start()
    wait_for_end(runs)
    done = effects(tmp_path)
    # reads: one that was interrupted is begun again, and none is left out
    assert set(done) == set(once_each(runs))
    for run in runs:
        begun = Attempt.objects.filter(run_id=run, visit=1).count()
        assert done[f"one-{run}"] <= begun


def _driven_by_a_child_of(pid: int) -> bool:
    owners = Lease.objects.exclude(owner="").values_list("owner", flat=True)
    return any(_group_of(int(owner.split(":")[1])) == pid for owner in owners)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def test_a_worker_that_is_told_to_stop_hands_its_run_back_within_the_grace(
    redis: PrivateRedis, celery_worker: CeleryWorker, tmp_path: Path
) -> None:
    """LEASE.9: also when an effect would run for a minute; another worker goes on with the run at once."""
    (run,) = started(tmp_path, 1, sleep="60")
    worker = celery_worker(redis.url)
    ring(redis.url, run)
    wait_until(lambda: Attempt.objects.filter(run_id=run, visit=3, status="running").exists())
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    lease = Lease.objects.get(run_id=run)
    assert (lease.expires_ms, lease.owner) == (0, "")
    assert not Worker.objects.filter(stopped_ms=None).exists()
    assert Run.objects.get(pk=run).crashes == 0


def test_a_worker_without_its_broker_beats_and_does_not_look(
    redis: PrivateRedis, celery_worker: CeleryWorker, tmp_path: Path
) -> None:
    """LEASE.13"""
    celery_worker(redis.url)
    wait_until(lambda: Worker.objects.count() == 2)
    redis.kill()

    def is_deaf(row: Any) -> bool:
        return row.beat_ms - row.polled_ms > 2_500

    wait_until(lambda: all(is_deaf(row) for row in Worker.objects.all()))
    redis.start()
    wait_until(lambda: not any(is_deaf(row) for row in Worker.objects.all()))


def test_a_start_rings_where_a_broker_is_configured(
    redis: PrivateRedis, processes: Any, celery_worker: CeleryWorker, tmp_path: Path
) -> None:
    """LEASE.12: and succeeds as quickly when the broker is away."""
    file = workflow_file(tmp_path, STEPS.replace("LOG", str(tmp_path / "log")).replace("SLEEP", "0"))
    script = f"""
from pathlib import Path
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.workflows import definition_of_file
definition = definition_of_file(Path({file!r}).read_bytes())
print(start(Start(definition=definition, actor=Actor(name="a", recorded="a"))).run_id)
"""
    told = processes.start_script(script, env={"CELERY_BROKER_URL": redis.url})
    assert told.wait(TIMEOUT_S) == 0
    with make_app(redis.url, "").connection_for_read() as connection, connection.channel() as channel:
        assert channel.queue_declare("waypost").message_count == 1
    redis.kill()
    away = processes.start_script(script, env={"CELERY_BROKER_URL": redis.url})
    assert away.wait(TIMEOUT_S) == 0
    assert statuses(list(Run.objects.values_list("pk", flat=True))) == {"queued"}
    assert Run.objects.count() == 2
