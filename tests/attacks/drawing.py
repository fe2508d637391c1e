"""The rules of the machine, drawn with weights from a seed: most of what happens to runs is that they go on."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from tests.attacks.machine import MOST_RUNS, LedgerMachine
from workflows.statuses import ControlKind

#: How often each rule is drawn, and what its arguments are drawn from.
RULES: dict[str, tuple[int, dict[str, list[Any]]]] = {
    "start": (2, {"depth": [0, 2, 3, 4, 4]}),
    "drive": (6, {}),
    "settle": (4, {"result": ["ok", "ok", "ok", "bad"]}),
    "drive_on": (3, {}),
    "look_for_messages": (2, {}),
    "die": (4, {}),
    "write_late": (1, {}),
    "cancel": (1, {}),
    "hold": (2, {"kind": [ControlKind.PAUSE, ControlKind.RESUME, ControlKind.RESUME]}),
    "reply": (4, {"decision": ["go", "go", "stop"]}),
    "say_what_happened": (3, {"decision": ["happened", "did_not", "stop"]}),
    "open_again": (2, {}),
    "give_up": (1, {}),
    "pass_time": (2, {}),
    "sweep": (1, {}),
}
WITHOUT_RUN = frozenset({"start", "pass_time", "sweep"})


def play(seed: int, steps: int) -> Counter[str]:
    """So many operations drawn from a seed, each followed by all comparisons; what the runs were, and how often.

    A difference is raised with a note that lists what was done.
    """
    draw, machine, done = random.Random(seed), LedgerMachine(), list[str]()
    seen: Counter[str] = Counter()
    names = list(RULES)
    try:
        for _ in range(steps):
            name = draw.choices(names, [weight for weight, _ in RULES.values()])[0]
            if not may(machine, name):
                continue
            words = {key: draw.choice(values) for key, values in RULES[name][1].items()}
            if name not in WITHOUT_RUN:
                words["number"] = draw.randrange(60)
            done.append(f"{name} {words}")
            getattr(machine, name)(**words)
            machine.every_run_is_as_the_model_says()
            machine.places_are_held_and_waited_for_in_order()
            seen.update(f"{run.status} {run.at} {run.doing}" for run in machine.expected.values())
        machine.teardown()
    except BaseException as error:
        error.add_note("\n".join([f"seed {seed}:", *done]))
        raise
    return seen


def may(machine: LedgerMachine, name: str) -> bool:
    if name == "start":
        return len(machine.ids) < MOST_RUNS
    if name == "write_late":
        return bool(machine.zombies)
    return bool(machine.ids) or name in WITHOUT_RUN
