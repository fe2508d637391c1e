"""The runs of the fleet: mixed workflows whose effects are noted in one file, what each must have become, and how often
its effects may have happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

# One line per effect: run, step, index of the item, dispatch id. O_APPEND keeps lines whole.
_NOTE = 'echo "$WAYPOST_RUN_ID $WAYPOST_STEP i$WAYPOST_INDEX $WAYPOST_IDEMPOTENCY_KEY" >> "LOG"'

#: Workflows by name; every third step waits a little, so that runs park and are found again.
WORKFLOWS = {
    "fleet_reads": """
vars: { seen: 0 }
steps:
  - { id: first, kind: shell, access: read, run: NOTE }
  - { id: count, kind: assign, set: { seen: 1 } }
  - { id: rest, kind: wait, for: 1200ms }
  - { id: last, kind: shell, access: read, run: NOTE }
""",
    "fleet_writes": """
steps:
  - { id: book, kind: shell, access: write, run: NOTE }
  - { id: again, kind: shell, access: write, idempotent: true, run: NOTE }
""",
    "fleet_map": """
steps:
  - id: each
    kind: map
    over: ${ [1, 2, 3, 4, 5] }
    concurrency: 3
    do: [{ id: item, kind: shell, access: read, run: NOTE }]
""",
    "fleet_parent": """
steps:
  - { id: kid, kind: workflow, ref: fleet_kid }
  - { id: after, kind: shell, access: read, run: NOTE }
""",
    "fleet_places": """
concurrency: { key: "fleet", max: 3, when_full: queue }
steps:
  - { id: shared, kind: shell, access: read, limit: { group: fleet, max: 2 }, run: NOTE }
""",
    "fleet_fails": """
steps:
  - { id: breaks, kind: shell, access: read, run: 'NOTE_INNER; exit 3' }
finally:
  - { id: tidy, kind: shell, access: read, run: NOTE }
""",
}
KID = "steps:\n  - { id: within, kind: shell, access: read, run: NOTE }\n"
NAP = "steps:\n  - { id: nap, kind: shell, access: read, run: 'sleep 0.2' }\n"
NAPS = """
steps:
  - id: naps
    kind: map
    over: ${ params.items }
    concurrency: 64
    do: [{ id: one, kind: workflow, ref: fleet_nap }]
params: { items: { type: array, items: { type: integer } } }
"""
#: How a run of each ends, and the effects it has: step → how many.
ENDS = {"fleet_fails": "failed"}
EFFECTS = {
    "fleet_reads": {"first": 1, "last": 1},
    "fleet_writes": {"book": 1, "again": 1},
    "fleet_map": {"item": 5},
    "fleet_parent": {"after": 1},
    "fleet_kid": {"within": 1},
    "fleet_places": {"shared": 1},
    "fleet_fails": {"breaks": 1, "tidy": 1},
}
#: Effects that happen once however often workers die.
ONCE = {("fleet_writes", "book")}


def text_of(name: str, body: str, log: Path) -> bytes:
    note = _NOTE.replace("LOG", str(log))
    body = body.replace("NOTE_INNER", note).replace("run: NOTE", f"run: '{note}'")
    return f"format: 1\nname: {name}\n{body}".encode()


def publish_all(log: Path) -> None:
    from workflows.operations.workflows import publish_file

    for name, body in {"fleet_kid": KID, "fleet_nap": NAP, **WORKFLOWS, "fleet_naps": NAPS}.items():
        publish_file(text_of(name, body, log), created_by="fleet")


def start_runs(count: int) -> list[int]:
    """So many runs, of each workflow in turn."""
    names = list(WORKFLOWS)
    return [start_run(names[number % len(names)]) for number in range(count)]


def start_run(name: str, **params: Any) -> int:
    from workflows.operations.people import Actor
    from workflows.operations.runs import Start, start
    from workflows.operations.workflows import named_definition

    actor = Actor(name="fleet", recorded="fleet")
    return start(Start(definition=named_definition(name), actor=actor, given=params)).run_id


def effects_in(log: Path) -> dict[tuple[int, str], list[str]]:
    """The dispatch ids of every effect that began, by run and step."""
    found: dict[tuple[int, str], list[str]] = defaultdict(list)
    for line in log.read_text().splitlines() if log.exists() else ():
        run, step, index, dispatch = line.split()
        found[int(run), step].append(f"{index}/{dispatch}")
    return found


def reconcile_by_log(log: Path) -> int:
    """Decide every interrupted write as a person would: by what its own log shows. How many were decided."""
    from workflows.models import Attempt, Scope
    from workflows.operations.people import Actor
    from workflows.operations.reconciling import Told, reconcile

    noted = effects_in(log)
    decided = 0
    waiting = Scope.objects.filter(phase="waiting", waits_for="reconcile").values_list("run_id", "visit", "step")
    for run, visit, step in list(waiting):
        attempt = Attempt.objects.filter(run_id=run, visit=visit).latest("number")
        happened = f"i/{attempt.dispatch_id}" in noted.get((run, step), ())
        told = Told(decision="happened" if happened else "did_not", reason="Its log shows it.", output="")
        reconcile(run, told, actor=Actor(name="fleet", recorded="fleet"), visit=visit)
        decided += 1
    return decided


def problems_of(runs: list[int], log: Path, *, is_calm: bool) -> list[str]:
    """What is not as promised: ends, effects, places that the dead hold."""
    from workflows.models import Lease, Run, Slot

    noted = effects_in(log)
    rows = Run.objects.filter(pk__in=runs) | Run.objects.filter(root_run__in=runs)
    found = []
    for run, name, status in rows.values_list("pk", "workflow__name", "status"):
        wanted = ENDS.get(name, "succeeded")
        if status != wanted:
            found.append(f"run {run} ({name}) is {status}, not {wanted}")
        for step, times in EFFECTS.get(name, {}).items():
            happened = len(noted.get((run, step), ()))
            if happened < times or (happened > times and (is_calm or (name, step) in ONCE)):
                found.append(f"run {run} ({name}): {step} happened {happened} times, not {times}")
            per_item = Counter(one.partition("/")[0] for one in set(noted.get((run, step), ())))
            if any(number > 1 for number in per_item.values()):
                found.append(f"run {run} ({name}): {step} was repeated under another dispatch id")
    if held := Slot.objects.filter(run__in=rows).count():
        found.append(f"{held} places are held or waited for by runs that have ended")
    if live := Lease.objects.filter(run__in=rows, expires_ms__gt=0).count():
        found.append(f"{live} leases were left")
    return found
