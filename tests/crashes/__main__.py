"""``python -m tests.crashes CASE…|--all``: kill a driver at the writes of the cases and report every difference.

CASE is the beginning of a folder's name in ``tests/data/cases`` or ``tests/crashes/cases`` (``07``). Points that write
the same in the same place of a file are tried twice, the first one and the last one; ``--exhaustive`` tries them all.
Exit code 1: something differs.
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
    from tests.crashes.attacks import Outcome
    from tests.crashes.scenarios import Scenario


def main(words: Sequence[str] | None = None, plant: Callable[[], object] | None = None) -> int:
    """``plant`` is called when Django is set up: the kit's own tests spoil something there."""
    wanted = _arguments(words)
    with databases.private_database(wanted.store, wanted.database) as (directory, environment):
        databases.prepare(environment, is_new=wanted.database is None)
        if plant is not None:
            plant()
        return _run(wanted, directory)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crashes", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--all", action="store_true", help="every case that this version can run")
    parser.add_argument("--exhaustive", action="store_true", help="every point, those that write the same too")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--database", metavar="URL", help="use this migrated database instead of a new one")
    parser.add_argument("--windows", nargs="+", metavar="WORDS", help="only windows whose names contain one of these")
    parser.add_argument("--variants", nargs="+", choices=["written", "read", "idempotent"], metavar="VARIANT")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N points of each file, spread over windows")
    parser.add_argument(
        "--twice",
        type=int,
        default=1,
        metavar="N",
        help="first deaths of each file after which the second driver is killed too",
    )
    parser.add_argument("--jobs", type=int, default=2, help="drivers at a time")
    wanted = parser.parse_args(words)
    if wanted.all == bool(wanted.cases):
        parser.error("name cases or give --all")
    return wanted


def _run(wanted: argparse.Namespace, directory: Path) -> int:
    from django.db import connection

    from tests.crashes.attacks import Kit, Outcome
    from tests.crashes.choosing import Choice
    from tests.crashes.files import attack_case

    began = time.monotonic()
    choice = Choice(all=wanted.exhaustive, windows=wanted.windows or (), most=wanted.sample)
    kit, total = Kit(directory, jobs=wanted.jobs), Outcome()
    for name, scenarios in _cases(wanted):
        started, outcome = time.monotonic(), Outcome()
        attack_case(kit, scenarios, choice, wanted.twice, outcome)
        seconds = time.monotonic() - started
        print(f"{name}: {outcome.told()}, {len(outcome.differences)} differences, {seconds:.0f} s")
        for text in outcome.differences:
            print(f"DIFFERENT {text}")
        sys.stdout.flush()
        total.add(outcome)
    print(f"\n{connection.vendor}: {total.told()}, {time.monotonic() - began:.0f} s")
    _print_windows(total)
    print(f"{len(total.differences)} differences")
    return 1 if total.differences else 0


def _print_windows(total: Outcome) -> None:
    from tests.crashes.moments import KILL_WINDOWS

    print("Kills in each window of promise KILL:")
    for window in KILL_WINDOWS:
        print(f"{total.tried[window]:6}  {window}")
    print("in others:")
    for window, count in sorted(total.tried.items()):
        if window not in KILL_WINDOWS:
            print(f"{count:6}  {window}")


def _cases(wanted: argparse.Namespace) -> Iterator[tuple[str, Sequence[Scenario]]]:
    """The scenarios of each case; says what is left out and why."""
    from tests.crashes.scenarios import VARIANTS, case_folders, refused, scenarios_of

    variants = ["" if name == "written" else name for name in wanted.variants or ()] or list(VARIANTS)
    for folder in case_folders(wanted.cases):
        refusal = refused(folder)
        if refusal is not None:
            print(f"{folder.name}: left out: {refusal.message}")
            continue
        yield folder.name, list(scenarios_of(folder, variants))


if __name__ == "__main__":
    sys.exit(main())
