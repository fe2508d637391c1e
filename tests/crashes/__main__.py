"""``python -m tests.crashes CASE…|--all``: kill a driver at every write of the cases and report every difference.

CASE is the beginning of a folder's name in ``tests/data/cases`` (``07``). Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crashes import databases

if TYPE_CHECKING:  # everything else needs Django, which needs the database that the arguments name
    from tests.crashes.attacks import Kit, Outcome
    from tests.crashes.scenarios import Scenario


def main(words: Sequence[str] | None = None, plant: Callable[[], object] | None = None) -> int:
    """``plant`` is called when Django is set up: the kit's own tests spoil something there."""
    wanted = _arguments(words)
    with databases.private_database(wanted.store, wanted.database, wanted.ttl) as (directory, environment):
        databases.prepare(environment, is_new=wanted.database is None)
        if plant is not None:
            plant()
        return _run(wanted, directory)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crashes", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--all", action="store_true", help="every case that this version can run")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--database", metavar="URL", help="use this migrated database instead of a new one")
    parser.add_argument("--windows", nargs="+", metavar="WORDS", help="only windows whose names contain one of these")
    parser.add_argument("--variants", nargs="+", choices=["written", "read", "idempotent"], metavar="VARIANT")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="at most N points of each scenario, spread over windows"
    )
    parser.add_argument(
        "--twice",
        type=int,
        default=1,
        metavar="N",
        help="first deaths of each file after which the second driver is killed too",
    )
    parser.add_argument("--ttl", type=int, default=databases.TTL_MS, metavar="MS", help="life of a lease")
    parser.add_argument("--jobs", type=int, default=2, help="drivers at a time")
    wanted = parser.parse_args(words)
    if wanted.all == bool(wanted.cases):
        parser.error("name cases or give --all")
    return wanted


def _run(wanted: argparse.Namespace, directory: Path) -> int:
    from django.db import connection

    from tests.crashes.attacks import Kit, Outcome

    began = time.monotonic()
    kit, total, undisturbed = Kit(directory, jobs=wanted.jobs), Outcome(), 0
    for name, scenarios in _files(wanted):
        outcome = Outcome()
        undisturbed += _attack_one(wanted, kit, scenarios, outcome)
        print(f"{name}: {outcome.tried.total()} kills, {len(outcome.differences)} differences")
        for text in outcome.differences:
            print(f"DIFFERENT {text}")
        sys.stdout.flush()
        total.tried += outcome.tried
        total.differences += outcome.differences
    print(f"\n{connection.vendor}: {undisturbed} undisturbed runs, {total.tried.total()} kills", end="")
    print(f" in {time.monotonic() - began:.0f} s")
    for window, count in sorted(total.tried.items()):
        print(f"{count:6}  {window}")
    print(f"{len(total.differences)} differences")
    return 1 if total.differences else 0


def _files(wanted: argparse.Namespace) -> Iterator[tuple[str, Sequence[Scenario]]]:
    """The scenarios of each case; says what is left out and why."""
    from tests.crashes.scenarios import VARIANTS, case_folders, needs_people, refused, scenarios_of

    variants = ["" if name == "written" else name for name in wanted.variants or ()] or list(VARIANTS)
    for folder in case_folders(wanted.cases):
        refusal = refused(folder)
        if refusal is not None:
            print(f"{folder.name}: left out: {refusal.message}")
            continue
        scenarios = list(scenarios_of(folder, variants))
        alone = [scenario for scenario in scenarios if not needs_people(scenario)]
        if len(alone) < len(scenarios):
            print(f"{folder.name}: {len(scenarios) - len(alone)} scenarios left out: they need people")
        if alone:
            yield folder.name, alone


def _attack_one(wanted: argparse.Namespace, kit: Kit, scenarios: Sequence[Scenario], outcome: Outcome) -> int:
    """Attack the scenarios of one case; how many undisturbed runs there were to compare with.

    What lies before anything that depends on the scenario, and second deaths, are tried once per file.
    """
    from tests.crashes.attacks import Attack, Outcome, belongs_to_the_start, spread, worth_a_second_death

    references = kit.references(scenarios, outcome)
    attacks: list[Attack] = []
    first_deaths: list[Attack] = []
    known: set[tuple[str, bool]] = set()
    for number, reference in enumerate(references):
        file = (reference.scenario.definition.hash, reference.lingers)
        points = [
            point
            for point in reference.points
            if _is_wanted(wanted, point.window) and not (file in known and belongs_to_the_start(point))
        ]
        attacks += [Attack(reference=reference, deaths=(one,)) for one in spread(points, wanted.sample, start=number)]
        if file not in known:
            chosen = worth_a_second_death(reference.points, wanted.twice)
            first_deaths += [Attack(reference=reference, deaths=(point,)) for point in chosen]
        known.add(file)
    kit.attack(attacks, outcome)
    again = kit.attack(first_deaths, Outcome())
    second_deaths = [
        Attack(reference=attack.reference, deaths=(*attack.deaths, point))
        for number, (attack, points) in enumerate(zip(first_deaths, again, strict=True))
        for point in spread([one for one in points if _is_wanted(wanted, one.window)], wanted.sample, start=number)
    ]
    kit.attack(second_deaths, outcome)
    return len(references)


def _is_wanted(wanted: argparse.Namespace, window: str) -> bool:
    return not wanted.windows or any(words in window for words in wanted.windows)


if __name__ == "__main__":
    sys.exit(main())
