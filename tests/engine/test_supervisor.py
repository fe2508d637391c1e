"""The supervisor: neither a killed nor a frozen worker leaves effects running (LEASE.7)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.workers import Worker, children_of, environment_of, wait_until
from workflows.engine import supervisor_process
from workflows.engine.supervisor import Supervisor
from workflows.engine.supervisor_process import Watch, kill_group, marked_processes

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

IGNORES_TERM = "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep 60; :' & while :; do sleep 60; done"


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    made = Supervisor()
    yield made
    made.close()


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sleep", "60"], env=environment, start_new_session=True)


def test_the_process_starts_with_the_first_group_only(supervisor: Supervisor) -> None:
    supervisor.extend(60)
    assert supervisor.pid is None

    with sleeper() as process:
        supervisor.watch(process.pid)
        assert supervisor.pid is not None
        process.kill()
    supervisor.forget(process.pid)


def test_it_lives_in_a_session_of_its_own_with_an_empty_environment_and_no_descriptors(supervisor: Supervisor) -> None:
    with open(os.devnull) as inherited, sleeper() as process:
        os.set_inheritable(inherited.fileno(), True)
        supervisor.watch(process.pid)
        pid = supervisor.pid
        assert pid is not None
        wait_until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"supervisor_process.py\0"))
        assert os.getsid(pid) == pid
        assert [entry for entry in environment_of(pid) if entry and not entry.startswith(b"LC_CTYPE=")] == []
        assert {int(name) for name in os.listdir(f"/proc/{pid}/fd")} <= {0, 1, 2, 3}
        assert Path(f"/proc/{pid}/cwd").resolve() == Path("/")
        process.kill()


def test_it_imports_nothing_of_the_project_and_starts_fast() -> None:
    program = Path(supervisor_process.__file__)

    begin = time.monotonic()
    subprocess.run([sys.executable, "-I", "-S", str(program)], stdin=subprocess.DEVNULL, check=True, env={})

    assert time.monotonic() - begin < 1
    code = f"import sys, runpy; runpy.run_path({str(program)!r}); print([m for m in sys.modules if 'workflows' in m])"
    listed = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True, text=True)
    assert listed.stdout == "[]\n"


def test_closing_kills_what_is_watched_and_leaves_what_was_forgotten(supervisor: Supervisor) -> None:
    with sleeper() as watched, sleeper() as forgotten:
        supervisor.watch(watched.pid)
        supervisor.watch(forgotten.pid)
        supervisor.forget(forgotten.pid)

        supervisor.close()

        assert watched.wait(timeout=5) == -signal.SIGKILL
        assert forgotten.poll() is None
        forgotten.kill()


def test_a_mark_finds_what_left_the_group(supervisor: Supervisor) -> None:
    with sleeper(WAYPOST_A="x", WAYPOST_B="1") as marked, sleeper(WAYPOST_A="x", WAYPOST_B="2") as other:
        wait_until(lambda: marked_processes(["WAYPOST_A=x\x1fWAYPOST_B=1"]) == [marked.pid])
        with sleeper() as watched:
            supervisor.watch(watched.pid, "WAYPOST_A=x\x1fWAYPOST_B=1")

            supervisor.close()

            assert marked.wait(timeout=5) == -signal.SIGKILL
            assert other.poll() is None
        other.kill()


def test_a_deadline_that_is_extended_kills_nothing_and_one_that_passes_kills_all(supervisor: Supervisor) -> None:
    with sleeper() as process:
        supervisor.extend(0.3)
        supervisor.watch(process.pid)
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            supervisor.extend(0.3)
            time.sleep(0.05)
        assert process.poll() is None

        assert process.wait(timeout=5) == -signal.SIGKILL
        assert time.monotonic() - end < 2

    with sleeper() as process:
        supervisor.watch(process.pid)  # the worker thaws and goes on without a lease

        assert process.wait(timeout=5) == -signal.SIGKILL


def test_a_worker_learns_that_its_groups_outlived_a_deadline(supervisor: Supervisor) -> None:
    supervisor.extend(60)
    supervisor.watch(2**22 + 1)
    supervisor.watch(2**22 + 2)
    assert supervisor.forget(2**22 + 1) is False

    supervisor.extend(0)
    supervisor.extend(60)

    assert supervisor.forget(2**22 + 2) is True
    supervisor.watch(2**22 + 2)
    assert supervisor.forget(2**22 + 2) is False


def test_a_supervisor_process_that_died_is_replaced_and_told_of_everything(supervisor: Supervisor) -> None:
    with sleeper() as first, sleeper() as second:
        supervisor.watch(first.pid)
        old = supervisor.pid
        assert old is not None
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: Path(f"/proc/{old}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        supervisor.watch(second.pid)
        assert supervisor.pid != old

        supervisor.close()

        assert first.wait(timeout=5) == -signal.SIGKILL
        assert second.wait(timeout=5) == -signal.SIGKILL


def test_signals_of_a_terminal_do_not_end_it(supervisor: Supervisor) -> None:
    with sleeper() as process:
        supervisor.watch(process.pid)
        pid = supervisor.pid
        assert pid is not None
        wait_until(lambda: _ignores(pid))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(pid, number)

        supervisor.close()

        assert process.wait(timeout=5) == -signal.SIGKILL


def test_the_worker_can_kill_everything_itself(supervisor: Supervisor) -> None:
    with sleeper() as first, sleeper(WAYPOST_A="y") as second:
        supervisor.watch(first.pid)
        supervisor.watch(2**22 + 1, "WAYPOST_A=y")

        assert supervisor.kill_all() == 2
        assert supervisor.forget(first.pid) is True

        assert first.wait(timeout=5) == -signal.SIGKILL
        assert second.wait(timeout=5) == -signal.SIGKILL


def test_a_fork_of_the_worker_neither_ends_nor_shares_its_supervisor(supervisor: Supervisor) -> None:
    with sleeper() as process:
        supervisor.watch(process.pid)
        child = os.fork()
        if child == 0:
            supervisor.extend(0)
            supervisor.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert process.poll() is None

        supervisor.close()

        assert process.wait(timeout=5) == -signal.SIGKILL


def test_lines_may_arrive_in_pieces() -> None:
    watch = Watch()
    for piece in (b"watch 12 A=b c\x1fD=e\nwat", b"ch 13 \nforget 1", b"2\ndeadline 4.5\n", b"forget 99\n"):
        watch.feed(piece)

    assert watch.groups == {13: ""}
    assert watch.deadline == 4.5


@pytest.mark.parametrize("group", [0, 1, -1])
def test_no_number_reaches_everybody(group: int) -> None:
    assert kill_group(group) is False


@pytest.mark.parametrize("script", ["sleep 60", IGNORES_TERM, "exec >/dev/null 2>&1; setsid sleep 60 & sleep 60"])
def test_a_killed_worker_leaves_no_process_behind(script: str) -> None:
    """LEASE.7"""
    worker = Worker(script, threads=2)
    try:
        wait_until(lambda: len(worker.effects()) >= (2 if script == "sleep 60" else 4))
        os.killpg(worker.process.pid, signal.SIGKILL)  # with its whole process group

        wait_until(lambda: not worker.effects(), 5)
    finally:
        worker.close()


def test_a_worker_killed_at_any_moment_of_a_start_leaves_no_process_behind() -> None:
    """LEASE.7: many processes start, so the kill also falls between the start of one and its registration."""
    workers: list[Worker] = []
    try:
        for seed in range(8):
            workers.append(Worker("setsid sleep 60 >/dev/null 2>&1 & sleep 60", threads=20))
            process = workers[-1].process
            wait_until(lambda process=process: children_of(process.pid))  # type: ignore[misc]
            time.sleep(random.Random(seed).uniform(0.0, 0.04))
            process.kill()
            process.wait()

        _wait_for_quiet(*workers)
    finally:
        for worker in workers:
            worker.close()


def test_the_processes_of_a_frozen_worker_are_killed_when_its_deadline_passes() -> None:
    """LEASE.7"""
    worker = Worker(IGNORES_TERM, deadline_seconds=1.0)
    try:
        wait_until(lambda: len(worker.effects()) >= 3)
        os.kill(worker.process.pid, signal.SIGSTOP)

        wait_until(lambda: not [pid for pid in worker.effects() if _state(pid) != "Z"], 5)
    finally:
        worker.close()


def _wait_for_quiet(*workers: Worker) -> None:
    """No effect is left once the supervisor has looked for the last time, one second after the end of its worker."""
    time.sleep(1.3)
    assert [worker.effects() for worker in workers] == [[] for _ in workers]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def _ignores(pid: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            ignored = int(line.split()[1], 16)
            return all(ignored >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    return False
