"""A sample of the crash kit's attacks, and proof that the kit finds what is wrong. All of them: ``tests.crashes``."""

from __future__ import annotations

import subprocess

import pytest

from tests.processes import Processes
from tests.stores_of_tests import test_database_url

pytestmark = pytest.mark.django_db(transaction=True)

TTL_MS = "1500"


def attack(processes: Processes, *words: str, fault: str = "") -> tuple[int | None, str]:
    """Exit code and output of the kit on this test's database; ``fault`` is planted before."""
    source = f"import sys\n{fault}\nfrom tests.crashes.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    options = ("--database", test_database_url(), "--ttl", TTL_MS)
    kit: subprocess.Popen[str] = processes.start_script(source, *words, *options)
    stdout, stderr = kit.communicate(timeout=300)
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


FAULTS = {
    "a write is repeated without asking": (
        "import django; django.setup()\n"
        "from workflows.engine import recovery\n"
        "recovery.is_idempotent = lambda step, frozen: True",
        "the effect mail@1 is a write and was done 2 times",
    ),
    "a repetition gets another key": (
        "import django; django.setup()\n"
        "from workflows.engine import entering\n"
        "entering.is_uncertain = lambda attempt: False",
        "the effect mail@1 was repeated under another dispatch id",
    ),
    "a settled effect is forgotten": (
        "import django; django.setup()\n"
        "from workflows.ledger import hot_path\n"
        "hot_path.VISIT_CHANGES = tuple(name for name in hot_path.VISIT_CHANGES if name != 'outcome')",
        "path is ",
    ),
    "effects outlive their worker": (
        "import django; django.setup()\n"
        "from workflows.engine.supervisor import Supervisor\n"
        "Supervisor.watch = lambda self, group, mark='': None",
        "outlived their driver",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_kit_finds_a_planted_fault(processes: Processes, name: str) -> None:
    fault, complaint = FAULTS[name]
    variant = "read" if "key" in name else "written"
    words = ("14", "--variants", variant, "--windows", "during the effect", "--sample", "1", "--twice", "0")

    code, said = attack(processes, *words, fault=fault)

    assert code == 1
    assert complaint in said, said
