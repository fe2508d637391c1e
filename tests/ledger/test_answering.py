"""Answers: stored before the run goes on, once, by people who saw what is asked (promises INT)."""

from __future__ import annotations

import json
import random
import threading
from datetime import timedelta
from typing import Any

import pytest

from tests.processes import Processes, lines_of
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, error_of, output_of, payload
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, counted, failing_at
from workflows.clock import database_now_ms, unix_ms
from workflows.errors import Refusal
from workflows.ledger.answering import Answered, Reply, answer
from workflows.ledger.reopening import reopen
from workflows.ledger.transactions import database_thread
from workflows.models import Attempt, Event, Interrupt, Run, Scope, Vote

pytestmark = pytest.mark.django_db(transaction=True)

APPROVAL = workflow(
    """
  - { id: pick, kind: shell, run: x }
  - id: ask
    kind: approval
    ask: "Deploy ${ steps.pick.output }?"
    show: { what: "${ steps.pick.output }" }
    quorum: 2
    timeout: 1h
    next: { rejected: continue, expired: continue }
  - { id: after, kind: shell, run: x }
""",
    after='output: ["${ steps.ask.outcome }", "${ steps.ask.output }"]',
)
QUESTION = workflow(
    """
  - id: ask
    kind: question
    ask: "What now?"
    choices: { go: Go, stop: Stop }
    timeout: 1h
    next: { go: continue, stop: continue, expired: continue }
""",
    after='output: ["${ steps.ask.outcome }", "${ steps.ask.output }"]',
)


def parked(text: str) -> Player:
    player = Player(publish_run(text))
    player.play()
    return player


def say(player: Player, who: str, decision: str, visit: int | None = None, **more: Any) -> Answered:
    question = Interrupt.objects.filter(run_id=player.run_id, status="open").first()
    number = visit or (question or Interrupt.objects.filter(run_id=player.run_id).latest("visit")).visit
    known = Interrupt.objects.filter(run_id=player.run_id, visit=number).order_by("-attempt").first()
    assert known is not None
    now_ms = more.pop("now_ms", None)
    values: dict[str, Any] = {
        "voter": who,
        "recorded_by": f"shell:root as {who}",
        "decision": decision,
        "shown_digest": known.shown_digest,
    }
    return answer(
        run_id=player.run_id, visit=number, reply=Reply(**{**values, **more}), now=player.hand.now, now_ms=now_ms
    )


def refused(player: Player, who: str, decision: str, **more: Any) -> Refusal:
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        say(player, who, decision, **more)
    assert all_rows() == before
    return caught.value


# ---- asking ---------------------------------------------------------------------------------------------------------


def test_asking_commits_question_attempt_and_scope_together_and_the_deadline_counts_from_then() -> None:
    """INT.1"""
    player = Player(publish_run(APPROVAL))
    player.step()
    player.settle()
    run = player.run
    question = Interrupt.objects.get(run=run)
    attempt = Attempt.objects.get(run=run, visit=2)
    scope = Scope.objects.get(run=run)
    assert (question.visit, question.attempt, question.kind, question.status) == (2, 1, "approval", "open")
    assert (question.ask, question.quorum) == ("Deploy pick?", 2)
    assert question.shown_digest is not None
    assert payload(question.shown_digest) == [{"name": "what", "value": "pick"}]
    assert (attempt.status, attempt.number) == ("paused", 1)
    assert question.revision_created == attempt.revision_created
    assert (scope.phase, scope.waits_for, scope.visit) == ("waiting", "people", 2)
    assert question.deadline_ms == scope.wake_at_ms == run.wake_at_ms == unix_ms(player.hand.now) + 3_600_000
    assert (run.status, json.loads(run.reasons)[0]["cause"]) == ("paused", "people")
    assert events_of(run.pk)[-2:] == ["question_asked", "run_paused"]
    assert_sound()


# ---- answering ------------------------------------------------------------------------------------------------------


def test_a_quorum_counts_people_and_each_counts_once() -> None:
    """INT.5"""
    player = parked(APPROVAL)
    first = say(player, "ann", "approved", comment="fine")
    assert (first.settled, first.new, first.votes, first.quorum) == (False, True, 1, 2)
    same = say(player, "ann", "approved", comment="fine")
    assert (same.settled, same.new, same.votes) == (False, False, 1)
    changed = refused(player, "ann", "rejected")
    assert changed.code == "interrupt.voted"
    assert changed.message == f"ann has already decided on v2 of run {player.run_id}: approved."
    second = say(player, "bob", "approved", fields={"why": "ok"})
    assert (second.settled, second.votes) == (True, 2)
    assert player.again().status == "succeeded"
    assert output_of(player.run_id) == [
        "approved",
        {"decision": "approved", "by": ["ann", "bob"], "comment": "fine", "form": {"why": "ok"}},
    ]
    assert_sound()


def test_one_rejection_rejects_whatever_the_quorum_is() -> None:
    """INT.5"""
    player = parked(APPROVAL)
    say(player, "ann", "approved")
    rejected = say(player, "bob", "rejected", comment="no")
    assert rejected.settled
    player.again()
    assert output_of(player.run_id) == [
        "rejected",
        {"decision": "rejected", "by": ["bob"], "comment": "no", "form": {}},
    ]
    assert list(Vote.objects.values_list("voter", "decision")) == [("ann", "approved"), ("bob", "rejected")]
    assert_sound()


def test_an_answer_wakes_the_run_and_is_used_exactly_as_it_was_stored() -> None:
    """INT.3"""
    player = parked(QUESTION)
    say(player, "ann", "go", fields={"n": 1})
    assert player.run.wake_at_ms is not None
    assert player.run.wake_at_ms <= database_now_ms()
    assert events_of(player.run_id)[-1] == "question_answered"
    event = Event.objects.filter(run_id=player.run_id).last()
    assert event is not None
    assert (event.actor, event.payload) == ("shell:root as ann", '{"by":"ann"}')
    player.again()
    assert output_of(player.run_id) == ["go", {"n": 1, "by": "ann", "choice": "go"}]
    assert_sound()


def test_a_driver_that_dies_after_the_answer_uses_exactly_it() -> None:
    """INT.3"""
    player = parked(QUESTION)
    say(player, "ann", "stop")
    player.hand = player.take()
    player.die()
    player.step()
    assert output_of(player.run_id)[0] == "stop"
    assert_sound()


def test_the_same_answer_again_succeeds_and_another_is_told_who_was_first() -> None:
    """INT.3"""
    player = parked(QUESTION)
    say(player, "ann", "go", fields={"a": 1, "b": [2]})
    before = all_rows()
    again = say(player, "ann", "go", fields={"b": [2], "a": 1})
    assert (again.settled, again.new) == (True, False)
    assert all_rows() == before
    for who, decision in (("bob", "go"), ("ann", "stop")):
        late = refused(player, who, decision)
        assert late.code == "interrupt.answered"
        assert (late.data["by"], late.data["interrupt"]) == ("ann", "v1")
    player.again()
    before = all_rows()
    assert not say(player, "ann", "go", fields={"a": 1, "b": [2]}, visit=1).new
    assert all_rows() == before
    assert refused(player, "bob", "go", visit=1).code == "interrupt.answered"


def test_an_answer_to_what_was_never_asked_is_refused() -> None:
    player = parked(QUESTION)
    before = all_rows()
    reply = Reply(voter="ann", recorded_by="ann", decision="go")
    for run_id, visit, code in ((player.run_id, 7, "interrupt.not_found"), (999_999, 1, "run.not_found")):
        with pytest.raises(Refusal) as caught:
            answer(run_id=run_id, visit=visit, reply=reply, now=START)
        assert caught.value.code == code
    assert all_rows() == before


def test_an_answer_to_other_data_than_is_shown_is_refused() -> None:
    """INT.5"""
    player = parked(APPROVAL)
    for seen in (None, "f" * 64):
        changed = refused(player, "ann", "approved", shown_digest=seen)
        assert changed.code == "interrupt.changed"
    assert say(player, "ann", "approved").new


def test_an_answer_to_another_asking_than_was_looked_at_is_refused() -> None:
    """INT.7"""
    player = parked(APPROVAL)
    before = all_rows()
    assert refused(player, "ann", "approved", attempt=2).code == "interrupt.changed"
    assert all_rows() == before
    assert say(player, "ann", "approved", attempt=1).new


def test_an_answer_is_all_or_nothing() -> None:
    """INT.3"""
    for text, decision in ((QUESTION, "go"), (APPROVAL, "approved")):
        undisturbed = parked(text)
        with counted() as seen:
            say(undisturbed, "ann", decision)
        player = parked(text)
        before = all_rows()
        failed = 0
        for number in range(1, 60):
            try:
                with failing_at(number):
                    say(player, "ann", decision)
            except Injected:
                failed += 1
                assert all_rows() == before
            else:
                break
        assert failed == len(seen)


# ---- deadlines ------------------------------------------------------------------------------------------------------


def test_the_deadline_before_the_answer_expires_the_question_once() -> None:
    """INT.3, INT.8"""
    player = parked(APPROVAL)
    say(player, "ann", "approved")
    player.pass_time(3_600_000)
    run = player.again()
    assert (run.status, output_of(player.run_id)) == ("succeeded", ["expired", None])
    question = Interrupt.objects.get(run=run)
    assert (question.status, question.answer, question.answered_by) == ("expired", "", "")
    late = refused(player, "bob", "approved", visit=2)
    assert (late.code, late.message) == (
        "interrupt.closed",
        f"v2 of run {player.run_id} is closed: its deadline has passed.",
    )
    assert Attempt.objects.get(run=run, visit=2).status == "cancelled"
    assert_sound()


def test_an_answer_after_the_deadline_is_refused_although_no_driver_has_noticed() -> None:
    """INT.3: live until its deadline, over exactly at it."""
    player = parked(QUESTION)
    deadline = Interrupt.objects.get(run_id=player.run_id).deadline_ms
    assert deadline is not None
    late = refused(player, "ann", "go", now_ms=deadline)
    assert late.code == "interrupt.closed"
    assert say(player, "ann", "go", now_ms=deadline - 1).settled


def test_an_answer_in_time_counts_although_its_driver_comes_after_the_deadline() -> None:
    """INT.3, INT.8"""
    player = parked(QUESTION)
    say(player, "ann", "go")
    player.pass_time(7_200_000)
    player.again()
    assert output_of(player.run_id)[0] == "go"
    assert_sound()


def test_a_driver_that_decided_to_expire_a_question_meets_the_answer_and_takes_it() -> None:
    """INT.3: the deadline's decision was made, the answer committed first."""
    player = parked(QUESTION)
    player.pass_time(3_600_000)
    player.hand = player.take()
    decision = player.hand.decide()
    assert decision.draft.interrupts[1].status == "expired"
    say(player, "ann", "go")
    with pytest.raises(Refusal) as caught:
        player.hand.write(player.hand.batch(decision))
    assert caught.value.code == "run.conflict"
    player.hand.reload()
    player.step()
    assert output_of(player.run_id)[0] == "go"
    assert_sound()


def test_an_unrouted_expiry_fails_the_run() -> None:
    player = parked(workflow('  - { id: ask, kind: approval, ask: "Well?", timeout: 1m }'))
    player.pass_time(60_000)
    assert player.again().status == "failed"
    message = 'The outcome "expired" of "ask" leads to fail.'
    assert error_of(player.run_id) == {"code": "expired", "step": "ask", "message": message}


def test_a_question_expires_after_seven_days_unless_it_says_otherwise() -> None:
    player = parked(workflow('  - { id: ask, kind: question, ask: "Well?" }'))
    deadline = unix_ms(player.hand.now + timedelta(days=7))
    assert Interrupt.objects.get(run_id=player.run_id).deadline_ms == deadline


# ---- asking anew ----------------------------------------------------------------------------------------------------


def test_a_new_visit_asks_anew_and_an_old_answer_never_answers_it() -> None:
    """INT.7"""
    player = parked(
        workflow(
            """
  - id: ask
    kind: question
    ask: "Round ${ vars.n }?"
    choices: [again, enough]
    max_visits: 3
    next: { again: count, enough: done, exhausted: fail }
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" }, next: ask }
""",
            before="vars: { n: 1 }",
            after='output: ["${ steps.ask.visits }", "${ steps.ask.output }"]',
        )
    )
    say(player, "ann", "again")
    assert player.again().status == "paused"
    assert refused(player, "bob", "enough", visit=1).code == "interrupt.answered"
    say(player, "bob", "enough")
    player.again()
    assert output_of(player.run_id) == [2, {"by": "bob", "choice": "enough"}]
    asked = Interrupt.objects.filter(run_id=player.run_id).values_list("visit", "ask", "status")
    assert list(asked) == [(1, "Round 1?", "answered"), (3, "Round 2?", "answered")]
    assert_sound()


# ---- many at once ---------------------------------------------------------------------------------------------------

PARALLEL = workflow(
    """
  - id: each
    kind: map
    over: ${ params.names }
    concurrency: 64
    do: [{ id: ask, kind: question, ask: "${ item }?" }]
    collect: "${ item + '=' + steps.ask.output.answer + ' ' + steps.ask.output.by }"
""",
    before="params: { names: { type: array, items: { type: string } } }",
    after="output: ${ steps.each.output }",
)


def test_fifty_questions_are_answered_in_random_order_by_several_threads() -> None:
    """INT.2, EVT.1"""
    names = [f"q{number}" for number in range(50)]
    player = Player(publish_run(PARALLEL, {"names": names}))
    player.play()
    asked = dict(Interrupt.objects.filter(run_id=player.run_id).values_list("visit", "ask"))
    assert len(asked) == 50
    order = random.Random(50)
    failures: list[BaseException] = []
    shuffled = order.sample(list(asked), 50)
    shares = [shuffled[number::4] for number in range(4)]

    def work(number: int) -> None:
        try:
            with database_thread():
                for visit in shares[number]:
                    reply = Reply(
                        voter=f"p{number}", recorded_by="x", decision="answered", fields={"answer": asked[visit][:-1]}
                    )
                    assert answer(run_id=player.run_id, visit=visit, reply=reply, now=START, now_ms=0).settled
        except BaseException as error:  # shown by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert player.again().status == "succeeded"
    by = {visit: f"p{number}" for number, share in enumerate(shares) for visit in share}
    wanted = [f"{ask[:-1]}={ask[:-1]} {by[visit]}" for visit, ask in sorted(asked.items())]
    assert output_of(player.run_id) == wanted
    assert_sound()


ANSWERS = """
import random, sys
from datetime import UTC, datetime
from workflows.ledger.answering import Reply, answer
run_id, who, *visits = sys.argv[1:]
sys.stdin.readline()
for visit in visits:
    reply = Reply(voter=who, recorded_by=who, decision="answered", fields={"answer": "a" + visit})
    assert answer(run_id=int(run_id), visit=int(visit), reply=reply, now=datetime.now(UTC), now_ms=0).settled
print("done", flush=True)
"""


def test_fifty_questions_are_answered_in_random_order_by_several_processes(processes: Processes) -> None:
    """INT.2, DB.1"""
    player = Player(publish_run(PARALLEL, {"names": [f"q{number}" for number in range(50)]}))
    player.play()
    visits = list(Interrupt.objects.filter(run_id=player.run_id).values_list("visit", flat=True))
    random.Random(7).shuffle(visits)
    started = [
        processes.start_script(ANSWERS, str(player.run_id), f"p{number}", *map(str, visits[number::3]))
        for number in range(3)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [lines_of(process, 1) for process in started] == [["done"]] * 3
    assert player.again().status == "succeeded"
    by = {visit: number % 3 for number, visit in enumerate(visits)}
    wanted = [f"q{place}=a{visit} p{by[visit]}" for place, visit in enumerate(sorted(visits))]
    assert output_of(player.run_id) == wanted
    assert_sound()


def test_two_people_answer_one_question_at_the_same_moment_and_one_wins() -> None:
    """INT.3"""
    player = parked(QUESTION)
    barrier = threading.Barrier(2)
    said: dict[str, str] = {}

    def work(who: str, decision: str) -> None:
        with database_thread():
            barrier.wait()
            try:
                say(player, who, decision, visit=1)
                said[who] = "won"
            except Refusal as refusal:
                said[who] = refusal.code

    threads = [threading.Thread(target=work, args=words) for words in (("ann", "go"), ("bob", "stop"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said.values()) == ["interrupt.answered", "won"]
    winner = next(who for who, what in said.items() if what == "won")
    assert Interrupt.objects.get(run_id=player.run_id).answered_by == winner
    assert Vote.objects.count() == 1
    player.again()
    assert output_of(player.run_id)[1]["by"] == winner
    assert Run.objects.get(pk=player.run_id).status == "succeeded"
    assert_sound()


def test_a_run_that_was_reopened_asks_anew() -> None:
    """INT.7, ABR.2"""
    player = parked(workflow('  - { id: ask, kind: approval, ask: "Well?" }', after='output: "${ steps.ask.outcome }"'))
    say(player, "ann", "rejected")
    assert player.again().status == "failed"
    reopen(run_id=player.run_id, actor="bob", reason="asked the wrong one", now=player.hand.now)
    assert player.again().status == "paused"
    asked = Interrupt.objects.filter(run_id=player.run_id).values_list("visit", "attempt", "status")
    assert list(asked) == [(1, 1, "answered"), (1, 2, "open")]
    say(player, "ann", "approved")
    assert player.again().status == "succeeded"
    assert output_of(player.run_id) == "approved"
    assert_sound()
