"""Runs one program for a step: own session, bounded memory, never hanging, nothing left behind.

The program is started behind a gate: a shell that waits for one line on standard input before it becomes the program.
Between start and that line the supervisor is told of the process group, so there is no moment at which a worker could
be killed and leave a program running that nobody knows of.

Both outputs are drained as they come. What exceeds the limits is counted and dropped. When the main process ends, what
is left of its group is killed and reading ends within a bounded time, whoever still holds the pipes.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workflows.engine.contract import GroupKeeper
from workflows.engine.supervisor_process import SEPARATOR, kill_group, kill_marked

KIB = 1024
#: What is kept of standard output; one byte more shows that something was dropped.
STDOUT_LIMIT = 1024 * KIB
#: What is kept of the log: its first and its last part.
LOG_HEAD = 512 * KIB
LOG_TAIL = 448 * KIB
#: Between TERM and KILL.
GRACE_SECONDS = 1.0
#: After KILL, or after the end of the main process, reading goes on for at most this long.
DRAIN_SECONDS = 1.0
#: What the main process left in its group may finish writing for this long before it is killed.
LEFTOVER_SECONDS = 0.2
#: How often the stop event is looked at.
TICK_SECONDS = 0.1
READ_SIZE = 64 * KIB

_GATE = ("/bin/sh", "-c", 'read -r go && exec "$@"', "waypost-gate")
_OPEN = b"go\n"


class CannotStart(Exception):
    """The program could not be started. ``code`` is a failure code: the step has had no effect."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with all it needs. ``mark``: entries of ``environment`` that no other attempt has, as one text."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    stdin: bytes = b""
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended. ``stopped``: why it was ended from outside (``timeout``, ``cancelled``, ``shutdown``).

    ``exit_code`` is 128 + n after signal n, as a shell reports it; None when the program could not be ended at all.
    ``stdout`` holds the first ``STDOUT_LIMIT`` bytes of ``stdout_size``. ``log_parts`` are the beginning and, when
    something was dropped in between, the end of both outputs as they came.
    """

    exit_code: int | None
    signal: int | None
    stopped: str | None
    stdout: bytes
    stdout_size: int
    stderr_end: bytes
    log_parts: tuple[bytes, ...]
    log_dropped: int


def mark_of(environment: Mapping[str, str], names: Sequence[str]) -> str:
    """The mark by which the supervisor finds every process that inherited ``environment``."""
    return SEPARATOR.join(f"{name}={environment[name]}" for name in names)


def run_process(
    command: Command,
    *,
    groups: GroupKeeper,
    stop: threading.Event,
    stop_reason: Callable[[], str | None],
    deadline: float | None,
) -> Finished:
    """Runs a program to its end. Returns within about two seconds of ``stop`` or ``deadline`` (``time.monotonic()``).

    Raises :class:`CannotStart` with ``command_not_found``, ``start_failed`` or ``value_too_large``.
    """
    program = find_program(command)
    process = _spawn([*_GATE, program, *command.argv[1:]], command)
    running = _Running(process, command)
    try:
        groups.watch(process.pid, command.mark)
        running.open_gate()
        finished = running.follow(stop=stop, stop_reason=stop_reason, deadline=deadline)
    finally:
        # In this order: while the leader has not been waited for, the number of the group cannot be reused.
        kill_group(process.pid)
        lapsed = groups.forget(process.pid)
        running.close()
    if lapsed and finished.stopped is None and finished.signal == signal.SIGKILL:
        # Killed because this worker was frozen or could not renew: nobody knows how it would have ended.
        return replace(finished, stopped="shutdown")
    return finished


def find_program(command: Command) -> str:
    """The path of the program that ``argv[0]`` names, found as a shell would find it.

    Raises :class:`CannotStart`: ``command_not_found``, or ``start_failed`` when it may not be executed.
    """
    name = command.argv[0]
    if "/" in name:
        candidates = [command.folder / name]
    else:
        path = command.environment.get("PATH", os.defpath)
        candidates = [command.folder / folder / name for folder in path.split(os.pathsep)] if name else []
    refused = None
    for candidate in candidates:
        if not candidate.is_file():
            continue
        if os.access(candidate, os.X_OK):
            return str(candidate)
        refused = candidate
    if refused is not None:
        raise CannotStart("start_failed", f'The program "{name}" cannot be started: it is not executable.')
    where = "" if "/" in name else " in PATH"
    raise CannotStart("command_not_found", f'The program "{name}" was not found{where}.')


def _spawn(argv: Sequence[str], command: Command) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=command.folder,
            env=command.environment,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise CannotStart(
                "value_too_large",
                "Arguments and environment together are larger than the system allows. Pass large values with `stdin`.",
            ) from error
        raise CannotStart("start_failed", f"The program cannot be started: {error.strerror or error}.") from error
    except ValueError as error:
        raise CannotStart("start_failed", f"The program cannot be started: {error}.") from error


class _Log:
    """The beginning and the end of what was written, in the order in which it was read."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._last_source = -1
        self._line_open = False

    def add(self, source: int, data: bytes) -> None:
        if self._line_open and source != self._last_source:
            data = b"\n" + data
        self._last_source = source
        self._line_open = not data.endswith(b"\n")
        self.size += len(data)
        room = LOG_HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= LOG_TAIL:
                self._tail_size -= len(self._tail.popleft())

    def parts(self) -> tuple[tuple[bytes, ...], int]:
        """The parts kept and how many bytes are missing between them."""
        tail = b"".join(self._tail)
        if len(self._head) + len(tail) == self.size and len(tail) <= LOG_TAIL:
            return (bytes(self._head) + tail,), 0
        tail = tail[-LOG_TAIL:]
        return (bytes(self._head), tail), self.size - len(self._head) - len(tail)


class _Running:
    """One started program and its three pipes."""

    def __init__(self, process: subprocess.Popen[bytes], command: Command) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._group = process.pid
        self._mark = command.mark
        self._input = memoryview(command.stdin)
        self._in = process.stdin.fileno()
        self._out, self._err = process.stdout.fileno(), process.stderr.fileno()
        self._poll = select.poll()
        self._open = {self._out, self._err}
        self._stdout = bytearray()
        self._stdout_size = 0
        self._stderr_end = b""
        self._log = _Log()
        self._pidfd = _open_pidfd(process.pid)
        self._status: os.waitid_result | None = None
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        for fd in self._open:
            self._poll.register(fd, select.POLLIN)
        if self._pidfd is not None:
            self._poll.register(self._pidfd, select.POLLIN)

    def open_gate(self) -> None:
        """Lets the program begin. A program that is gone already (killed at the gate) is noticed later."""
        try:
            os.write(self._in, _OPEN)
        except BrokenPipeError:
            pass
        if self._input:
            self._poll.register(self._in, select.POLLOUT)
        else:
            self._close_input()

    def follow(
        self, *, stop: threading.Event, stop_reason: Callable[[], str | None], deadline: float | None
    ) -> Finished:
        stopped: str | None = None
        kill_at = give_up_at = None
        while not self._has_ended():
            now = time.monotonic()
            if stopped is None and (stop.is_set() or (deadline is not None and now >= deadline)):
                stopped = (stop_reason() if stop.is_set() else None) or "timeout"
                kill_group(self._group, signal.SIGTERM)
                kill_at = now + GRACE_SECONDS
            if kill_at is not None and now >= kill_at:
                self._kill()
                kill_at, give_up_at = None, now + DRAIN_SECONDS
            if give_up_at is not None and now >= give_up_at:
                break
            moments = [moment for moment in (None if stopped else deadline, kill_at, give_up_at) if moment is not None]
            self._pump(min([TICK_SECONDS, *(moment - now for moment in moments)]))
        self._drain(killed=stopped is not None)
        return self._finished(stopped)

    def close(self) -> None:
        """Closes the pipes and waits for the leader, if it has ended."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except OSError:
                    continue
        if self._pidfd is not None:
            os.close(self._pidfd)
        try:
            self._process.wait(timeout=DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            # Not even KILL ends it (a hanging disk). `subprocess` waits for it when the next process is started.
            return

    def _has_ended(self) -> bool:
        """Whether the leader has ended. It is not waited for here, which keeps the number of its group taken."""
        if self._status is None:
            self._status = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return self._status is not None

    def _kill(self) -> None:
        kill_group(self._group)
        if self._mark:
            kill_marked([self._mark])

    def _drain(self, *, killed: bool) -> None:
        """Reads what is left. Whoever else holds the pipes is given a moment, then killed, then ignored."""
        self._close_input()
        if killed:
            self._kill()
        begin = time.monotonic()
        kill_at, end = begin + LEFTOVER_SECONDS, begin + DRAIN_SECONDS
        if self._pidfd is not None:
            # It stays readable from now on and would turn the waiting below into a busy loop.
            self._poll.unregister(self._pidfd)
        while self._open and (now := time.monotonic()) < end:
            if not killed and now >= kill_at:
                self._kill()
                killed = True
            self._pump(max(0.001, min(end, end if killed else kill_at) - now))

    def _pump(self, seconds: float) -> None:
        """Moves data for at most this long, until something happened."""
        for fd, _ in self._poll.poll(max(0.0, seconds) * 1000):
            if fd == self._in:
                self._write()
            elif fd in self._open:
                self._read(fd)

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, READ_SIZE)
        except BlockingIOError:
            return
        if not data:
            self._poll.unregister(fd)
            self._open.discard(fd)
            return
        self._log.add(fd, data)
        if fd == self._out:
            self._stdout_size += len(data)
            room = STDOUT_LIMIT - len(self._stdout)
            if room > 0:
                self._stdout += data[:room]
        else:
            self._stderr_end = (self._stderr_end + data)[-4 * KIB :]

    def _write(self) -> None:
        try:
            self._input = self._input[os.write(self._in, self._input[:READ_SIZE]) :]
        except BlockingIOError:
            return
        except OSError:
            # The program does not read its input (any more). That is its right.
            self._input = self._input[:0]
        if not self._input:
            self._poll.unregister(self._in)
            self._close_input()

    def _close_input(self) -> None:
        stream = self._process.stdin
        if stream is not None and not stream.closed:
            if self._input:
                self._poll.unregister(self._in)
                self._input = self._input[:0]
            try:
                stream.close()
            except OSError:
                return

    def _finished(self, stopped: str | None) -> Finished:
        exit_code = number = None
        if self._status is not None:
            if self._status.si_code == os.CLD_EXITED:
                exit_code = self._status.si_status
            else:
                number = self._status.si_status
                exit_code = 128 + number
        parts, dropped = self._log.parts()
        return Finished(
            exit_code=exit_code,
            signal=number,
            stopped=stopped,
            stdout=bytes(self._stdout),
            stdout_size=self._stdout_size,
            stderr_end=self._stderr_end,
            log_parts=parts,
            log_dropped=dropped,
        )


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none (then it is polled)."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return int(opener(pid))
    except OSError:
        return None
