"""Inspection finds every kind of disagreement between the rows of a run (promise REV 1, 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.plans import START, publish_run, workflow
from tests.support.scenarios import SCENARIOS
from workflows.ledger.advance import advance
from workflows.ledger.controlling import send
from workflows.ledger.inspection import inspect_run
from workflows.ledger.transactions import ledger_transaction
from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    Lease,
    Payload,
    RowVersion,
    Run,
    Scope,
    ScopeVars,
    Visit,
)
from workflows.statuses import ControlKind

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

TEXT = workflow("""
  - { id: one, kind: shell, run: make }
  - { id: two, kind: shell, run: make }
""")


@pytest.fixture
def run_id() -> int:
    """v1 settled with an output, v2 running."""
    made = publish_run(TEXT)
    hand = Hand(made)
    hand.step()
    hand.step({"v1.1": ok("an output")})
    send(run_id=made, kind=ControlKind.STEER, payload={}, request_id="r", sender="bob", now=START)
    assert inspect_run(made) == []
    return made


@ledger_transaction
def tamper(change: Callable[[int], Any], run_id: int) -> None:
    change(run_id)


def visit(number: int) -> Any:
    return lambda run: Visit.objects.filter(run_id=run, number=number)


TAMPERED: list[tuple[str, Callable[[int], Any], list[str]]] = [
    (
        "an event is missing",
        lambda run: Event.objects.filter(run_id=run, sequence=3).delete(),
        [
            "events are numbered [1, 2, 4, 5] instead of 1 to 4",
            "the next event is 6, but there are 4",
            "revisions without an event: [3]; events beyond revision 5: []",
            "v1.1 is succeeded and has 0 events that say so",
        ],
    ),
    (
        "an event of a revision to come",
        lambda run: Event.objects.filter(run_id=run, sequence=5).update(revision=9),
        ["revisions without an event: [5]; events beyond revision 5: [9]"],
    ),
    (
        "a large event",
        lambda run: Event.objects.filter(run_id=run, sequence=2).update(payload='"' + "x" * 8192 + '"'),
        ["the payload of event 2 has more than 8 KiB"],
    ),
    (
        "a status changed without a version",
        lambda run: Run.objects.filter(pk=run).update(status="blocked"),
        ["run : status is 'blocked', its newest version says 'running'"],
    ),
    (
        "variables changed without a version",
        lambda run: ScopeVars.objects.filter(run_id=run).update(values='{"n":1}'),
        ["""scopevars : values is '{"n":1}', its newest version says '{}'"""],
    ),
    (
        "the first version is missing",
        lambda run: RowVersion.objects.filter(run_id=run, table="scopevars").delete(),
        ["scopevars  has no version of values"],
    ),
    (
        "a version of a row that is not there",
        lambda run: RowVersion.objects.create(run_id=run, revision=2, table="visit", key="7", row="{}"),
        ["versions of visit 7, which does not exist"],
    ),
    (
        "a version of a revision to come",
        lambda run: RowVersion.objects.create(run_id=run, revision=99, table="run", key="", row="{}"),
        ["version of run  at revision 99 of 5"],
    ),
    (
        "a visit not counted",
        lambda run: Run.objects.filter(pk=run).update(visits=1),
        ["the run counts 1 visits, but there are 2"],
    ),
    (
        "a settled visit that is open",
        lambda run: visit(1)(run).update(status="open"),
        [
            "v1 is open, settled at revision 3, ended at 2026-01-31 09:30:00+00:00",
            'v1 is open with outcome "ok"',
            "v1 is open, but no scope is at it",
        ],
    ),
    (
        "a round that is missing",
        lambda run: visit(2)(run).update(round=2),
        ["rounds of two are numbered [2] instead of 1 to 1"],
    ),
    (
        "a refused visit with a round",
        lambda run: visit(1)(run).update(status="refused"),
        ["v1 is refused with round 1"],
    ),
    (
        "a visit settled before it was made",
        lambda run: visit(1)(run).update(revision_created=4),
        ["v1 was created at revision 4 and settled at 3 of 5"],
    ),
    (
        "an attempt that no event ended",
        lambda run: Attempt.objects.filter(run_id=run, visit=2).update(
            status="cancelled", revision_settled=4, ended_at=START
        ),
        ["v2.1 is cancelled and has 0 events that say so", "v2 is in effect and has the running attempts []"],
    ),
    (
        "an attempt that runs though it is settled",
        lambda run: Attempt.objects.filter(run_id=run, visit=1).update(status="running"),
        [
            "v1.1 is running, but its events say that it is settled",
            "v1.1 is running, settled at revision 3",
            "v1 is not in effect and has the running attempts [1]",
        ],
    ),
    (
        "an attempt of an epoch to come",
        lambda run: Attempt.objects.filter(run_id=run, visit=2).update(epoch=9),
        ["v2.1 belongs to epoch 9, but the run is at 1"],
    ),
    (
        "an attempt without its visit",
        lambda run: Attempt.objects.filter(run_id=run, visit=1).update(visit=8),
        [
            "event 2 is about v1.1, which does not exist",
            "event 3 is about v1.1, which does not exist",
            "v8.1 has 0 events that say that it began",
            "v8.1 is succeeded and has 0 events that say so",
            "attempts of v8, which does not exist",
        ],
    ),
    (
        "an effect without an attempt",
        lambda run: Attempt.objects.filter(run_id=run, visit=2).delete(),
        ["event 4 is about v2.1, which does not exist", "v2 is in effect without an attempt"],
    ),
    (
        "a lease of another epoch",
        lambda run: Lease.objects.filter(run_id=run).update(epoch=4),
        ["the lease is at epoch 4, the run at 1"],
    ),
    ("no lease", lambda run: Lease.objects.filter(run_id=run).delete(), ["the run has no lease row"]),
    (
        "a message that is not counted",
        lambda run: ControlMessage.objects.filter(run_id=run).update(consumed_at=START),
        [
            "the run counts 1 messages and 0 carried out, but there are 1 and 1",
            'message 5 (steer) was carried out at 2026-01-31 09:30:00+00:00 by ""',
        ],
    ),
    (
        "a message of another event",
        lambda run: ControlMessage.objects.filter(run_id=run).update(sequence=4),
        ["the messages are not those that the events say were accepted"],
    ),
    (
        "an end time on a live run",
        lambda run: (
            Run.objects.filter(pk=run).update(ended_at=START),
            RowVersion.objects.filter(run_id=run, table="run", revision=1).update(
                row=RowVersion.objects.get(run_id=run, table="run", revision=1).row.replace(
                    '"ended_at":null', f'"ended_at":"{START.isoformat()}"'
                )
            ),
        ),
        ["the run is running and ended at 2026-01-31 09:30:00+00:00"],
    ),
]


@pytest.mark.parametrize(("change", "problems"), [row[1:] for row in TAMPERED], ids=[row[0] for row in TAMPERED])
def test_a_disagreement_is_named(run_id: int, change: Callable[[int], Any], problems: list[str]) -> None:
    """REV.3"""
    tamper(change, run_id)
    assert inspect_run(run_id) == problems


def test_a_payload_that_is_missing_or_changed_is_named(run_id: int) -> None:
    """REV.1"""
    digest = Visit.objects.get(run_id=run_id, number=1).output_digest
    tamper(lambda run: Payload.objects.filter(digest=digest).update(text='"other"'), run_id)
    assert inspect_run(run_id) == [f"payload {digest} is not what its digest says"]
    tamper(lambda run: Payload.objects.filter(digest=digest).delete(), run_id)
    assert inspect_run(run_id) == [f"payload {digest} is missing"]


def test_a_finished_run_with_something_alive_is_named() -> None:
    """LEASE.10"""
    run_id = SCENARIOS["ended"](advance)
    assert inspect_run(run_id) == []

    def revive(run: int) -> None:
        Lease.objects.filter(run_id=run).update(expires_ms=1, owner="somebody")
        Scope.objects.filter(run_id=run).update(phase="ready")

    tamper(revive, run_id)
    assert inspect_run(run_id) == [
        "scope : phase is 'ready', its newest version says 'ended'",
        "the run is succeeded, but its lease was not released",
        "the run is succeeded, but scope (root) is ready",
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_whole_runs_tell_one_story(name: str) -> None:
    """REV.3"""
    assert inspect_run(SCENARIOS[name](advance)) == []


def test_an_unknown_run_is_told() -> None:
    with pytest.raises(Run.DoesNotExist):
        inspect_run(4711)
