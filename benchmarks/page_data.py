"""What the pages are measured with: many runs in every status, and a few runs that are large in one way each.

One run of each kind is played for real; the many are copies of its rows, made by the database in one statement for each
table. Copies hold what lists and pages read, and nothing else is promised of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, models, transaction
from django.db.models import F

from tests.support.hand import Hand, expire
from tests.support.plans import publish_run, store_plan, workflow
from workflows.jsonvalue import store
from workflows.ledger.transactions import ledger_transaction
from workflows.models import AuditEntry, Event, Payload, Run, Visit, Workflow, WorkflowAccess

#: Of 1 000 runs, how many end or wait how.
MIX = {"succeeded": 930, "failed": 40, "paused": 10, "waiting": 10, "blocked": 4, "queued": 6}
STEPS = {
    "succeeded": "  - { id: work, kind: assign, set: { x: 1 } }",
    "failed": "  - { id: work, kind: end, status: failed, message: too few rows }",
    "paused": "  - { id: work, kind: approval, ask: 'Go on?' }",
    "waiting": "  - { id: work, kind: wait, for: 90d }",
    "blocked": "  - { id: work, kind: shell, run: make, access: write }",
    "queued": "  - { id: work, kind: shell, run: make }",
}
WORKFLOWS = 6
LARGE_BYTES = 20 * 1024 * 1024
EVENTS = 20_000
ENTRIES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Numbers of runs: ``long`` of 5 000 visits, ``large`` with a value of 20 MiB, ``eventful`` of many events,
    ``nested`` a list inside of a list; the last ones of the many that ask, are blocked, have failed."""

    long: int
    large: int
    eventful: int
    nested: int
    paused: int
    blocked: int
    failed: int


def make(runs: int, say: Callable[[str], None]) -> Data:
    """An installation of so many runs. ``hidden`` is a workflow that the member ``ann`` does not see."""
    say("large runs")
    large = {"long": long_run(), "large": large_run(), "nested": nested_run()}
    large["eventful"] = eventful_run()
    say(f"{runs} runs")
    last: dict[str, int] = {}
    for number in range(WORKFLOWS):
        for status, share in MIX.items():
            origin = run_that_is(status, f"{'hidden' if number == 0 else 'procedure'}_{number}_{status}")
            last[status] = copies_of(origin, max(1, runs * share // 1_000 // WORKFLOWS))
    say("people, audit, statistics")
    make_people()
    make_entries(ENTRIES)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return Data(paused=last["paused"], blocked=last["blocked"], failed=last["failed"], **large)


# ---- large runs ------------------------------------------------------------------------------------------------------


def long_run() -> int:
    """1 670 items of three visits each, one of which failed."""
    steps = """
  - id: each
    kind: map
    over: ${ params.numbers }
    as: item
    concurrency: 64
    max_items: 5000
    do:
      - { id: double, kind: assign, set: { x: "${ item * 2 }" } }
      - { id: odd, kind: condition, if: "${ item == 7 }", next: { then: fail, else: continue } }
      - { id: last, kind: assign, set: { x: "${ vars.x + 1 }" } }
    vars: { x: 0 }
    join: settled
"""
    return played(publish_run(workflow(steps, before=_NUMBERS, name="long"), {"numbers": list(range(1_670))}))


def nested_run() -> int:
    """40 items of 50 items each."""
    steps = """
  - id: outer
    kind: map
    over: ${ params.numbers }
    as: a
    concurrency: 64
    do:
      - id: inner
        kind: map
        over: ${ range(50) }
        as: b
        concurrency: 64
        do: [{ id: sum, kind: assign, set: { x: "${ a + b }" } }]
        vars: { x: 0 }
"""
    return played(publish_run(workflow(steps, before=_NUMBERS, name="nested"), {"numbers": list(range(40))}))


_NUMBERS = "params: { numbers: { type: array, items: { type: integer } } }\nbudget: { visits: 20000 }"


def large_run() -> int:
    """A run whose step and result are one text of 20 MiB."""
    run = played(publish_run(workflow(STEPS["succeeded"], before="vars: { x: 0 }", name="large")))
    value = store("a line of the text\n" * (LARGE_BYTES // 19))
    put_large(run, value.digest, value.text)
    return run


@ledger_transaction
def put_large(run: int, digest: str, text: str) -> None:
    Payload.objects.create(digest=digest, text=text, size=len(text))
    Run.objects.filter(pk=run).update(output_digest=digest)
    Visit.objects.filter(run_id=run).update(output_digest=digest)


def eventful_run() -> int:
    """A short run with 20 000 events, as one gets that asks a server every second."""
    run = played(publish_run(workflow(STEPS["succeeded"], before="vars: { x: 0 }", name="eventful")))
    last = Event.objects.filter(run_id=run).order_by("-sequence").first()
    assert last is not None
    names, values = columns_of(Event, {"sequence": f"{last.sequence} + n.i"})
    copy(Event, names, values, EVENTS, f"base.id = {last.pk}")
    count_events(run)
    return run


@ledger_transaction
def count_events(run: int) -> None:
    Run.objects.filter(pk=run).update(next_event=F("next_event") + EVENTS)


def played(run: int) -> int:
    """The run at its end; it has no effects."""
    hand = Hand(run)
    while not hand.step().draft.ended:
        pass
    return run


# ---- many runs -------------------------------------------------------------------------------------------------------


def run_that_is(status: str, name: str) -> int:
    """A run in a status, of a published workflow of this name."""
    text = workflow(STEPS[status], before=f"title: Procedure {name}\nvars: {{ x: 0 }}", name=name)
    store_plan(text, private=False)
    run = publish_run(text, title=f"the {status} one")
    if status != "queued":
        hand = Hand(run, now=datetime.now(UTC))
        while not (decided := hand.step()).parks and not decided.draft.ended:
            if status == "blocked":
                expire(run)
                hand = Hand(run, now=datetime.now(UTC))
    assert Run.objects.get(pk=run).status == status
    return run


def copies_of(origin: int, count: int) -> int:
    """So many copies of a run, the last one the newest; its number."""
    first = Run.objects.order_by("-pk").values_list("pk", flat=True)[0]
    moments = ("created_at", "started_at", "ended_at")
    changed = {name: earlier(f"base.{name}", f"({count} - n.i)") for name in moments}
    changed |= {
        "id": f"{first} + n.i",
        "started_by": "CASE n.i % 3 WHEN 0 THEN 'ann' WHEN 1 THEN 'ben' ELSE 'ci' END",
        "title": "base.title || ' ' || n.i",
    }
    names, values = columns_of(Run, changed, with_key=True)
    copy(Run, names, values, count, f"base.id = {origin}")
    for model in apps.get_app_config("workflows").get_models():
        fields = [field.attname for field in model._meta.concrete_fields]
        if model is not Run and "run_id" in fields and model is not AuditEntry:
            names, values = columns_of(model, {"run_id": f"{first} + n.i", **_unique(model)})
            copy(model, names, values, count, f"base.run_id = {origin}")
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{Run._meta.db_table}', 'id'), {first + count})")
    return int(first + count)


def _unique(model: type[models.Model]) -> dict[str, str]:
    """Columns of a copy that no other row may have."""
    names = {field.name for field in model._meta.concrete_fields}
    return {"dispatch_id": "substr(base.dispatch_id, 1, 22) || (1000000000 + n.i)"} if "dispatch_id" in names else {}


def columns_of(
    model: type[models.Model], changed: Mapping[str, str], *, with_key: bool = False
) -> tuple[list[str], list[str]]:
    """Names of the columns of a copy, and the expressions that make them from ``base`` and ``n.i``."""
    names = [
        field.column for field in model._meta.concrete_fields if with_key or not isinstance(field, models.AutoField)
    ]
    return names, [changed.get(name, f'base."{name}"') for name in names]


def copy(model: type[models.Model], names: list[str], values: list[str], count: int, where: str) -> None:
    table = f'"{model._meta.db_table}"'
    columns = ", ".join(f'"{name}"' for name in names)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({columns}) WITH RECURSIVE n(i) AS "  # noqa: S608 - names come from the models
            f"(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
            f"SELECT {', '.join(values)} FROM {table} base CROSS JOIN n WHERE {where}"
        )


def earlier(column: str, minutes: str) -> str:
    """A moment so many minutes before the one of a column, as the database writes it."""
    if connection.vendor == "postgresql":
        return f"{column} - {minutes} * interval '1 minute'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', {column}, '-' || {minutes} || ' minutes')"


# ---- people ----------------------------------------------------------------------------------------------------------


def make_people() -> None:
    """``root`` may do everything; ``ann`` is a member of the team from whom the workflows ``hidden_…`` are hidden."""
    users = get_user_model()._default_manager
    users.create_superuser("root")
    ann = users.create_user("ann")
    ann.groups.set(Group.objects.filter(name__in=("operator", "approver")))
    insiders = Group.objects.create(name="insiders")
    for row in Workflow.objects.filter(name__startswith="hidden_"):
        WorkflowAccess.objects.create(workflow=row, group=insiders)


@ledger_transaction
def make_entries(count: int) -> None:
    """An audit of so many entries."""
    now = datetime.now(UTC)
    AuditEntry.objects.bulk_create(
        [
            AuditEntry(at=now, actor=f"person{number % 20}", action="run.cancel", allowed=number % 9 > 0, run=number)
            for number in range(count)
        ],
        batch_size=2_000,
    )
