"""Log records carry the ids of what is worked on, and no secrets (OBS 1–3)."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.logging import JsonLines, Lines, configured_secrets
from tests.support.driving import driver_with
from tests.support.kinds import Scripted, kinds_with
from tests.support.plans import publish_run, workflow
from workflows.engine.contract import EffectContext, Result
from workflows.log_context import marked, marks
from workflows.models import Run

logger = logging.getLogger("team.functions")

STEPS = workflow(
    """
  - { id: first, kind: shell, run: "true" }
  - { id: second, kind: shell, run: "true" }
"""
)


@pytest.fixture
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What is written while the test runs, as JSON; other formats by ``@pytest.mark.parametrize(indirect)``."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(getattr(request, "param", JsonLines)())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield stream
    root.setLevel(level)
    root.removeHandler(handler)


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.django_db(transaction=True)
def test_every_record_of_a_driven_run_names_run_visit_and_attempt(tmp_path: Path, written: io.StringIO) -> None:
    """OBS.1: also those of a function of the team, which knows nothing of it."""

    def effect(context: EffectContext) -> Result:
        logger.warning("half of it is done")
        return Result(outcome="ok")

    run = publish_run(STEPS)
    with driver_with(kinds_with(Scripted(first=effect, second=effect)), workspaces=tmp_path) as driver:
        driver.drive(run)

    assert Run.objects.get().status == "succeeded"
    of_functions = [one for one in records(written) if one["logger"] == "team.functions"]
    assert [(one["run"], one["visit"], one["attempt"]) for one in of_functions] == [(run, 1, 1), (run, 2, 1)]
    of_engine = [one for one in records(written) if one["logger"].startswith("workflows.engine")]
    assert {one["run"] for one in of_engine} == {run}
    assert [one["message"] for one in of_engine if "visit" in one] == [
        *("first begins.", "first gives ok."),
        *("second begins.", "second gives ok."),
    ]
    assert dict(marks()) == {}


@pytest.mark.django_db(transaction=True)
def test_two_runs_side_by_side_do_not_mix(tmp_path: Path, written: io.StringIO) -> None:
    """OBS.1: ids belong to the thread that works, not to the process."""
    meet = threading.Barrier(2, timeout=30)

    def effect(context: EffectContext) -> Result:
        meet.wait()
        logger.warning("run %s", context.run_id)
        return Result(outcome="ok")

    one_step = workflow('  - { id: first, kind: shell, run: "true" }')
    runs = [publish_run(one_step), publish_run(one_step)]
    with driver_with(kinds_with(Scripted(first=effect)), workspaces=tmp_path) as driver:
        threads = [threading.Thread(target=_drive, args=(driver, run)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    of_functions = [one for one in records(written) if one["logger"] == "team.functions"]
    assert sorted(one["run"] for one in of_functions) == sorted(runs)
    assert all(one["message"] == f"run {one['run']}" for one in of_functions)


def _drive(driver: Any, run: int) -> None:
    from workflows.ledger.transactions import database_thread

    with database_thread():
        driver.drive(run)


@pytest.mark.django_db(transaction=True)
def test_a_secret_that_a_step_has_read_is_masked(
    tmp_path: Path, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OBS.2: in the text, in values given beside it, and in the trace of an error."""
    monkeypatch.setenv("WAYPOST_SECRET_KEY", "hunter2-value")

    def effect(context: EffectContext) -> Result:
        value = context.secrets("key")
        try:
            raise ValueError(f"refused: {value}")
        except ValueError:
            logger.exception("with %s", value, extra={"header": f"Bearer {value}"})
        return Result(outcome="ok")

    with driver_with(kinds_with(Scripted(first=effect, second=effect)), workspaces=tmp_path) as driver:
        driver.drive(publish_run(STEPS))

    text = written.getvalue()
    assert "hunter2" not in text
    (first, _) = (one for one in records(written) if one["logger"] == "team.functions")
    assert (first["message"], first["extra"]) == ("with ***", {"header": "Bearer ***"})
    assert first["trace"].endswith("ValueError: refused: ***")


def test_what_the_process_was_started_with_is_masked_everywhere(tmp_path: Path) -> None:
    """OBS.2: keys, passwords of addresses as written and as meant, values from files; short words are not blotted."""
    (tmp_path / "key").write_text("from-a-file\n")
    found = configured_secrets(
        {
            "SECRET_KEY_FILE": str(tmp_path / "key"),
            "METRICS_TOKEN": "a-long-token",
            "DATABASE_URL": "postgres://waypost:p%40ssword@db/waypost",
            "CELERY_BROKER_URL": "redis://localhost:6379/0",
            "WAYPOST_SECRET_SHORT": "abc",
            "WAYPOST_SECRET_LONG": "abcdefgh",
        }
    )
    assert set(found) == {"from-a-file", "a-long-token", "p%40ssword", "p@ssword", "abcdefgh"}


def test_a_record_is_one_line_whatever_it_says() -> None:
    """OBS.3: line breaks, separators of lines, halves of pairs, control characters."""
    record = logging.LogRecord("x", logging.INFO, "f", 1, 'a\nb\u2028c\ud800\x00"d"', (), None)
    line = JsonLines().format(record)
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line)["message"] == 'a\nb\u2028c\ud800\x00"d"'


def test_a_line_for_people_names_the_ids() -> None:
    record = logging.LogRecord("team", logging.WARNING, "f", 1, "so %s", ("far",), None)
    with marked(run=7, visit=12):
        text = Lines().format(record)
    assert text.endswith(" WARNING team [run 7 visit 12]: so far")
    assert Lines().format(record).endswith(" WARNING team: so far")


def test_a_thread_that_gets_a_copy_of_the_context_keeps_the_ids() -> None:
    """OBS.1: what docs/observability.md tells authors of functions."""
    found: list[dict[str, Any]] = []
    with marked(run=7):
        copied = contextvars.copy_context()
    for target in (lambda: copied.run(lambda: found.append(dict(marks()))), lambda: found.append(dict(marks()))):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert found == [{"run": 7}, {}]
