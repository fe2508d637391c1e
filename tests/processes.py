"""Other processes of a test: commands of this project against the database of the test, and ends without mercy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.stores_of_tests import test_database_url
from workflows.ledger.transactions import database_thread

PROJECT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 60
Answer = TypeVar("Answer")


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that works on the test's database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": test_database_url(),
        "PYTHONPATH": str(PROJECT),
        **more,
    }


class Processes:
    """Starts processes and leaves none behind."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def manage(
        self, *words: str, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path = PROJECT
    ) -> subprocess.CompletedProcess[str]:
        """``manage.py words…`` to its end."""
        return subprocess.run(
            [sys.executable, str(PROJECT / "manage.py"), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment(**(env or {})),
            cwd=cwd,
            check=False,
        )

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """``manage.py words…`` in the background, with pipes."""
        return self.start_python(str(PROJECT / "manage.py"), *words, env=env)

    def start_python(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """``python words…`` in the background, with pipes, in a session of its own."""
        process = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**(env or {})),
            cwd=PROJECT,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def start_script(self, source: str, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """A Python script that has Django set up, in the background, with pipes."""
        return self.start_python("-c", f"import django\ndjango.setup()\n{source}", *words, env=env)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """SIGKILL, and wait until it is gone."""
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                self.kill(process)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None and not pipe.closed:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        pass


def run_in_threads(*bodies: Callable[[], Answer]) -> list[Answer | Exception]:
    """Run ``bodies`` at the same instant, each in a thread; their answers or exceptions in order."""
    start = threading.Barrier(len(bodies))

    def run(body: Callable[[], Answer]) -> Answer | Exception:
        with database_thread():
            start.wait(TIMEOUT_S)
            try:
                return body()
            except Exception as error:
                return error

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(run, bodies, timeout=TIMEOUT_S))


def lines_of(process: subprocess.Popen[str], count: int) -> Sequence[str]:
    """The next ``count`` lines that a background process prints."""
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


__all__ = ["PROJECT", "Processes", "environment", "lines_of", "run_in_threads"]
