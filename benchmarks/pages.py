"""``python -m benchmarks.pages``: what the pages cost on a large installation.

For each page and each piece of one: the time of the server and its processor time in milliseconds (medians of several
requests, in this process), statements sent to the database, and bytes. Time above the bar is marked. On a machine that
is busy with other things the processor time tells more; on PostgreSQL it leaves out what the database itself does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import machine, stores
from benchmarks.__main__ import say, usable_stores

BAR_MS = 150
#: Of a page of a run, and of a list with all that stands beside it.
BAR_QUERIES, BAR_QUERIES_OF_LIST = 20, 30
#: Sent piece by piece while they are read: their time is that of their size.
DOWNLOADS = ("run_events_json",)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100_000, help="how many runs there are (default 100 000)")
    parser.add_argument("--requests", type=int, default=5, help="requests to each page (default 5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages with this text in their name")
    parser.add_argument("--store", choices=stores.VENDORS, help="only this database")
    parser.add_argument("--explain", action="store_true", help="show the slowest statement of each page, with its plan")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    options = parse(words)
    if (warning := machine.load_warning(machine.load())) is not None:
        say(warning)
    results = {vendor: measured(vendor, server, options) for vendor, server in usable_stores(options.store)}
    if options.as_json:
        sys.stdout.write(json.dumps({"machine": machine.describe_machine(), "pages": results}, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(report(results)) + "\n")
    return 0 if all(is_within(row) for rows in results.values() for row in rows) else 1


def measured(vendor: str, server: str | None, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one store, from a process of its own."""
    say(f"pages on {vendor}")
    with stores.temporary(vendor, server) as store:
        environment = {
            **os.environ,
            "DATABASE_URL": store.database_url,
            "WAYPOST_VAR": store.directory,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "SECRET_KEY": "of a benchmark",
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.pages_child"],
            input=json.dumps(
                {"runs": options.runs, "requests": options.requests, "only": options.only, "explain": options.explain}
            ),
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=stores.PROJECT,
            check=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_within(row: dict[str, Any]) -> bool:
    """Whether a page keeps to the bar. The lower of the two times counts: the other one holds what the machine did."""
    if row["page"].endswith(DOWNLOADS):
        return True
    most = BAR_QUERIES if " run, " in row["page"] else BAR_QUERIES_OF_LIST
    return bool(min(row["wall_ms"], row["cpu_ms"] + row["database_ms"]) < BAR_MS and row["queries"] < most)


def report(results: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = [f"# {name}: {value}" for name, value in machine.describe_machine().items()]
    for vendor, rows in results.items():
        lines += ["", f"{vendor:<42}{'ms':>9}{'cpu ms':>9}{'db ms':>9}{'queries':>9}{'KiB':>9}"]
        for row in rows:
            mark = "" if is_within(row) else "  above the bar"
            lines.append(
                f"{row['page']:<42}{row['wall_ms']:>9.1f}{row['cpu_ms']:>9.1f}{row['database_ms']:>9.1f}"
                f"{row['queries']:>9}{row['bytes'] / 1024:>9.1f}{mark}"
            )
            lines += [f"    {line}" for line in row.get("explained", ())]
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
