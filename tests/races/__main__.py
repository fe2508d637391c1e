"""``python -m tests.races --rounds 1000``: every race for longer than the tests play it. Other words go to pytest."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of each race (default: 1000)")
    wanted, words = parser.parse_known_args()
    environment = {**os.environ, "WAYPOST_TEST_ROUNDS": str(wanted.rounds)}
    command = [sys.executable, "-m", "pytest", "tests/races", "-p", "no:xdist", "-o", "faulthandler_timeout=0", *words]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
