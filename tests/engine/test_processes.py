"""Processes: the gate, the program that is found, bounded memory, and what a step never waits for."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workers import wait_until
from workflows.engine import processes
from workflows.engine.processes import (
    LOG_HEAD,
    LOG_TAIL,
    STDOUT_LIMIT,
    CannotStart,
    Command,
    Finished,
    find_program,
    mark_of,
    run_process,
)

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "WAYPOST_IDEMPOTENCY_KEY": "test-of-processes", "WAYPOST_ATTEMPT": "1"}


class Keeper:
    """Notes what it is told, and which program the leader of the group was at that moment."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.programs: list[bytes] = []
        self.lapsed = False

    def watch(self, group: int, mark: str = "") -> None:
        self.told.append(("watch", group))
        command_line = Path(f"/proc/{group}/cmdline")
        wait_until(command_line.read_bytes)  # empty for an instant, until the gate is a program
        self.programs.append(command_line.read_bytes())

    def forget(self, group: int) -> bool:
        # The leader has ended, but its number is still taken.
        state = Path(f"/proc/{group}/stat").read_text().rpartition(")")[2].split()[0]
        self.told.append((f"forget {state}", group))
        return self.lapsed


def run(script: str, *, keeper: Any = None, timeout: float | None = None, stop: Any = None, **changes: Any) -> Finished:
    stop = stop or threading.Event()
    command = Command(
        **{
            "argv": ["/bin/sh", "-c", script],
            "environment": ENVIRONMENT,
            "folder": Path("/tmp"),
            "mark": mark_of(ENVIRONMENT, ["WAYPOST_IDEMPOTENCY_KEY", "WAYPOST_ATTEMPT"]),
            **changes,
        }
    )
    return run_process(
        command,
        groups=keeper or Keeper(),
        stop=stop,
        stop_reason=lambda: "cancelled" if stop.is_set() else None,
        deadline=None if timeout is None else time.monotonic() + timeout,
    )


def test_the_group_is_registered_before_the_program_begins_and_forgotten_before_its_number_is_free() -> None:
    keeper = Keeper()

    finished = run("echo $$", keeper=keeper)

    pid = int(finished.stdout)
    assert keeper.told == [("watch", pid), ("forget Z", pid)]
    assert b"waypost-gate" in keeper.programs[0]


def test_a_program_whose_registration_fails_never_begins(tmp_path: Path) -> None:
    class Broken(Keeper):
        def watch(self, group: int, mark: str = "") -> None:
            raise RuntimeError("no supervisor")

    with pytest.raises(RuntimeError, match="no supervisor"):
        run(f"touch {tmp_path}/begun", keeper=Broken())

    assert not (tmp_path / "begun").exists()


def test_no_descriptor_or_process_is_left_behind() -> None:
    run("true")
    before = len(os.listdir("/proc/self/fd"))

    for script in ("true", "exit 3", "kill -9 $$", "sleep 60 & true", "echo x; echo y >&2"):
        run(script, stdin=b"x" * 200_000)
    with pytest.raises(CannotStart):
        run("", argv=["missing"])

    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_memory_stays_bounded_whatever_is_written() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    finished = run("head -c 200000000 /dev/zero; head -c 200000000 /dev/zero >&2")

    assert (finished.exit_code, finished.stdout_size) == (0, 200_000_000)
    assert len(finished.stdout) == STDOUT_LIMIT
    assert [len(part) for part in finished.log_parts] == [LOG_HEAD, LOG_TAIL]
    line_breaks = finished.log_dropped + LOG_HEAD + LOG_TAIL - 400_000_000  # they keep both outputs apart
    assert 1 <= line_breaks < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


@pytest.mark.parametrize("size", [LOG_HEAD - 1, LOG_HEAD, LOG_HEAD + 1, LOG_HEAD + LOG_TAIL])
def test_a_log_that_fits_is_whole(size: int) -> None:
    finished = run(f"head -c {size} /dev/zero")

    assert finished.log_parts == (b"\0" * size,)
    assert finished.log_dropped == 0


def test_one_byte_more_drops_one_byte() -> None:
    finished = run(f"head -c {LOG_HEAD + LOG_TAIL + 1} /dev/zero")

    assert [len(part) for part in finished.log_parts] == [LOG_HEAD, LOG_TAIL]
    assert finished.log_dropped == 1


def test_term_comes_before_kill() -> None:
    finished = run("trap 'echo cleaned; exit 7' TERM; while :; do sleep 0.02; done", timeout=0.2)

    assert (finished.stopped, finished.exit_code, finished.stdout) == ("timeout", 7, b"cleaned\n")


def test_kill_comes_within_two_seconds() -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    begin = time.monotonic()

    finished = run("trap '' TERM INT HUP; while :; do sleep 0.02; done", stop=stop)

    assert (finished.stopped, finished.signal) == ("cancelled", signal.SIGKILL)
    assert time.monotonic() - begin < 2.2


def test_an_end_before_the_stop_counts() -> None:
    finished = run("exit 4", timeout=30)

    assert (finished.stopped, finished.exit_code) == (None, 4)


@pytest.mark.parametrize(("script", "stopped"), [("kill -KILL $$", "shutdown"), ("exit 0", None), ("exit 3", None)])
def test_a_kill_by_the_supervisor_is_no_failure_of_the_program(script: str, stopped: str | None) -> None:
    keeper = Keeper()
    keeper.lapsed = True

    assert run(script, keeper=keeper).stopped == stopped
    assert run(script).stopped is None


def test_a_stopped_process_is_killed_too() -> None:
    finished = run("kill -STOP $$", timeout=0.2)

    assert (finished.stopped, finished.signal) == ("timeout", signal.SIGKILL)


def test_without_process_descriptors_the_end_is_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_open_pidfd", lambda pid: None)

    assert run("exec >/dev/null 2>&1; sleep 0.05; exit 3").exit_code == 3
    assert run("sleep 60", timeout=0.2).stopped == "timeout"


def test_a_closed_output_is_no_end() -> None:
    finished = run("exec >&- 2>&-; sleep 0.2; exit 5")

    assert finished.exit_code == 5


def test_many_processes_at_once_do_not_hold_each_others_pipes() -> None:
    """A process that inherited the input of another would keep it from ending."""
    results: list[Finished] = []
    threads = [
        threading.Thread(target=lambda: results.append(run("cat | wc -c", stdin=b"x" * 100_000))) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert [finished.stdout.strip() for finished in results] == [b"100000"] * 12


def test_programs_are_found_by_path_folder_and_name(tmp_path: Path) -> None:
    for name, mode in (("bin/tool", 0o700), ("plain", 0o600), ("second/tool", 0o700)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
    (tmp_path / "bin" / "folder").mkdir()

    def find(name: str) -> str:
        path = f"{tmp_path}/missing:{tmp_path}/bin:{tmp_path}/second"
        return find_program(Command(argv=[name], environment={"PATH": path}, folder=tmp_path))

    assert find("tool") == f"{tmp_path}/bin/tool"
    assert find("second/tool") == f"{tmp_path}/second/tool"
    assert find("/bin/sh") == "/bin/sh"
    for name in ("folder", "", "nothing", "./nothing", "./bin"):
        with pytest.raises(CannotStart) as caught:
            find(name)
        assert caught.value.code == "command_not_found"
    with pytest.raises(CannotStart) as caught:
        find("./plain")
    assert caught.value.code == "start_failed"


def test_a_folder_that_is_gone_is_told() -> None:
    with pytest.raises(CannotStart) as caught:
        run("true", folder=Path("/nonexistent-folder"))

    assert caught.value.code == "start_failed"
    assert str(caught.value) == "The program cannot be started: No such file or directory."


def test_marked_processes_are_gone_after_a_timeout(tmp_path: Path) -> None:
    run(f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' & sleep 60", timeout=0.5)

    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())
