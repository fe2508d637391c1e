"""Runs a program and keeps the log of what it did, as a system that a step changes would. Imports nothing of the project.

``recorder.py LOG KEY DISPATCH DRIVER DIES -- PROGRAM ARGUMENT…``: a line in LOG when the program begins and one when it
has done its work, each on the disk before anything else happens. DIES is ``began`` or ``done``: at that line the process
DRIVER is killed and the program is kept alive, as one that goes on working; ``-`` kills nobody.

It runs once per effect, so it imports only what starts at once.
"""

import os
import sys

_KILL = 9


def append(log: str, line: str) -> None:
    """Add a line to a log, in one piece and to the disk."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


def main(log: str, key: str, dispatch: str, driver: str, dies: str, _: str, *program: str) -> None:
    known = f'"key":"{key}","dispatch":"{dispatch}","process":{os.getpid()}'
    append(log, f'{{"what":"began",{known}}}')
    kill(driver, dies == "began")
    code, stdout, stderr = run(program)
    append(log, f'{{"what":"done",{known},"code":{code},"stdout":"{stdout.hex()}","stderr":"{stderr.hex()}"}}')
    kill(driver, dies == "done")
    write(2, stderr)
    write(1, stdout)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def run(program: tuple[str, ...]) -> tuple[int, bytes, bytes]:
    """Exit code (negative: the signal) and both outputs of a program that has this process's input."""
    outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
    places = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(outputs, 1)]
    child = os.posix_spawn(program[0], program, os.environ, file_actions=places)
    status = os.waitpid(child, 0)[1]
    stdout, stderr = (os.pread(descriptor, os.fstat(descriptor).st_size, 0) for descriptor in outputs)
    return os.waitstatus_to_exitcode(status), stdout, stderr


def write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def kill(driver: str, now: bool) -> None:
    if now:
        os.kill(int(driver), _KILL)
        os.execv("/bin/sleep", ["sleep", "60"])


if __name__ == "__main__":
    main(*sys.argv[1:])
