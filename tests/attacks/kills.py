"""``python -m tests.attacks.kills [--sample] [WORLD…]``: kill a process at every write of the verbs and at their commit.

Each verb is called in a child process, which is killed (SIGKILL) before its first write, before its second one, and so
on to the commit. After each death every row must be as before. Then the verb is called once more and has to succeed,
and the rows of every run have to tell one story. Prints, as JSON, the number of deaths and the complaints per world.
``--sample`` kills at the first write, at one in the middle, at the last one, and at the commit. Needs a migrated
database in ``DATABASE_URL``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import signal
import traceback
from collections.abc import Callable
from typing import Any

import django

Call = Callable[[], Any]
World = Callable[[], Call]
_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)


def kill_everywhere(world: World, *, sample: bool) -> dict[str, Any]:
    """The number of deaths, and what was not as it has to be."""
    from django.db import connections

    from tests.attacks.snapshots import snapshot
    from workflows.ledger.inspection import inspect_run
    from workflows.models import Run

    last = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    writes = count_writes(world())
    moments = sorted({1, writes // 2 + 1, writes, writes + 1}) if sample else range(1, writes + 2)
    call = world()
    before, complaints, deaths, ended = snapshot(), [], 0, ""
    for moment in moments:
        connections.close_all()
        gc.freeze()
        ended = live_until(call, moment)
        if ended not in ("write", "commit"):
            break
        deaths += 1
        if snapshot() != before:
            complaints.append(f"something is left of a death at {ended} {moment}")
    if ended.startswith("error"):
        return {"deaths": deaths, "complaints": [*complaints, ended]}
    if ended != "done":
        call()
    if snapshot() == before:
        complaints.append("the verb did nothing when it was repeated")
    for run_id in Run.objects.filter(pk__gt=last).values_list("pk", flat=True):
        complaints += [f"run {run_id}: {problem}" for problem in inspect_run(run_id)]
    return {"deaths": deaths, "complaints": complaints, "at_commit": ended == "commit"}


def count_writes(call: Call) -> int:
    """How many writes a call makes. What is done for the first time in a process is done then, not in each child."""
    from tests.support.tap import counted

    with counted() as seen:
        call()
    return sum(1 for sql in seen if _WRITES.match(sql))


def live_until(call: Call, write: int) -> str:
    """Call the verb in a process that dies at its n-th write, or at the commit when it has fewer: ``write``,
    ``commit``, ``done`` (it had neither), or ``error`` with the trace."""
    reading, telling = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _live(call, write, telling)
    os.close(telling)
    with os.fdopen(reading) as told:
        text = told.read()
    _, status = os.waitpid(process, 0)
    was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if was_killed != (text in ("write", "commit")):
        return f"error: it ended with {status}, and said: {text}"
    return text


def _live(call: Call, write: int, telling: int) -> None:
    from tests.support.tap import tap

    seen = 0

    def die(where: str) -> None:
        os.write(telling, where.encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def count(sql: str) -> None:
        nonlocal seen
        if _WRITES.match(sql):
            seen += 1
            if seen == write:
                die("write")

    try:
        with tap(count, on_commit=lambda: die("commit")):
            call()
        os.write(telling, b"done")
    except BaseException:
        os.write(telling, f"error: {traceback.format_exc()}".encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    django.setup()
    from tests.attacks.everything import ATTACKS

    parser = argparse.ArgumentParser(prog="python -m tests.attacks.kills", description=__doc__)
    parser.add_argument("worlds", nargs="*", choices=[*ATTACKS, []], metavar="WORLD", help="default: all")
    parser.add_argument("--sample", action="store_true", help="kill at a few writes of each verb")
    wanted = parser.parse_args()
    worlds = wanted.worlds or list(ATTACKS)
    print(json.dumps({name: kill_everywhere(ATTACKS[name], sample=wanted.sample) for name in worlds}))
