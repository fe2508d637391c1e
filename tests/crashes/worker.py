"""``python -m tests.crashes.worker FILE KEY LOG [SUBJECT PLACE]``: one life in a process of its own, for tests that
kill or freeze it. With SUBJECT and PLACE it freezes itself there (SIGSTOP). Prints its report as JSON."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import django

if __name__ == "__main__":
    django.setup()

    from tests.crashes.life import Lives, Order
    from tests.crashes.moments import Point
    from tests.crashes.scenarios import Scenario, runnable

    file, key, log, *point = sys.argv[1:]
    scenario = Scenario(name=file, definition=runnable(Path(file).read_bytes()))
    stops_at = Point(subject=point[0], place=point[1]) if point else None
    order = Order(scenario=scenario, key=key, log=Path(log), dies_at=stops_at, dies_of=signal.SIGSTOP)
    print(json.dumps(Lives().live(order)))
