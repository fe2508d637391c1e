"""``python -m tests.journeys [WORDS…]``: every case and every set of parameters through the command line, on SQLite and
on PostgreSQL. ``--store`` chooses one of them; other words go to pytest (``-k 07``, ``-n 4``).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

STORES = ("sqlite", "postgresql")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.journeys", description=__doc__)
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    wanted, further = parser.parse_known_args(words)
    here = Path(__file__).resolve().parent
    failed = []
    for store in wanted.store or STORES:
        print(f"== {store}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", f"--store={store}", str(here), *further]
        if subprocess.run(command, cwd=here.parent.parent, check=False).returncode:
            failed.append(store)
    print(f"Failed on {' and '.join(failed)}." if failed else "Every journey ended as it should.")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
