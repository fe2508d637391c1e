"""Commands as processes: Ctrl-C, SIGTERM, pipes, a terminal, ends without mercy, stores that cannot be used."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from tests.commands.support import workflow_file
from tests.processes import PROJECT, TIMEOUT_S, Processes, environment
from workflows.models import Attempt, Lease, Run

pytestmark = pytest.mark.django_db(transaction=True)

#: Says when its step runs, then takes its time; ends early when the file `go` is there.
SLOW = """
params: { mark: { type: string } }
steps:
  - id: slow
    kind: shell
    run: 'echo $$ > "$MARK"; i=0; while test $i -lt 400 && ! test -e "$MARK.go"; do sleep 0.05; i=$((i+1)); done; echo done'
    env: { MARK: "${ params.mark }" }
    ACCESS
  - { id: after, kind: shell, run: echo after }
"""
QUICK = "steps: [{ id: a, kind: shell, run: echo hello }]\noutput: ${ steps.a.output }\n"


def slow_file(folder: Path, more: str = "") -> str:
    return workflow_file(folder, SLOW.replace("ACCESS", more))


def wait_for(process: subprocess.Popen[str], path: Path) -> None:
    """Until a step of the process has written a line into a file."""
    wait_until(lambda: process.poll() is not None or (path.exists() and path.read_text().endswith("\n")))
    assert process.poll() is None, process.communicate()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def start_slow(processes: Processes, folder: Path, *words: str, more: str = "") -> subprocess.Popen[str]:
    process = processes.start("run_workflow", slow_file(folder, more), "-P", f"mark={folder}/mark", *words)
    wait_for(process, folder / "mark")
    return process


def process_is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl_c", "sigterm"])
def test_the_first_signal_lets_the_step_finish_and_hands_the_run_back(
    processes: Processes, tmp_path: Path, number: signal.Signals
) -> None:
    process = start_slow(processes, tmp_path)
    process.send_signal(number)
    (tmp_path / "mark.go").touch()
    out, err = process.communicate(timeout=TIMEOUT_S)
    run = Run.objects.get()
    assert process.returncode == 6
    assert err == (
        f"Handing run {run.pk} back; `python manage.py run_workflow {run.pk}` goes on with it. "
        "What runs may finish within 10 s; a write that is ended then has to be reconciled. "
        "Once more ends what runs now, a third time ends this command.\n"
    )
    assert out.splitlines()[-2:] == [
        f"run {run.pk} is handed back: nobody drives it",
        f"  `python manage.py run_workflow {run.pk}` goes on with it.",
    ]
    assert [(row.visit, row.status) for row in Attempt.objects.all()] == [(1, "succeeded")]
    assert Lease.objects.get().expires_ms == 0
    on = processes.manage("run_workflow", str(run.pk), "--quiet")
    assert (on.returncode, on.stderr) == (0, "")
    assert Attempt.objects.count() == 2


def test_a_second_ctrl_c_ends_what_runs_and_a_write_waits_to_be_reconciled(
    processes: Processes, tmp_path: Path
) -> None:
    process = start_slow(processes, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Handing run ")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 5
    assert "was interrupted, and nobody knows whether it happened" in out
    assert Attempt.objects.get().status == "interrupted"
    assert Lease.objects.get().expires_ms == 0
    assert not process_is_alive(int((tmp_path / "mark").read_text()))


def test_a_second_ctrl_c_during_a_read_leaves_a_run_that_goes_on(processes: Processes, tmp_path: Path) -> None:
    process = start_slow(processes, tmp_path, more="access: read")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 6
    (tmp_path / "mark.go").touch()
    assert processes.manage("run_workflow", str(Run.objects.get().pk)).returncode == 0
    rows = Attempt.objects.filter(visit=1).order_by("number")
    assert [row.status for row in rows] == ["interrupted", "succeeded"]
    assert len({row.dispatch_id for row in rows}) == 1


def test_a_third_ctrl_c_ends_the_command_at_once_and_nothing_stays_behind(processes: Processes, tmp_path: Path) -> None:
    deaf = "steps:\n  - { id: deaf, kind: shell, run: \"trap '' TERM; echo $$ > $MARK; sleep 60; sleep 60\", env: { MARK: '${ params.mark }' } }\n"
    file = workflow_file(tmp_path, "params: { mark: { type: string } }\n" + deaf)
    process = processes.start("run_workflow", file, "-P", f"mark={tmp_path}/mark")
    wait_for(process, tmp_path / "mark")
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # two signals that are pending at once are one
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGINT
    inner = int((tmp_path / "mark").read_text())
    wait_until(lambda: not process_is_alive(inner))


def test_sigterm_leaves_a_run_that_waits_for_a_moment(processes: Processes, tmp_path: Path) -> None:
    process = processes.start("run_workflow", workflow_file(tmp_path, "steps:\n  - { id: nap, kind: wait, for: 1h }\n"))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("run ")
    assert "(until " in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 6
    assert Run.objects.get().status == "waiting"


def test_a_killed_command_leaves_no_process_and_its_run_goes_on(processes: Processes, tmp_path: Path) -> None:
    process = start_slow(processes, tmp_path, more="access: read")
    inner = int((tmp_path / "mark").read_text())
    processes.kill(process)
    wait_until(lambda: not process_is_alive(inner))
    run = Run.objects.get()
    held = processes.manage("run_workflow", str(run.pk))
    assert held.returncode == 75
    assert held.stderr.startswith(f"error: Run {run.pk} is driven by ")


def test_a_cancel_reaches_a_step_that_runs_in_another_process(processes: Processes, tmp_path: Path) -> None:
    process = start_slow(processes, tmp_path)
    run = Run.objects.get().pk
    cancelled = processes.manage("runs", "cancel", str(run))
    assert cancelled.stdout == f"run {run}: is being cancelled by its worker\n"
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 4
    assert Run.objects.get().status == "cancelled"
    assert not process_is_alive(int((tmp_path / "mark").read_text()))


def test_following_events_ends_with_the_run(processes: Processes, tmp_path: Path) -> None:
    process = start_slow(processes, tmp_path)
    follower = processes.start("runs", "events", str(Run.objects.get().pk), "--follow")
    assert follower.stdout is not None
    assert "run_started" in follower.stdout.readline()
    (tmp_path / "mark.go").touch()
    process.communicate(timeout=TIMEOUT_S)
    out, _ = follower.communicate(timeout=TIMEOUT_S)
    assert follower.returncode == 0
    assert out.splitlines()[-1].split()[2] == "run_succeeded"


def test_bad_arguments_exit_with_2(processes: Processes) -> None:
    for words in (["run_workflow"], ["runs", "dance"], ["run_workflow", "x", "--max-steps", "0"]):
        ended = processes.manage(*words)
        assert ended.returncode == 2
        assert ended.stderr.startswith("usage: manage.py ")


def test_output_that_nobody_reads_ends_quietly(processes: Processes, tmp_path: Path) -> None:
    process = processes.start("workflows", "schema")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(TIMEOUT_S) in (0, 1)
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.parametrize("lines", [0, 1], ids=["nobody", "head"])
def test_a_run_whose_reader_goes_away_is_driven_to_its_end(processes: Processes, tmp_path: Path, lines: int) -> None:
    steps = "".join(f"  - {{ id: s{number}, kind: shell, run: 'echo {number}; sleep 0.1' }}\n" for number in range(6))
    process = processes.start(
        "run_workflow", workflow_file(tmp_path, f"steps:\n{steps}output: ${{ steps.s5.output }}\n")
    )
    assert process.stdout is not None
    for _ in range(lines):
        process.stdout.readline()
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert Run.objects.get().status == "succeeded"
    assert [(row.visit, row.status) for row in Attempt.objects.order_by("visit")] == [
        (visit, "succeeded") for visit in range(1, 7)
    ]


def test_a_terminal_without_unicode_gets_escapes(processes: Processes, tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "steps: [{ id: a, kind: shell, run: 'echo Zoë' }]\noutput: ${ steps.a.output }\n")
    env = {"PYTHONIOENCODING": "ascii"}
    assert processes.manage("run_workflow", file, "--quiet", env=env).stdout == "Zo\\xeb\n"
    assert json.loads(processes.manage("run_workflow", file, "--json", env=env).stdout)["output"] == "Zoë"


# ---- a terminal ------------------------------------------------------------------------------------------------------


def on_terminal(words: list[str], **more: str) -> tuple[int, str]:
    """A command on a terminal of its own: exit code and everything it drew."""
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.execve(
            sys.executable,
            [sys.executable, str(PROJECT / "manage.py"), *words],
            environment(TERM="xterm-256color", COLUMNS="100", LINES="30", **more),
        )
    drawn = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        drawn += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]), drawn.decode()


def without_colours(text: str) -> list[str]:
    return [line.strip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", text).replace("\r", "\n").split("\n")]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_terminal_shows_what_runs_and_keeps_what_is_over(processes: Processes, tmp_path: Path) -> None:
    text = (
        "steps:\n  - { id: nap, kind: wait, for: 600ms }\n"
        "  - { id: tries, kind: shell, run: 'test $WAYPOST_ATTEMPT = 2', retry: { attempts: 2, wait: 10ms } }\n"
    )
    code, drawn = on_terminal(["run_workflow", workflow_file(tmp_path, text)])
    lines = without_colours(drawn)
    assert code == 0
    assert "\x1b[?25h" in drawn  # the cursor is shown again
    flat = " ".join(lines)
    assert "(until " in flat
    assert "attempt 2" in flat
    assert [word for word in lines if word in ("✓", "✗")] == ["✓", "✓"]
    assert any(line.startswith(f"run {Run.objects.get().pk} succeeded after ") for line in lines)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_terminal_that_cannot_draw_gets_plain_lines(processes: Processes, tmp_path: Path) -> None:
    code, drawn = on_terminal(["run_workflow", workflow_file(tmp_path, QUICK)], NO_COLOR="1")
    assert code == 0
    assert "hello" in drawn


# ---- stores ----------------------------------------------------------------------------------------------------------


@pytest.mark.store("sqlite")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_database_is_a_clear_error(processes: Processes, tmp_path: Path) -> None:
    var = tmp_path / "var"
    env = {"WAYPOST_VAR": str(var), "DATABASE_URL": ""}
    file = workflow_file(tmp_path, QUICK)
    assert processes.manage("run_workflow", file, env=env).returncode == 0
    (var / "waypost.sqlite3").chmod(stat.S_IRUSR)
    ended = processes.manage("run_workflow", file, env=env)
    assert ended.returncode == 75
    assert ended.stderr.startswith(
        f"error: The database cannot be used: the file is read-only ({var}/waypost.sqlite3).\n"
    )


@pytest.mark.store("sqlite")
def test_a_damaged_database_is_a_clear_error(processes: Processes, tmp_path: Path) -> None:
    var = tmp_path / "var"
    var.mkdir(mode=0o700)
    (var / "waypost.sqlite3").write_bytes(b"this is not a database, whatever its name says" * 100)
    ended = processes.manage(
        "run_workflow", workflow_file(tmp_path, QUICK), env={"WAYPOST_VAR": str(var), "DATABASE_URL": ""}
    )
    assert ended.returncode == 75
    assert ended.stderr.splitlines() == [
        f"error: The database cannot be used: the file is not an SQLite database ({var}/waypost.sqlite3).",
        "hint: Restore it from a backup, or move it away to start with an empty one.",
    ]


@pytest.mark.store("sqlite")
def test_a_directory_that_cannot_be_made_is_named(processes: Processes, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = processes.manage("runs", "list", env={"WAYPOST_VAR": str(tmp_path / "file" / "var"), "DATABASE_URL": ""})
    assert (ended.returncode, ended.stderr.splitlines()) == (
        75,
        [
            f"error: The database cannot be used: the file cannot be opened ({tmp_path}/file/var/waypost.sqlite3).",
            "hint: Check that its directory exists and that this user may write there.",
        ],
    )


@pytest.mark.store("postgresql")
def test_a_database_that_the_server_lacks_is_named(processes: Processes) -> None:
    address = environment()["DATABASE_URL"]
    name = connection.settings_dict["NAME"]
    ended = processes.manage("runs", "list", env={"DATABASE_URL": address.replace(f"/{name}", "/not_there")})
    assert (ended.returncode, ended.stderr.splitlines()) == (
        75,
        [
            'error: The database cannot be used: the server has no database "not_there".',
            "hint: Create it (`createdb not_there` on the server), or correct DATABASE_URL.",
        ],
    )


@pytest.mark.store("sqlite")
def test_two_commands_at_once_make_the_embedded_database_together(processes: Processes, tmp_path: Path) -> None:
    env = {"WAYPOST_VAR": str(tmp_path / "var"), "DATABASE_URL": ""}
    file = workflow_file(tmp_path, QUICK)
    both = [processes.start("run_workflow", file, "--quiet", env=env) for _ in range(2)]
    ended = [process.communicate(timeout=TIMEOUT_S) for process in both]
    assert ended == [("hello\n", ""), ("hello\n", "")]
    listed = processes.manage("runs", "list", env=env)
    assert len(listed.stdout.splitlines()) == 3


def test_a_parameter_without_its_option_is_told_how_to_be_given(processes: Processes, tmp_path: Path) -> None:
    ended = processes.manage("run_workflow", workflow_file(tmp_path, QUICK), "needed=2")
    assert (ended.returncode, ended.stderr.splitlines()) == (
        2,
        ['error: "needed=2" is one word too many.', "hint: A parameter is given with -P: `-P needed=2`."],
    )
    assert not Run.objects.exists()


def test_usage_shows_the_actions_and_no_options_of_django(processes: Processes) -> None:
    ended = processes.manage("runs")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        2,
        "manage.py runs: error: the following arguments are required: "
        "list|show|events|why|audit|cancel|abandon|resume|retry|pause|skip|steer|fork|keep|export|import|bulk|answer|"
        "signal|reconcile",
    )
    assert "--pythonpath" not in processes.manage("run_workflow", "--help").stdout
    assert processes.manage("run_workflow").stderr.splitlines()[-1] == (
        "manage.py run_workflow: error: the following arguments are required: NAME|FILE|RUN"
    )
