"""``python -m tests.crashes CASE…|--all``: kill a driver at every write of the cases and report every difference.

CASE is the beginning of a folder's name in ``tests/data/cases`` (``07``). Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.crashes import databases


def main(words: Sequence[str] | None = None) -> int:
    wanted = _arguments(words)
    with databases.private_database(wanted.store, wanted.database) as (directory, environment):
        databases.prepare(environment, is_new=wanted.database is None)
        return _run(wanted, directory)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crashes", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--all", action="store_true", help="every case that this version can run")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--database", metavar="URL", help="use this migrated database instead of a new one")
    parser.add_argument("--windows", nargs="+", metavar="WORDS", help="only windows whose names contain one of these")
    parser.add_argument("--variants", nargs="+", choices=["written", "read", "idempotent"], metavar="VARIANT")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N points of each scenario, spread over windows")
    parser.add_argument("--twice", type=int, default=1, metavar="N", help="after N first deaths kill the second driver too")
    parser.add_argument("--jobs", type=int, default=2, help="drivers at a time")
    wanted = parser.parse_args(words)
    if wanted.all == bool(wanted.cases):
        parser.error("name cases or give --all")
    return wanted


def _run(wanted: argparse.Namespace, directory: Path) -> int:
    from django.db import connection

    from tests.crashes.attacks import Attack, Kit, Outcome, spread, worth_a_second_death

    began = time.monotonic()
    scenarios, left_out = _scenarios(wanted)
    kit, outcome = Kit(directory, jobs=wanted.jobs), Outcome()
    references = kit.references(scenarios, outcome)
    attacks, second = [], []
    for number, reference in enumerate(references):
        points = [point for point in reference.points if _is_wanted(wanted, point.window)]
        attacks += [Attack(reference=reference, deaths=(point,)) for point in spread(points, wanted.sample, start=number)]
        second += [
            Attack(reference=reference, deaths=(point,))
            for point in worth_a_second_death(reference.points, wanted.twice)
        ]
    kit.attack(attacks, outcome)
    twice = [
        Attack(reference=attack.reference, deaths=(*attack.deaths, point))
        for number, (attack, points) in enumerate(zip(second, kit.attack(second, Outcome()), strict=True))
        for point in spread([one for one in points if _is_wanted(wanted, one.window)], wanted.sample, start=number)
    ]
    kit.attack(twice, outcome)
    for text in left_out:
        print(f"left out: {text}")
    print(f"{connection.vendor}: {len(references)} undisturbed runs, {outcome.tried.total()} kills, ", end="")
    print(f"{len(twice)} of them after another kill, {time.monotonic() - began:.0f} s")
    for window, count in sorted(outcome.tried.items()):
        print(f"{count:6}  {window}")
    for text in outcome.differences:
        print(f"DIFFERENT {text}")
    print(f"{len(outcome.differences)} differences")
    return 1 if outcome.differences else 0


def _scenarios(wanted: argparse.Namespace) -> tuple[list, list[str]]:  # type: ignore[type-arg]
    from tests.crashes.scenarios import VARIANTS, case_folders, needs_people, refused, scenarios_of

    variants = ["" if name == "written" else name for name in wanted.variants or ()] or list(VARIANTS)
    chosen, left_out = [], []
    for folder in case_folders(wanted.cases):
        refusal = refused(folder)
        if refusal is not None:
            left_out.append(f"{folder.name}: {refusal.message}")
            continue
        for scenario in scenarios_of(folder, variants):
            if needs_people(scenario):
                left_out.append(f"{scenario.name}: it needs people")
            else:
                chosen.append(scenario)
    return chosen, left_out


def _is_wanted(wanted: argparse.Namespace, window: str) -> bool:
    return not wanted.windows or any(words in window for words in wanted.windows)


if __name__ == "__main__":
    sys.exit(main())
