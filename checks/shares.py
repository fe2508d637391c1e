"""``python -m checks.shares``: in how many shares the tests are tried here, so that a slow machine is done in time.

1 where everything can be tried; with N, of the tests that use a database one of N shares on each of them.
"""

from __future__ import annotations

import math
import os
import time

#: Additions of the loop that tells how fast this machine is.
ADDITIONS = 5_000_000
#: What everything takes on two cores where the loop takes a second. Where it takes 0.43 s about 1 200 s were measured.
WHOLE_S = 2_900.0
#: What the checks may take of the thirty minutes of a machine that runs them for everybody; the rest is for installing.
TIME_S = 1_500.0
#: More cores are of no use: that many processes share the tests.
MOST_CORES = 4


def shares(loop_s: float, cores: int) -> int:
    """The number of shares on a machine with so many cores, on which the loop takes ``loop_s`` seconds."""
    whole_s = WHOLE_S * loop_s * 2 / max(1, min(cores, MOST_CORES))
    return max(1, math.ceil(whole_s / TIME_S))


def measured() -> float:
    """Seconds that the loop takes: the best of three times, for others may be at work."""
    return min(_loop() for _ in range(3))


def _loop() -> float:
    began, total = time.process_time(), 0
    for number in range(ADDITIONS):
        total += number
    return time.process_time() - began


if __name__ == "__main__":
    print(shares(measured(), os.cpu_count() or 1))
