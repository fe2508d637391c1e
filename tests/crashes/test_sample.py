"""A sample of the crash kit's attacks, and proof that the kit finds what is wrong. All of them: ``tests.crashes``."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.processes import Processes
from tests.stores_of_tests import test_database_url

pytestmark = pytest.mark.django_db(transaction=True)

#: Every window of promise KILL that this version has.
WINDOWS = (
    "inside publish",
    "after publish",
    "inside acquire",
    "after acquire",
    "inside admission",
    "after admission before the effect",
    "during the effect",
    "after the effect before settlement",
    "inside settlement",
    "after settlement",
    "inside a question's commit",
    "after a question's commit",
    "inside an answer",
    "after an answer before it is used",
    "inside child publication",
    "after child publication",
    "inside a signal's acceptance",
    "after a signal's acceptance",
    "inside a cancel's acceptance",
    "after a cancel's acceptance",
    "inside fork",
    "after fork",
    "inside finish of the run",
    "after finish of the run",
)
#: The windows in which the access of a step decides how often its effect happens.
AROUND_EFFECTS = ("admission", "effect", "settlement")


def attack(processes: Processes, *words: str, fault: str = "pass") -> tuple[int | None, str]:
    """Exit code and output of the kit on this test's database; ``fault`` is planted before."""
    source = f"""
import sys
from tests.crashes.__main__ import main

def plant():
    {fault}

sys.exit(main(sys.argv[1:], plant))
"""
    kit: subprocess.Popen[str] = processes.start_python("-c", source, "--database", test_database_url(), *words)
    stdout, stderr = kit.communicate(timeout=150)
    assert stderr == ""
    return kit.returncode, stdout


def kills_in(said: str) -> dict[str, int]:
    """How often each window was tried."""
    return {window: int(count) for count, window in re.findall(r"^ *(\d+)  (.+)$", said, re.MULTILINE)}


def test_a_run_killed_in_any_window_ends_as_if_nobody_had_disturbed_it(processes: Processes) -> None:
    """KILL, INT.3, CHD.2: every window, for steps that write; each kill checks the end of all runs and the effects"""
    code, said = attack(processes, "sample", "--variants", "written", "--sample", "26", "--twice", "0")

    assert said.endswith("\n0 differences\n"), said
    assert code == 0
    kills = kills_in(said)
    assert [window for window in WINDOWS if not kills[window]] == []


@pytest.mark.parametrize("promise", ["read", "idempotent"])
def test_an_effect_that_may_be_repeated_is_repeated_once_under_its_key(processes: Processes, promise: str) -> None:
    """KILL, ADM.5: the windows around effects, for steps that only read and for idempotent ones"""
    words = ("--variants", promise, "--windows", *AROUND_EFFECTS, "--sample", "7", "--twice", "0")
    code, said = attack(processes, "sample", *words)

    assert said.endswith("\n0 differences\n"), said
    assert code == 0
    kills = kills_in(said)
    around = [window for window in WINDOWS if any(word in window for word in AROUND_EFFECTS)]
    assert [window for window in around if not kills[window]] == []


#: The words for the kit, the window, what is planted, and what the kit says of it.
FAULTS = {
    "a write is repeated without asking": (
        "-- 14",
        "after the effect",
        "from workflows.engine import recovery; recovery.is_idempotent = lambda step, frozen: True",
        "is a write and was done 2 times",
    ),
    "a repetition gets another key": (
        "--variants read -- 14",
        "during the effect",
        "from workflows.engine import entering; entering.is_uncertain = lambda attempt: False",
        "was repeated under another dispatch id",
    ),
    "a driver that takes over forgets what was settled": (
        "--sample 3 -- 33",
        "during the effect",
        "from workflows.engine.memory import Memory; Memory._read = lambda *_, **__: None",
        "]: the run was not brought to its end",
    ),
    "effects outlive their worker": (
        "-- 14",
        "during the effect",
        "from workflows.engine.supervisor import Supervisor; Supervisor.watch = lambda self, group, mark='': None",
        "outlived their driver",
    ),
}


@pytest.mark.store("sqlite")
@pytest.mark.parametrize("name", FAULTS)
def test_the_kit_finds_a_planted_fault(processes: Processes, name: str) -> None:
    chosen, window, fault, complaint = FAULTS[name]
    words = ("--variants", "written", "--windows", window, "--sample", "1", "--twice", "0")

    code, said = attack(processes, *words, *chosen.split(), fault=fault)

    assert code == 1
    assert complaint in said, said
