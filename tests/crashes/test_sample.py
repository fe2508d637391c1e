"""A sample of the crash kit's attacks, and proof that the kit finds what is wrong. All of them: ``tests.crashes``."""

from __future__ import annotations

import subprocess

import pytest

from tests.processes import Processes
from tests.stores_of_tests import test_database_url

pytestmark = pytest.mark.django_db(transaction=True)

TTL_MS = "1500"


def attack(processes: Processes, *words: str, fault: str = "pass") -> tuple[int | None, str]:
    """Exit code and output of the kit on this test's database; ``fault`` is planted before."""
    source = f"""
import sys
from tests.crashes.__main__ import main

def plant():
    {fault}

sys.exit(main(sys.argv[1:], plant))
"""
    options = ("--database", test_database_url(), "--ttl", TTL_MS)
    kit: subprocess.Popen[str] = processes.start_python("-c", source, *options, *words)
    stdout, stderr = kit.communicate(timeout=150)
    assert stderr == ""
    return kit.returncode, stdout


def test_a_run_killed_anywhere_ends_as_if_nobody_had_disturbed_it(processes: Processes) -> None:
    """KILL: inside and after publish, acquire, admission, settlement and finish; before, during and after the effect"""
    code, said = attack(processes, "14", "--sample", "5")

    assert said.endswith("\n0 differences\n"), said
    assert code == 0
    for window in ("inside publish", "inside admission", "before the effect", "during the effect", "after the effect"):
        assert f"  {window}\n" in said


def test_a_run_killed_around_its_waits_ends_the_same(processes: Processes) -> None:
    """KILL: inside and after the transaction that parks the run for a retry"""
    code, said = attack(processes, "07", "--variants", "written", "--windows", "park", "--sample", "2", "--twice", "0")

    assert said.endswith("\n0 differences\n"), said
    assert code == 0


def test_a_cancelled_run_killed_anywhere_ends_as_cancelled(processes: Processes) -> None:
    """KILL: inside and after the acceptance of a cancel"""
    code, said = attack(processes, "14", "--variants", "written", "--windows", "send", "--sample", "4", "--twice", "0")

    assert said.endswith("\n0 differences\n"), said
    assert code == 0
    assert "  inside send\n" in said
    assert "  after send\n" in said


FAULTS = {
    "a write is repeated without asking": (
        "-- 14",
        "from workflows.engine import recovery; recovery.is_idempotent = lambda step, frozen: True",
        "is a write and was done 2 times",
    ),
    "a repetition gets another key": (
        "--variants read -- 14",
        "from workflows.engine import entering; entering.is_uncertain = lambda attempt: False",
        "was repeated under another dispatch id",
    ),
    "a driver that takes over forgets what was settled": (
        "--sample 3 -- 33",
        "from workflows.engine.memory import Memory; Memory._read = lambda *_, **__: None",
        "]: output is ",
    ),
    "effects outlive their worker": (
        "-- 14",
        "from workflows.engine.supervisor import Supervisor; Supervisor.watch = lambda self, group, mark='': None",
        "outlived their driver",
    ),
}


@pytest.mark.store("sqlite")
@pytest.mark.parametrize("name", FAULTS)
def test_the_kit_finds_a_planted_fault(processes: Processes, name: str) -> None:
    chosen, fault, complaint = FAULTS[name]
    words = ("--variants", "written", "--windows", "during the effect", "--sample", "1", "--twice", "0")

    code, said = attack(processes, *words, *chosen.split(), fault=fault)

    assert code == 1
    assert complaint in said, said
