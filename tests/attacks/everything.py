"""Every world there is: importing them registers them."""

from tests.attacks import batches, external, forks, keys, lines, notifying, operators, people, schedules, workers
from tests.attacks.verbs import ATTACKED, ATTACKS, ledger_verbs

__all__ = [
    "ATTACKED",
    "ATTACKS",
    "batches",
    "external",
    "forks",
    "keys",
    "ledger_verbs",
    "lines",
    "notifying",
    "operators",
    "people",
    "schedules",
    "workers",
]
