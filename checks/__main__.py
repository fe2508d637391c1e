"""Runs every check, one after the other, and sums up.

``python -m checks`` runs all, ``python -m checks lint types`` only the named ones, ``--list`` names them.
Ends with 0 when everything passed. Without a PostgreSQL server the tests on it are reported as skipped;
``WAYPOST_REQUIRE_POSTGRES=1`` makes that a failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from checks.postgresql import find_server

PROJECT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 1800
#: Tests of what only translates between people and operations: tried on one database, to keep the whole short (the
#: journeys of all cases go through the commands on both). They
#: pass on PostgreSQL as well (``pytest --store postgresql tests/pages``).
TRANSLATING = ("admin", "commands", "docs", "library", "pages")
_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One command. ``needs_postgresql``: it runs with ``WAYPOST_TEST_DATABASE_URL`` set to a server that was found."""

    name: str
    title: str
    command: tuple[str, ...]
    needs_postgresql: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    check: Check
    word: str
    seconds: float = 0.0
    note: str = ""

    @property
    def is_failure(self) -> bool:
        return self.word == "FAILED"


def _python(*words: str) -> tuple[str, ...]:
    return (sys.executable, *words)


def all_checks(workers: int, shares: int = 1) -> list[Check]:
    tests = _python("-m", "pytest", "-q", "-n", str(workers), "--ignore", "tests/browser")
    browser = _python("-m", "pytest", "-q", "-n", str(min(2, workers)), "tests/browser")
    return [
        Check(name="format", title="ruff format", command=(str(_BIN / "ruff"), "format", "--check", "--quiet", ".")),
        Check(name="lint", title="ruff", command=(str(_BIN / "ruff"), "check", "--quiet", ".")),
        Check(name="types", title="mypy", command=_python("-m", "mypy")),
        Check(name="imports", title="import contracts", command=(str(_BIN / "lint-imports"), "--no-cache")),
        Check(
            name="migrations",
            title="missing migrations",
            command=_python("manage.py", "makemigrations", "--check", "--dry-run"),
        ),
        Check(name="tests", title="tests on SQLite", command=(*tests, "--store", "sqlite", f"--share=1/{shares}")),
        Check(
            name="tests-postgresql",
            title="tests on PostgreSQL",
            command=(
                *tests,
                *("--store", "postgresql", f"--share={min(2, shares)}/{shares}"),
                *(f"--ignore=tests/{room}" for room in TRANSLATING),
            ),
            needs_postgresql=True,
        ),
        Check(name="browser", title="journeys in a browser", command=(*browser, "--store", "sqlite")),
        Check(
            name="browser-postgresql",
            title="the same, PostgreSQL",
            command=(*browser, "--store", "postgresql"),
            needs_postgresql=True,
        ),
    ]


def run(check: Check, server: str | None, is_required: bool) -> Outcome:
    """Run one check; its output is shown when it fails."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    environment.pop("DATABASE_URL", None)
    environment.pop("WAYPOST_TEST_DATABASE_URL", None)
    if check.needs_postgresql:
        if server is None:
            word = "FAILED" if is_required else "skipped"
            return Outcome(check=check, word=word, note="no PostgreSQL server was found (WAYPOST_TEST_DATABASE_URL)")
        environment["WAYPOST_TEST_DATABASE_URL"] = server
    started = time.monotonic()
    try:
        done = subprocess.run(
            check.command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        return Outcome(check=check, word="FAILED", note=f"{error.filename} is not installed")
    except subprocess.TimeoutExpired:
        return Outcome(check=check, word="FAILED", seconds=TIMEOUT_S, note="took too long")
    seconds = time.monotonic() - started
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode != 0:
        print(f"\n---- {check.title} ----")
        print("\n".join(lines), flush=True)
        return Outcome(check=check, word="FAILED", seconds=seconds)
    note = lines[-1].strip("= ") if check.name.startswith(("tests", "browser")) and lines else ""
    return Outcome(check=check, word="ok", seconds=seconds, note=note)


def _show(outcome: Outcome) -> None:
    print(f"{outcome.word:8}{outcome.check.title:22}{outcome.seconds:6.1f} s  {outcome.note}".rstrip(), flush=True)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m checks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CHECK", help="run only these")
    parser.add_argument("--list", action="store_true", help="name the checks and stop")
    parser.add_argument("--workers", type=int, default=min(4, max(2, os.cpu_count() or 2)), help="processes of pytest")
    parser.add_argument(
        "--shares",
        type=int,
        default=1,
        metavar="N",
        help="on a slow machine: of the tests that use a database one of N shares, on each database another one",
    )
    options = parser.parse_args(words)
    checks = all_checks(options.workers, options.shares)
    if options.list:
        print("\n".join(f"{check.name:18}{check.title}" for check in checks))
        return 0
    if unknown := set(options.names) - {check.name for check in checks}:
        parser.error(f"there is no check {', '.join(sorted(unknown))}; --list names them")
    chosen = [check for check in checks if not options.names or check.name in options.names]
    server = find_server() if any(check.needs_postgresql for check in chosen) else None
    is_required = os.environ.get("WAYPOST_REQUIRE_POSTGRES") == "1"
    outcomes = []
    for check in chosen:
        outcomes.append(run(check, server, is_required))
        _show(outcomes[-1])
    failed = [outcome.check.title for outcome in outcomes if outcome.is_failure]
    skipped = [outcome.check.title for outcome in outcomes if outcome.word == "skipped"]
    print()
    if skipped:
        print(f"Skipped: {', '.join(skipped)}.")
    print(f"Failed: {', '.join(failed)}." if failed else "Every check passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
