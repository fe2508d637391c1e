"""What a person may do to a run, beyond what the commands show (PUB 1, 3, 6; PLAN 2, 4, 5, 6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support import manage, workflow_file
from tests.processes import run_in_threads
from workflows.errors import Refusal
from workflows.functions import Outcome, TaskContext, registry, workflow_task
from workflows.ledger.transactions import run_ledger_transaction
from workflows.models import Event, Plan, Run, Workflow
from workflows.operations import runs
from workflows.operations.people import Actor
from workflows.operations.runs import Start, Started, start
from workflows.operations.workflows import Definition, definition_of_file

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Actor(name="alice", recorded="shell:root as alice")
CALLS = "steps: [{ id: post, kind: task, call: chat.post, with: { text: hi } }]\noutput: ${ steps.post.output }\n"
SIMPLE = (
    "params: { n: { type: integer, default: 1 } }\nsteps: [{ id: a, kind: assign, set: {} }]\noutput: ${ params.n }\n"
)


def definition(folder: Path, text: str) -> Definition:
    return definition_of_file(Path(workflow_file(folder, text)).read_bytes())


@pytest.fixture
def chat() -> Iterator[Callable[..., Any]]:
    """A registered function ``chat.post``."""

    @workflow_task("chat.post", access="read", idempotent=True)
    def post(text: str, context: TaskContext) -> str:
        context.progress("posting")
        return f"{text} from {context.workflow}"

    yield post
    registry.remove("chat.post")


def as_committed(change: Callable[[], object]) -> None:
    """Change a guarded row the way a damaged database would have it."""
    run_ledger_transaction(lambda: change() and None, verb="damage")


def test_the_same_start_at_the_same_instant_is_one_run(tmp_path: Path) -> None:
    wish = Start(definition=definition(tmp_path, SIMPLE), actor=ALICE, key="once")
    answers = run_in_threads(*[lambda: start(wish)] * 4)
    assert all(isinstance(answer, Started) for answer in answers), answers
    assert len({answer.run_id for answer in answers if isinstance(answer, Started)}) == 1
    assert [answer.created for answer in answers if isinstance(answer, Started)].count(True) == 1
    assert Run.objects.count() == 1


def test_a_key_with_other_parameters_names_both_digests(tmp_path: Path) -> None:
    wish = definition(tmp_path, SIMPLE)
    first = start(Start(definition=wish, actor=ALICE, key="k"))
    with pytest.raises(Refusal) as refused:
        start(Start(definition=wish, actor=ALICE, key="k", given={"n": 2}))
    run = Run.objects.get(pk=first.run_id)
    assert refused.value.code == "run.key_conflict"
    assert f"parameters {run.params_digest[:12]} there" in refused.value.message
    assert Run.objects.count() == 1


def test_what_functions_declare_is_frozen_with_the_run(tmp_path: Path, chat: object) -> None:
    started = start(Start(definition=definition(tmp_path, CALLS), actor=ALICE))
    run = Run.objects.get(pk=started.run_id)
    assert json.loads(run.frozen)["functions"] == {"chat.post": {"access": "read", "idempotent": True, "outcomes": []}}
    assert run.started_by == "alice"


def test_a_run_whose_function_is_gone_is_blocked_until_it_is_back(tmp_path: Path, chat: Callable[..., Any]) -> None:
    run = str(start(Start(definition=definition(tmp_path, CALLS), actor=ALICE)).run_id)
    function = registry.get("chat.post")
    assert function is not None
    registry.remove("chat.post")
    blocked = manage("run_workflow", run)
    assert blocked.code == 5
    assert blocked.lines[-3:] == [
        f"run {run} is blocked",
        "  post needs code that this server lacks",
        f"  Install what is missing, then `python manage.py runs resume {run}` and `python manage.py run_workflow {run}`.",
    ]
    assert "chat.post" in Event.objects.get(run_id=run, type="step_parked").payload
    assert (
        manage("runs", "resume", run).out
        == f"run {run}: will be looked at again; `python manage.py run_workflow {run}` goes on with it\n"
    )
    assert manage("run_workflow", run).code == 5
    registry.add(function)
    manage("runs", "resume", run)
    ended = manage("run_workflow", run, "--json")
    assert (ended.code, ended.json["output"]) == (0, "hi from demo")


def test_a_function_may_end_with_an_outcome_of_its_own(tmp_path: Path) -> None:
    @workflow_task("shop.charge", outcomes=("declined",))
    def charge(amount: int) -> object:
        return Outcome("declined", {"limit": 5}) if amount > 5 else amount

    text = (
        "params: { amount: { type: integer } }\nsteps:\n"
        "  - id: charge\n    kind: task\n    call: shop.charge\n    with: { amount: '${ params.amount }' }\n"
        "    next: { declined: refused }\n"
        "  - { id: paid, kind: end, status: succeeded, output: paid }\n"
        "  - { id: refused, kind: end, status: failed, reason: 'Declined.' }\n"
    )
    try:
        file = workflow_file(tmp_path, text)
        assert manage("run_workflow", file, "-P", "amount=5", "--json").json["output"] == "paid"
        declined = manage("run_workflow", file, "-P", "amount=6", "--json").json
        assert (declined["status"], declined["error"]["message"]) == ("failed", "Declined.")
        assert declined["visits"][0]["outcome"] == "declined"
    finally:
        registry.remove("shop.charge")


@pytest.mark.unsound
def test_a_corrupt_plan_is_not_run_but_can_be_listed_and_shown(tmp_path: Path) -> None:
    run = str(start(Start(definition=definition(tmp_path, SIMPLE), actor=ALICE)).run_id)
    as_committed(lambda: Plan.objects.update(document='{"b":1, "a":2}'))
    refused = manage("run_workflow", run, "--json")
    assert refused.code == 5
    assert refused.json["error"]["code"] == "plan.corrupt"
    assert [row["run"] for row in manage("runs", "list", "--json").json] == [int(run)]
    assert manage("runs", "show", run, "--json").json["visits"] == []
    assert Event.objects.filter(run_id=run).count() == 1


def test_a_run_of_an_engine_that_is_not_known_waits_untouched(tmp_path: Path) -> None:
    run = start(Start(definition=definition(tmp_path, SIMPLE), actor=ALICE)).run_id
    as_committed(lambda: Run.objects.update(engine_version=99))
    answer = manage("run_workflow", str(run))
    assert answer.code == 75
    assert answer.err.splitlines() == [
        f"error: Run {run} was published by engine version 99, which this worker does not know.",
        "hint: Let a newer worker drive it.",
    ]
    assert Run.objects.get().revision == 1


def test_the_start_event_carries_ids_and_status_only(tmp_path: Path) -> None:
    started = start(Start(definition=definition(tmp_path, SIMPLE), actor=ALICE, title="Secret", given={"n": 42}))
    event = Event.objects.get(run_id=started.run_id)
    assert set(json.loads(event.payload)) == {"plan", "status", "workflow"}


@pytest.mark.parametrize("broken", ["Plan.objects", "Run.objects", "Event.objects"])
def test_a_failure_during_the_start_leaves_no_part_of_a_run(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wish = Start(definition=definition(tmp_path, SIMPLE), actor=ALICE)
    model = {"Plan.objects": Plan, "Run.objects": Run, "Event.objects": Event}[broken]

    def fail(**columns: object) -> None:
        raise RuntimeError("the process dies here")

    monkeypatch.setattr(model.objects, "create", fail)
    with pytest.raises(RuntimeError, match=r"^the process dies here$"):
        start(wish)
    assert (Run.objects.count(), Event.objects.count()) == (0, 0)
    assert Workflow.objects.count() == (0 if model is Plan else 1)


def test_cancelling_a_finished_run_is_refused(tmp_path: Path) -> None:
    run = start(Start(definition=definition(tmp_path, SIMPLE), actor=ALICE)).run_id
    manage("run_workflow", str(run))
    with pytest.raises(Refusal, match=rf"^Run {run} is already succeeded\.$"):
        runs.cancel(run, actor=ALICE)


def test_a_run_that_was_never_driven_is_cancelled_at_once(tmp_path: Path) -> None:
    run = start(Start(definition=definition(tmp_path, SIMPLE), actor=ALICE)).run_id
    assert manage("runs", "cancel", str(run), "--json").json[0]["status"] == "cancelled"
    assert manage("runs", "show", str(run), "--json").json["visits"] == []
