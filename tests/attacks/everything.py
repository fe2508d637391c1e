"""Every world there is: importing them registers them."""

from tests.attacks import batches, forks, notifying, operators, people
from tests.attacks.verbs import ATTACKED, ATTACKS, ledger_verbs

__all__ = ["ATTACKED", "ATTACKS", "batches", "forks", "ledger_verbs", "notifying", "operators", "people"]
