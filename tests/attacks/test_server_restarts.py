"""A PostgreSQL server that ends sessions, stops, or crashes while runs are driven: nothing is lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.attacks.private_server import PrivateServer, private_server, why_impossible
from tests.engine.workers import wait_until
from tests.processes import TIMEOUT_S, Processes
from tests.support.driving import driver_with
from tests.support.kinds import kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import assert_sound, events_of
from workflows.engine.contract import EffectContext, Result
from workflows.engine.driver import Left
from workflows.models import Attempt, Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("postgresql")]

TWO = workflow("""
  - { id: one, kind: shell, run: make, access: write }
  - { id: two, kind: shell, run: make, access: write }
""")
EIGHT = workflow("""
  - id: each
    kind: map
    over: [1, 2, 3, 4]
    concurrency: 4
    do: [{ id: work, kind: shell, run: make, workspace: none, access: read }]
""")


@pytest.fixture
def elsewhere() -> Iterator[Any]:
    """A connection to the test's database that belongs to nobody in the product."""
    words = {name: value for name, value in connection.get_connection_params().items() if name in _PLACE}
    with psycopg.connect(**words, autocommit=True) as opened:
        yield opened


_PLACE = frozenset({"dbname", "host", "port", "user", "password"})
_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def test_a_driver_whose_sessions_end_during_an_effect_connects_again_and_settles(
    tmp_path: Path, elsewhere: Any
) -> None:
    """DB.2: every session of the database is ended during each effect."""
    ended: list[int] = []

    def cut(context: EffectContext) -> Result:
        ended.append(len(elsewhere.execute(f"SELECT pg_terminate_backend(pid, 5000) {_OTHERS}").fetchall()))
        return ok(context.step.id)

    run_id = publish_run(TWO)
    with driver_with(kinds_with(one=cut, two=cut), workspaces=tmp_path) as driver:
        assert driver.drive(run_id) is Left.ENDED
    assert len(ended) == 2
    assert all(count > 0 for count in ended)
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert list(Attempt.objects.values_list("visit", "number", "status", "epoch")) == [
        (1, 1, "succeeded", 1),
        (2, 1, "succeeded", 1),
    ]
    assert "lease_recovered" not in events_of(run_id)
    assert_sound()


def test_nothing_is_open_during_effects(tmp_path: Path, elsewhere: Any) -> None:
    """DB.3: four effects at once: no transaction, and no more sessions than the driver's and the heartbeat's."""
    states: list[list[str]] = []

    def look(context: EffectContext) -> Result:
        states.append([state for (state,) in elsewhere.execute(f"SELECT state {_OTHERS}").fetchall()])
        return ok(context.step.id)

    run_id = publish_run(EIGHT)
    with driver_with(kinds_with(work=look), workspaces=tmp_path) as driver:
        assert driver.drive(run_id) is Left.ENDED
    assert len(states) == 4
    assert all("idle in transaction" not in seen and len(seen) <= 2 for seen in states), states


def test_a_lock_that_is_not_free_in_time_is_waited_for_again_and_then_said(elsewhere: Any) -> None:
    """DB.2: ``lock_timeout`` ends a wait, and the verb runs again; a lock that stays is ``store.contended``."""
    from workflows.errors import Refusal
    from workflows.ledger.reopening import wake

    run_id = publish_run(TWO)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 20")
    elsewhere.execute("BEGIN")
    elsewhere.execute("SELECT 1 FROM workflows_run WHERE id = %s FOR UPDATE", [run_id])
    with pytest.raises(Refusal) as caught:
        wake(run_id=run_id)
    assert (caught.value.code, caught.value.exit_code) == ("store.contended", 75)
    assert caught.value.message == "The database is busy: a lock was not free in time."
    elsewhere.execute("ROLLBACK")
    assert wake(run_id=run_id) is True
    connection.close()
    assert_sound()


FILE = """
format: 1
name: patient
params: { log: { type: string } }
steps:
  - id: one
    kind: shell
    run: 'echo one >> "$LOG"; while ! test -e "$LOG.go"; do sleep 0.02; done'
    env: { LOG: "${ params.log }" }
  - { id: two, kind: shell, run: 'echo two >> "$LOG"', env: { LOG: "${ params.log }" } }
"""
LOOK = """
from workflows.ledger.inspection import inspect_run
from workflows.models import Attempt, Run
run = Run.objects.get()
print(run.status, run.lease_epoch, list(Attempt.objects.order_by("visit").values_list("visit", "number", "status")))
print(inspect_run(run.pk))
"""


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    with private_server() as started:
        yield started


@pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "possible")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_restarted_during_an_effect_loses_nothing(
    mode: str, server: PrivateServer, tmp_path: Path, processes: Processes
) -> None:
    """DB.2: also after a crash of the server; the worker goes on as if nothing had happened, each effect happens once."""
    env = {"DATABASE_URL": server.url, "WAYPOST_VAR": str(tmp_path / "var")}
    assert processes.manage("migrate", "-v", "0", env=env).returncode == 0
    (tmp_path / "file.yaml").write_text(FILE)
    log = tmp_path / "log"
    worker = processes.start("run_workflow", str(tmp_path / "file.yaml"), "-P", f"log={log}", "--quiet", env=env)
    wait_until(log.exists, TIMEOUT_S)
    server.stop(mode)
    (tmp_path / "log.go").touch()
    server.start()
    stdout, stderr = worker.communicate(timeout=TIMEOUT_S)
    assert worker.returncode == 0, (stdout, stderr)
    assert "Traceback" not in stderr
    assert log.read_text() == "one\ntwo\n"
    looking = processes.start_script(LOOK, env=env)
    assert looking.communicate(timeout=TIMEOUT_S) == (
        "succeeded 1 [(1, 1, 'succeeded'), (2, 1, 'succeeded')]\n[]\n",
        "",
    )
