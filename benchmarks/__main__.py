"""``python -m benchmarks``: what steps cost, as medians of several runs.

Peers are measured too where they are installed (``pip install 'waypost[benchmarks]'``); ``--no-peers`` leaves them
out. Every figure stands beside the floor: one durable transaction of three statements on the bare driver, measured on
the same database between the repetitions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks import engines, machine, report, stores
from benchmarks.measuring import Failed, measure
from benchmarks.samples import Measured
from benchmarks.subjects import SUBJECTS, Subject


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and shorter runs")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=[subject.name for subject in SUBJECTS], help=_names()
    )
    parser.add_argument("--store", choices=stores.VENDORS, help="only this database")
    parser.add_argument("--no-peers", action="store_true", help="measure this project only")
    return parser.parse_args(words)


def _names() -> str:
    return "measure this only (may be repeated): " + ", ".join(subject.name for subject in SUBJECTS)


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(words: Sequence[str]) -> int:
    options = parse(words)
    subjects = [subject for subject in SUBJECTS if options.only is None or subject.name in options.only]
    load = machine.load()
    if (warning := machine.load_warning(load)) is not None:
        say(warning)
    results: list[Measured | Failed] = []
    for vendor, server in usable_stores(options.store):
        for entry in entries(options.no_peers):
            chosen = [subject for subject in subjects if is_measured(entry, vendor, subject)]
            if chosen:
                say(f"{entry.title} on {vendor}: {', '.join(subject.name for subject in chosen)}")
                results += measure(entry, vendor, server, chosen, quick=options.quick)
    description = {**machine.describe_machine(), "load": f"{load:.2f} before, {machine.load():.2f} after"}
    if options.as_json:
        sys.stdout.write(json.dumps(as_json(description, warning, results), indent=2) + "\n")
    else:
        lines = [*report.heading(description), *([warning] if warning else []), *report.table(results)]
        sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any(isinstance(result, Failed) for result in results) else 0


def usable_stores(wanted: str | None) -> list[tuple[str, str | None]]:
    """The stores to measure, each with its server. Says which one is left out for want of a server."""
    found: list[tuple[str, str | None]] = []
    if wanted in (None, "sqlite"):
        found.append(("sqlite", None))
    if wanted in (None, "postgresql"):
        server = stores.find_postgresql()
        if server is not None:
            found.append(("postgresql", server))
        else:
            say("PostgreSQL is left out: no server was found (WAYPOST_TEST_DATABASE_URL may name one).")
    return found


def entries(without_peers: bool) -> list[engines.EngineEntry]:
    """This project, and the peers that are installed."""
    if without_peers:
        return [engines.WAYPOST]
    missing = [entry.title for entry in engines.PEERS if not entry.is_installed()]
    if missing:
        say(f"Not installed, so not measured: {', '.join(missing)} (pip install 'waypost[benchmarks]').")
    return [engines.WAYPOST, *(entry for entry in engines.PEERS if entry.is_installed())]


def is_measured(entry: engines.EngineEntry, vendor: str, subject: Subject) -> bool:
    """``command`` does not depend on the database, so it is measured once."""
    if subject.name == "command" and vendor != "sqlite":
        return False
    return vendor in entry.vendors and subject.name in entry.subjects


def as_json(
    description: dict[str, str], warning: str | None, results: Sequence[Measured | Failed]
) -> dict[str, object]:
    return {
        "machine": description,
        "warning": warning,
        "measured": [result.as_json() for result in results if isinstance(result, Measured)],
        "failed": [
            {"subject": result.subject, "engine": result.engine, "store": result.store, "reason": result.reason}
            for result in results
            if isinstance(result, Failed)
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
