"""``up``: the processes of an installation on one machine, started, replaced and ended together (LEASE.9)."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.processes import Processes
from tests.support.plans import publish_run, workflow
from workflows.errors import Refusal
from workflows.management.commands.up import roles_of
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_S = 60.0
SMALL = workflow('  - { id: work, kind: shell, access: read, run: "true" }')
SLOW = workflow("  - { id: work, kind: shell, access: read, run: 'echo begun; sleep 2' }")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Up:
    """``up`` in the background; its lines are read as they come."""

    def __init__(self, processes: Processes, *words: str) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[str] = processes.start(
            "up", "--bind", f"127.0.0.1:{self.port}", *words, env={"PYTHONUNBUFFERED": "1", "WEB_PROCESSES": "1"}
        )

    def line(self, pattern: str) -> re.Match[str]:
        """The next line that matches."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"no line like {pattern!r}; standard error:\n{self.process.stderr.read()}")  # type: ignore[union-attr]

    def status(self, path: str) -> int:
        """The status of the answer, once there is one."""
        until = time.monotonic() + WAIT_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)


@pytest.fixture
def up(processes: Processes) -> Iterator[Up]:
    started = Up(processes, "--workers", "2")
    yield started
    for number in pids(started.process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def pids(parent: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    done = subprocess.run(
        ["ps", "-o", "pid=,stat=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    return [int(number) for number, state in rows if not state.startswith("Z")]


def wait_for(run: int, *statuses: str) -> None:
    until = time.monotonic() + WAIT_S
    while Run.objects.values_list("status", flat=True).get(pk=run) not in statuses:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_one_command_serves_pages_drives_runs_and_ends_them_all(up: Up) -> None:
    """LEASE.9: told to stop, the workers let a step finish, and nothing is left behind."""
    up.line(rf"the web server listens on 127\.0\.0\.1:{up.port}; Ctrl-C ends everything")
    up.line(r"web is process")
    assert up.status("/login/") == 200
    run = publish_run(SMALL)
    wait_for(run, "succeeded")
    slow = publish_run(SLOW)
    wait_for(slow, "running")
    children = pids(up.process.pid)
    assert len(children) == 3

    up.process.send_signal(signal.SIGTERM)

    assert up.process.wait(WAIT_S) == 0
    assert [number for number in children if is_alive(number)] == []
    run_row = Run.objects.select_related("lease").get(pk=slow)
    assert run_row.lease.expires_ms == 0
    assert run_row.status in ("running", "succeeded")


def test_a_killed_worker_is_replaced(up: Up) -> None:
    worker = int(up.line(r"worker 1 is process (\d+)")[1])
    up.line(r"worker \S+ drives")
    os.kill(worker, signal.SIGKILL)
    up.line(r"worker 1 was ended by signal 9; another one takes its place")
    assert up.status("/login/") == 200
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(WAIT_S) == 0


def test_what_ends_by_itself_ends_everything(processes: Processes) -> None:
    """The port is taken: whoever started the command is told by its exit code."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = processes.manage("up", "--bind", f"127.0.0.1:{taken.getsockname()[1]}", env={"WEB_PROCESSES": "1"})
    assert done.returncode == 1
    assert "web has ended with exit code 1; everything ends." in done.stdout


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_with_a_broker_the_workers_are_those_of_celery() -> None:
    pytest.importorskip("celery")
    without = roles_of(workers=2, bind="", has_broker=False)
    assert [(role.name, role.process) for role in without] == [
        *(("web", "web"), ("worker 1", "command"), ("worker 2", "command")),
    ]
    with_broker = roles_of(workers=2, bind="127.0.0.1:9000", has_broker=True)
    assert [role.name for role in with_broker] == ["web", "worker 1", "worker 2"]
    assert list(with_broker[0].words[-2:]) == ["--bind", "127.0.0.1:9000"]
    assert "celery" in with_broker[1].words
    hosts = [role.words[role.words.index("--hostname") + 1] for role in with_broker[1:]]
    assert len(set(hosts)) == 2


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Refusal, match="gunicorn is not installed"):
        roles_of(workers=1, bind="", has_broker=False)
