"""Random sequences of everything that may happen to runs, against a model of what they have to be.

``python -m tests.attacks --examples 2000`` does it for longer, with new sequences each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.attacks.machine import LedgerMachine

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("WAYPOST_TEST_EXAMPLES", "6"))
STEPS = int(os.environ.get("WAYPOST_TEST_STEPS", "35"))


def test_whatever_happens_in_any_order_runs_are_what_the_model_says() -> None:
    """LEASE.1, LEASE.3, LEASE.4, LEASE.10, ADM.5, ADM.6, SET.3, CTL.2, CTL.4, PUB.4, PUB.5, EVT.1, REV.1, ABR.2, ABR.3"""
    is_short = "WAYPOST_TEST_EXAMPLES" not in os.environ
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=is_short,
            deadline=None,
            database=None,
            phases=[Phase.generate] if is_short else [Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
