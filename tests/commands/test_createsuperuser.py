"""``createsuperuser`` on tables that are there or not (MIG.2)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PROJECT

WORDS = ("createsuperuser", "--username", "ann", "--email", "ann@example.org", "--noinput")


def make(directory: Path, **more: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "WAYPOST_VAR")}
    env = {**known, "WAYPOST_VAR": str(directory), "DJANGO_SUPERUSER_PASSWORD": "a long word", **more}
    env["DJANGO_SETTINGS_MODULE"] = "config.settings"
    command = [sys.executable, "manage.py", *WORDS]
    return subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.store("sqlite")
def test_the_first_person_is_made_on_an_embedded_database_that_is_not_there_yet(tmp_path: Path) -> None:
    """MIG.2"""
    made = make(tmp_path / "var")
    assert (made.returncode, made.stderr) == (0, "")
    assert "Superuser created successfully." in made.stdout
    assert (tmp_path / "var" / "waypost.sqlite3").exists()


@pytest.mark.store("sqlite")
def test_a_database_that_cannot_be_used_is_told_without_a_trace(tmp_path: Path) -> None:
    made = make(tmp_path / "var", DATABASE_URL=f"sqlite:///{tmp_path}/nowhere/deeper/waypost.sqlite3")
    if made.returncode:
        assert "Traceback" not in made.stderr
