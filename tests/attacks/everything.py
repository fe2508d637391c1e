"""Every world there is: importing them registers them."""

from tests.attacks import batches, external, forks, lines, notifying, operators, people, schedules
from tests.attacks.verbs import ATTACKED, ATTACKS, ledger_verbs

__all__ = [
    "ATTACKED",
    "ATTACKS",
    "batches",
    "external",
    "forks",
    "ledger_verbs",
    "lines",
    "notifying",
    "operators",
    "people",
    "schedules",
]
