"""Celery leaves the log as it is everywhere else (OBS.1)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PROJECT

pytest.importorskip("celery")

SHOW = """
import logging
from config.celery import app
app.log.setup(loglevel="ERROR")
logging.getLogger("team").info("kept")
logging.getLogger("celery.worker").warning("of celery")
"""


def test_a_celery_worker_logs_in_the_format_and_at_the_level_of_the_settings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=PROJECT,
        env={
            "WAYPOST_VAR": str(tmp_path),
            "CELERY_BROKER_URL": "memory://",
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "INFO",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(one["logger"], one["message"]) for one in records] == [("team", "kept"), ("celery.worker", "of celery")]
