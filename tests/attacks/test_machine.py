"""Random sequences of everything that may happen to runs, against a model of what they have to be.

``python -m tests.attacks --examples 2000`` does it for longer: with more seeds, and with sequences that hypothesis
makes, new ones each time.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.attacks.drawing import play
from tests.attacks.machine import LedgerMachine

pytestmark = pytest.mark.django_db(transaction=True)

IS_SHORT = "WAYPOST_TEST_EXAMPLES" not in os.environ
EXAMPLES = int(os.environ.get("WAYPOST_TEST_EXAMPLES", "6"))
STEPS = int(os.environ.get("WAYPOST_TEST_STEPS", "60"))
#: What some run has to have been in the short pass, or it shows little: status, step, and what it does there.
REACHED = (
    "running change effect",
    "blocked change reconcile",
    "blocked change decided",
    "paused ask people",
    "waiting nap timer",
    "running tidy effect",
    "succeeded over ready",
    "failed over ready",
    "abandoned ",
    "cancelled over ready",
)


def test_drawn_sequences_leave_runs_as_the_model_says() -> None:
    """LEASE.1, LEASE.3, LEASE.4, LEASE.10, ADM.5, ADM.6, SET.3, CTL.2, CTL.4, PUB.4, PUB.5, EVT.1, REV.1, ABR.1–3"""
    seen: Counter[str] = Counter()
    for seed in range(EXAMPLES):
        seen += play(seed, STEPS)
    missing = [wanted for wanted in REACHED if not any(found.startswith(wanted) for found in seen)]
    assert not (IS_SHORT and missing), seen


def test_sequences_of_hypothesis_leave_runs_as_the_model_says() -> None:
    """LEASE.1, LEASE.3, LEASE.4, LEASE.10, ADM.5, ADM.6, SET.3, CTL.2, CTL.4, PUB.4, PUB.5, EVT.1, REV.1, ABR.1–3"""
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=4 if IS_SHORT else EXAMPLES,
            stateful_step_count=25 if IS_SHORT else STEPS,
            derandomize=IS_SHORT,
            deadline=None,
            database=None,
            phases=[Phase.generate] if IS_SHORT else [Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
