"""``serve``: the pages and a worker in one command, and nothing of it stays behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import urllib.request

import pytest
from django.contrib.auth import get_user_model

from tests.commands.support import manage
from tests.commands.test_processes import wait_until
from tests.processes import TIMEOUT_S, Processes
from tests.support.plans import publish_run, workflow
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

ONE = workflow("  - { id: one, kind: assign, set: { done: true } }", before="vars: { done: false }")


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """The next line of a background process that has these words."""
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"ended without a line with {words!r}")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_pages_are_served_runs_are_driven_and_a_killed_worker_is_replaced(processes: Processes) -> None:
    get_user_model()._default_manager.create_superuser("ann")
    server = processes.start("serve", "0", env={"SECRET_KEY": "of-a-test"})
    url = re.findall(r"http://127\.0\.0\.1:\d+/", line_with(server, "Waypost is at"))[0]
    workers = [worker_of(server)]
    with urllib.request.urlopen(f"{url}login/", timeout=TIMEOUT_S) as page:
        assert page.status == 200
    first = publish_run(ONE)
    wait_until(lambda: Run.objects.get(pk=first).status == "succeeded")
    os.kill(workers[0], signal.SIGKILL)
    assert "another one takes over" in line_with(server, "signal 9")
    workers.append(worker_of(server))
    second = publish_run(ONE)
    wait_until(lambda: Run.objects.get(pk=second).status == "succeeded")
    server.send_signal(signal.SIGINT)
    assert server.wait(TIMEOUT_S) == 0
    assert [pid for pid in workers if is_alive(pid)] == []
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=TIMEOUT_S)


def worker_of(server: subprocess.Popen[str]) -> int:
    """The process of the worker, by the name that it prints (host:process:random)."""
    return int(line_with(server, "drives up to").split(":")[1])


def test_whoever_cannot_be_asked_is_told_how_the_first_user_is_made(processes: Processes) -> None:
    server = processes.start("serve", "0", env={"SECRET_KEY": "of-a-test"})
    assert "python manage.py createsuperuser" in line_with(server, "Nobody can log in yet")
    worker_of(server)
    server.send_signal(signal.SIGTERM)
    assert server.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("address", ["x", "localhost", "1.2.3.4:99999", "::1:80"])
def test_what_is_no_address_is_told(address: str) -> None:
    answer = manage("serve", address)
    assert (answer.code, answer.err) == (
        2,
        f'error: "{address}" is no address such as 8000 or 127.0.0.1:8000.\n',
    )


def test_a_port_that_is_taken_is_told_with_another_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = manage("serve", str(port))
    assert answer.code == 2
    assert answer.err.startswith(f"error: Nothing can be served at 127.0.0.1:{port}: ")
    assert answer.err.endswith(f"Another port is `serve {port + 1}`.\n")
