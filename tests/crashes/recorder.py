"""Runs a program and keeps the log of what it did, as a system that a step changes would. Imports nothing of the project.

``recorder.py LOG KEY DISPATCH DRIVER DIES -- PROGRAM ARGUMENT…``: a line in LOG when the program begins and one when it
has done its work, each on the disk before anything else happens. DIES is ``began`` or ``done``: at that line the process
DRIVER is killed and the program is kept alive, as one that goes on working; ``-`` kills nobody.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time


def note(log: str, **what: object) -> None:
    line = json.dumps(what, separators=(",", ":")) + "\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, line.encode())
    os.fsync(descriptor)
    os.close(descriptor)


def main(log: str, key: str, dispatch: str, driver: str, dies: str, _: str, *program: str) -> None:
    known = {"key": key, "dispatch": dispatch, "process": os.getpid()}
    note(log, what="began", **known)
    kill(driver, dies == "began")
    done = subprocess.run(program, capture_output=True, check=False)
    note(
        log,
        what="done",
        code=done.returncode,
        stdout=base64.b64encode(done.stdout).decode(),
        stderr=base64.b64encode(done.stderr).decode(),
        **known,
    )
    kill(driver, dies == "done")
    os.write(2, done.stderr)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    os._exit(done.returncode)


def kill(driver: str, now: bool) -> None:
    if now:
        os.kill(int(driver), signal.SIGKILL)
        time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
