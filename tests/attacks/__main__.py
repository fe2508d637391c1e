"""``python -m tests.attacks``: random sequences of everything that may happen to runs, for longer than the tests do it.

Other words go to pytest: ``--store postgresql``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="how many sequences (default: 200)")
    parser.add_argument("--steps", type=int, default=60, help="how many operations each (default: 60)")
    wanted, words = parser.parse_known_args()
    environment = {**os.environ, "WAYPOST_TEST_EXAMPLES": str(wanted.examples), "WAYPOST_TEST_STEPS": str(wanted.steps)}
    test = ["tests/attacks/test_machine.py", "-p", "no:xdist", "-o", "faulthandler_timeout=0"]
    return subprocess.run([sys.executable, "-m", "pytest", *test, *words], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
