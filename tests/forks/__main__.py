"""``python -m tests.forks [--all] [WORDS…]``: a fork at every visit of runs, each played to its end, on SQLite and on
PostgreSQL. ``--all`` takes every scenario of every case; ``--store`` chooses a database; other words go to pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

STORES = ("sqlite", "postgresql")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.forks", description=__doc__)
    parser.add_argument("--all", action="store_true", help="every scenario of every case")
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    wanted, further = parser.parse_known_args(words)
    here = Path(__file__).resolve().parent
    environment = {**os.environ, **({"WAYPOST_ALL_FORKS": "1"} if wanted.all else {})}
    failed = []
    for store in wanted.store or STORES:
        print(f"== {store}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", f"--store={store}", "-o", "faulthandler_timeout=3600"]
        command += [str(here / "test_everywhere.py"), *further]
        if subprocess.run(command, cwd=here.parent.parent, env=environment, check=False).returncode:
            failed.append(store)
    print(f"Failed on {' and '.join(failed)}." if failed else "Every fork ended like its origin.")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
