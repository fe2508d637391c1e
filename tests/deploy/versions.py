"""Processes of this version and of the next one on a database of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.crashes.databases import private_database
from tests.processes import PROJECT

THIS = "config.settings"
NEXT = "tests.deploy.newer.settings"
TIMEOUT_S = 120


class Installation:
    """One database, and the environment of those who work on it."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self.folder = folder

    def manage(self, *words: str, version: str = THIS, code: int = 0, stdin: str = "") -> str:
        """What ``manage.py words…`` of a version prints; it has to end with this exit code."""
        done = self.python(str(PROJECT / "manage.py"), *words, version=version, stdin=stdin)
        assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def script(self, source: str, *, version: str = THIS, given: Any = None) -> Any:
        """What a script of a version prints as JSON. It finds ``given`` as such; Django is set up."""
        text = f"import json, sys\nimport django\ndjango.setup()\ngiven = json.load(sys.stdin)\n{source}"
        done = self.python("-c", text, version=version, stdin=json.dumps(given))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def python(self, *words: str, version: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=self.folder,
            env=self._environment(version),
            check=False,
        )

    def start(self, *words: str, version: str = THIS) -> subprocess.Popen[str]:
        """``manage.py words…`` in the background."""
        return subprocess.Popen(
            [sys.executable, str(PROJECT / "manage.py"), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self._environment(version),
            start_new_session=True,
        )

    def _environment(self, version: str) -> dict[str, str]:
        return {**os.environ, **self.environment, "DJANGO_SETTINGS_MODULE": version, "PYTHONPATH": str(PROJECT)}


@contextmanager
def installation(store: str, folder: Path) -> Iterator[Installation]:
    """An empty database of this store, gone afterwards."""
    with private_database(store, None) as (_, environment):
        yield Installation(dict(environment), folder)
