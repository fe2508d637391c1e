"""``python -m tests.api``: many made-up requests to every operation. ``--examples 200``; other words go to pytest."""

from __future__ import annotations

import argparse
import os
import sys

import pytest

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.api", description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="requests of each sort to each operation")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    given, rest = parser.parse_known_args()
    os.environ["WAYPOST_API_EXAMPLES"] = str(given.examples)
    sys.argv = ["pytest", "--store", given.store]
    raise SystemExit(pytest.main(["-q", "--store", given.store, "tests/api/test_fuzzing.py", *rest]))
