"""Faults planted with bare SQL, behind the back of every guard: each is found by name, and nothing else is (REV.3)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from tests.commands.support import manage
from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, play
from tests.support.worlds import publish_in_line, publish_parent
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.models import Attempt, Fanout, Run, Scope, Visit
from workflows.operations.checking import check_ledger
from workflows.statuses import ControlKind

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")
MAP = workflow(
    "  - { id: each, kind: map, over: [1, 2, 3], join: settled, do: [{ id: work, kind: shell, run: x, workspace: none }] }",
    after="output: '${ steps.each.output }'",
    name="mapped",
)
ASKS = workflow("  - { id: ask, kind: approval, ask: Well }", name="asks")
HOLDS = workflow("  - { id: ask, kind: question, ask: Well }", name="holds")
TWO = workflow("""
  - { id: one, kind: shell, run: make }
  - { id: two, kind: shell, run: make }
""")


class World:
    """Runs of every shape, whose numbers stand in the places of the planted statements."""

    def __init__(self) -> None:
        self.two = publish_run(TWO)
        hand = Hand(self.two)
        hand.step()
        hand.step({"v1.1": ok("an output", log="a log")})
        send(run_id=self.two, kind=ControlKind.PAUSE, payload={}, request_id="r", sender="bob", now=START)
        self.mapped = publish_run(MAP)
        play(self.mapped, {"work": lambda admission: bad() if admission.scope.index == 1 else ok("fine")})
        self.asks = publish_run(ASKS)
        Player(self.asks).play()
        reply = Reply(voter="ann", recorded_by="ann", decision="approved")
        answer(run_id=self.asks, visit=1, reply=reply, now=START)
        self.asks_open = publish_run(ASKS)
        Player(self.asks_open).play()
        self.parent = publish_parent(PARENT, KID)
        Player(self.parent).play()
        self.kid = Run.objects.get(parent_run_id=self.parent).pk
        self.holds = publish_in_line(HOLDS, "the key").run_id
        play(self.holds)

    def names(self) -> dict[str, Any]:
        numbers = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        return numbers | {
            "output": Visit.objects.get(run_id=self.two, number=1).output_digest,
            "log": Attempt.objects.get(run_id=self.two, visit=1).log_digest,
            "list": Fanout.objects.get(run_id=self.mapped).items_digest,
            "detail": Visit.objects.get(run_id=self.mapped, number=1).detail_digest,
            "item": Scope.objects.get(run_id=self.mapped, index=0).output_digest,
            "plan": Run.objects.get(pk=self.two).plan_id,
            "plan_of_kid": Run.objects.get(pk=self.kid).plan_id,
            "workflow": Run.objects.get(pk=self.two).workflow_id,
        }


@pytest.fixture
def world() -> World:
    made = World()
    assert [one for one in check_ledger() if one.problems] == []
    return made


#: Name, statements, and what is found: the run (by its name in the world) and the sentences.
PLANTED: list[tuple[str, str, dict[str, list[str]]]] = [
    (
        "an event that is gone",
        "DELETE FROM workflows_event WHERE run_id = {asks_open} AND sequence = 1",
        {
            "asks_open": [
                "events are numbered [2, 3] instead of 1 to 2",
                "the next event is 4, but there are 2",
                "revisions without an event: [1]; events beyond revision 2: []",
            ]
        },
    ),
    (
        "an event that is not JSON",
        "UPDATE workflows_event SET payload = 'no' WHERE run_id = {two} AND sequence = 2",
        {"two": ["the payload of event 2 is not JSON"]},
    ),
    (
        "an event of a visit that never was",
        "UPDATE workflows_event SET visit = 9, attempt = NULL WHERE run_id = {two} AND sequence = 5",
        {"two": ["event 5 is about v9, which does not exist"]},
    ),
    (
        "an end that no row shows",
        "UPDATE workflows_event SET type = 'run_failed' WHERE run_id = {two} AND sequence = 5",
        {
            "two": [
                "the messages are not those that the events say were accepted",
                "the run is running, but its events say that it is failed",
            ]
        },
    ),
    (
        "a revision counter ahead",
        "UPDATE workflows_run SET revision = revision + 1 WHERE id = {asks_open}",
        {"asks_open": ["revisions without an event: [3]; events beyond revision 3: []"]},
    ),
    (
        "a status without a version",
        "UPDATE workflows_run SET status = 'blocked' WHERE id = {two}",
        {"two": ["run : status is 'blocked', its newest version says 'running'"]},
    ),
    (
        "variables without a version",
        """UPDATE workflows_scopevars SET "values" = '{{"n":1}}' WHERE run_id = {two}""",
        {"two": ["""scopevars : values is '{{"n":1}}', its newest version says '{{}}'"""]},
    ),
    (
        "a version that is not JSON",
        """UPDATE workflows_rowversion SET row = '[' WHERE run_id = {two} AND "table" = 'scopevars'""",
        {
            "two": [
                "version of scopevars  at revision 1 is not JSON",
                "scopevars  has no version of values",
                "its history cannot be checked: JSONDecodeError: Expecting value: line 1 column 2 (char 1)",
            ]
        },
    ),
    (
        "a column that is not JSON",
        "UPDATE workflows_attempt SET marks = 'late' WHERE run_id = {two} AND visit = 1",
        {"two": ["attempt row {row} : marks is not JSON: 'late'"]},
    ),
    (
        "a visit in a scope that is not there",
        "UPDATE workflows_visit SET scope = 'nowhere' WHERE run_id = {two} AND number = 1",
        {"two": ["v1 stands in scope nowhere, which does not exist"]},
    ),
    (
        "another result than the attempt was settled with",
        "UPDATE workflows_visit SET exit_code = 3 WHERE run_id = {two} AND number = 1",
        {"two": ["v1 does not show the result that v1.1 was settled with"]},
    ),
    (
        "a settlement digest of another result",
        "UPDATE workflows_attempt SET digest = 'x' WHERE run_id = {two} AND visit = 1",
        {"two": ["v1 does not show the result that v1.1 was settled with"]},
    ),
    (
        "a payload with another text",
        "UPDATE workflows_payload SET text = '\"another\"' WHERE digest = '{log}'",
        {"two": ["payload {log} is not what its digest says"]},
    ),
    (
        "a payload with another size",
        "UPDATE workflows_payload SET size = 1 WHERE digest = '{log}'",
        {"two": ["payload {log} is not what its digest says"]},
    ),
    ("a payload that is gone", "DELETE FROM workflows_payload WHERE digest = '{log}'", {"two": ["payload {log} is missing"]}),
    (
        "a list with fewer items than are counted",
        "UPDATE workflows_fanout SET total = 4 WHERE run_id = {mapped}",
        {
            "mapped": [
                "the fan-out of v1 counts 4 items, its list has 3",
                "v1 counts {{'cancelled': 0, 'failed': 1, 'not_started': 0, 'ok': 2, 'total': 3}}, but its items ended as "
                "{{'ok': 2, 'failed': 1, 'cancelled': 0, 'not_started': 1, 'total': 4}}",
            ]
        },
    ),
    (
        "an item of no list",
        "DELETE FROM workflows_fanout WHERE run_id = {mapped}",
        {"mapped": [f"scope each[{index}] is item {index} of nothing" for index in range(3)]},
    ),
    (
        "a plan that does not match its hash",
        "UPDATE workflows_plan SET document = document || ' ' WHERE id = {plan}",
        {"two": ["plan {plan} does not match its hash"], "": ["plan {plan} does not match its hash"]},
    ),
    (
        "a frozen plan of a child that is another one",
        "UPDATE workflows_run SET frozen = '{{\"children\":{{\"kid\":{{\"hash\":\"abc\",\"plan\":{plan_of_kid}}}}}}}' WHERE id = {parent}",
        {"parent": ["the run froze plan {plan_of_kid} as abc, but it is {hash_of_kid}"]},
    ),
    (
        "an answer of nobody",
        "DELETE FROM workflows_vote WHERE run_id = {asks}",
        {
            "asks": [
                "the question v1.1 was answered by ann, of whom there is no vote",
                "the question v1.1 is answered with 0 of 1 approvals",
            ]
        },
    ),
    (
        "an open question of a run that waits for it no more",
        "DELETE FROM workflows_interrupt WHERE run_id = {asks_open}",
        {"asks_open": ["v1.1 is paused without a question"]},
    ),
    (
        "a child that nobody started",
        "UPDATE workflows_run SET invocation_key = 'another' WHERE id = {kid}",
        {
            "parent": ["v1.1 waits for a child run that does not exist"],
            "kid": ["no attempt of v1 of run {parent} started it"],
        },
    ),
    (
        "a child in another tree",
        "UPDATE workflows_run SET root_run_id = {two} WHERE id = {kid}",
        {"kid": ["the run is in the tree of {two}, its parent in that of None"]},
    ),
    (
        "a child at another depth",
        "UPDATE workflows_run SET depth = 4 WHERE id = {kid}",
        {"kid": ["the run is 4 levels deep, its parent 0"]},
    ),
    (
        "an inherited row in a run that is no fork",
        "UPDATE workflows_attempt SET inherited = {true} WHERE run_id = {two} AND visit = 1",
        {"two": ["v1.1 of revision 2 is marked as inherited; the run took over 0 revisions"]},
    ),
    (
        "half a fork",
        "UPDATE workflows_run SET fork_of_id = {asks} WHERE id = {two}",
        {"two": ["the run is a fork of {asks} at revision None"]},
    ),
    (
        "a slot that is lost",
        "DELETE FROM workflows_slot WHERE run_id = {holds}",
        {"holds": ["the run is paused without its slot of the key"]},
    ),
    (
        "a slot of another key",
        "UPDATE workflows_slot SET name = 'another' WHERE run_id = {holds}",
        {"holds": ["the run has a concurrency slot another, but its key is the key"]},
    ),
    (
        "a slot of a run that is over",
        "UPDATE workflows_slot SET run_id = {mapped} WHERE run_id = {holds}",
        {
            "mapped": ["the run is succeeded and has a concurrency slot the key"],
            "holds": ["the run is paused without its slot of the key"],
        },
    ),
    (
        "a lease without an owner",
        "UPDATE workflows_lease SET owner = '' WHERE run_id = {two}",
        {"two": ["the lease ends at {expires} and belongs to nobody"]},
    ),
    (
        "a lease of another epoch",
        "UPDATE workflows_lease SET epoch = 7 WHERE run_id = {two}",
        {"two": ["the lease is at epoch 7, the run at 1"]},
    ),
    (
        "a message with another content",
        "UPDATE workflows_controlmessage SET payload = '{{\"reason\":\"another\"}}' WHERE run_id = {two}",
        {"two": ["message 5 (pause) is not what its digest says"]},
    ),
    (
        "rows of a run that is gone",
        "UPDATE workflows_scopevars SET run_id = 4711 WHERE run_id = {two}",
        {
            "two": ["versions of scopevars , which does not exist"],
            "": ["scopevars has rows of run 4711, which does not exist"],
        },
    ),
    (
        "a current version that was never published",
        "UPDATE workflows_workflow SET current_id = {plan} WHERE id = {workflow}",
        {"": ["the current version of workflow demo is no published version of it"]},
    ),
]  # fmt: skip


def _more_names(world: World) -> dict[str, Any]:
    return {
        **world.names(),
        "true": "TRUE" if connection.vendor == "postgresql" else "1",
        "expires": Run.objects.get(pk=world.two).lease.expires_ms,
        "hash_of_kid": Run.objects.select_related("plan").get(pk=world.kid).plan.hash[:12],
        "row": Attempt.objects.get(run_id=world.two, visit=1).pk,
    }


def plant(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount > 0, "nothing was planted"


@pytest.mark.parametrize(("statement", "found"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED])
def test_a_planted_fault_is_found_by_name_and_nothing_else_is(
    world: World, statement: str, found: dict[str, list[str]]
) -> None:
    """REV.3"""
    names = _more_names(world)
    plant(statement.format(**names))
    told = {one.run: list(one.problems) for one in check_ledger() if one.problems}
    assert told == {
        names.get(run): [sentence.format(**names).replace(" : marks", ": marks") for sentence in sentences]
        for run, sentences in found.items()
    }


@pytest.mark.store("sqlite")
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "UPDATE workflows_visit SET started_at = 'yesterday' WHERE run_id = {two} AND number = 1",
            ": started_at is missing, or cannot be read",
        ),
        (
            "UPDATE workflows_visit SET revision_created = 'early' WHERE run_id = {two} AND number = 1",
            ": revision_created is 'early', which is not of its type",
        ),
        (
            "UPDATE workflows_visit SET outcome = CAST(X'ff' AS TEXT) WHERE run_id = {two} AND number = 1",
            " cannot be read: outcome is not what belongs there",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_a_finding(world: World, statement: str, problem: str) -> None:
    """REV.3: SQLite keeps any value in any column."""
    row = Visit.objects.values_list("pk", flat=True).get(run_id=world.two, number=1)
    plant(statement.format(two=world.two))
    (found,) = (one for one in check_ledger() if one.problems)
    assert found.run == world.two
    assert found.problems == (f"visit row {row}{problem}",)


def test_the_command_names_what_is_wrong_and_exits_with_one(world: World) -> None:
    """REV.3"""
    sound = manage("check_ledger")
    assert (sound.code, sound.out) == (0, "7 runs checked; everything agrees.\n")
    plant(f"UPDATE workflows_lease SET epoch = 7 WHERE run_id = {world.two}")
    plant(f"UPDATE workflows_run SET depth = 4 WHERE id = {world.kid}")
    answer = manage("check_ledger")
    assert answer.code == 1
    assert answer.lines == [
        f"run {world.two}: 1 problem",
        "    the lease is at epoch 7, the run at 1",
        f"run {world.kid}: 1 problem",
        "    the run is 4 levels deep, its parent 0",
        "7 runs checked; problems in 2.",
    ]
    assert manage("check_ledger", str(world.two), "--json").json == {
        "checked": 1,
        "sound": False,
        "runs": [{"run": world.two, "problems": ["the lease is at epoch 7, the run at 1"]}],
        "beside": [],
    }
    assert manage("check_ledger", str(world.asks)).code == 0
    unknown = manage("check_ledger", "4711")
    assert (unknown.code, unknown.err) == (2, "error: There is no run 4711.\n")
