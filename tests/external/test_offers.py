"""External work: offered, reserved, renewed, finished; each by one program, and stored before the run goes on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.external.programs import LABELLING, Program, offered, open_offer
from tests.support.hand import Hand
from tests.support.plans import publish_run, workflow
from tests.support.players import error_of, output_of, payload
from tests.support.rows import all_rows, assert_sound, events_of
from workflows.clock import database_now_ms, unix_ms
from workflows.errors import Refusal
from workflows.ledger.advance import advance_plainly
from workflows.ledger.controlling import send
from workflows.ledger.external import lapse, lapsed
from workflows.models import Attempt, AuditEntry, Event, ExternalOffer, Run, Scope, Visit
from workflows.statuses import ControlKind, OfferStatus

pytestmark = pytest.mark.django_db(transaction=True)


def refused(call: Any, *arguments: Any, **more: Any) -> Refusal:
    """The refusal of a call that writes nothing."""
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        call(*arguments, **more)
    assert all_rows() == before
    return caught.value


def lapse_now(offer: ExternalOffer) -> bool:
    """Offer work again at the moment its reservation has ended."""
    offer.refresh_from_db()
    return lapse(offer_id=offer.pk, now=datetime.now(UTC), now_ms=offer.lease_until_ms)


def say(run_id: int, kind: str) -> None:
    send(run_id=run_id, kind=ControlKind(kind), payload={}, request_id=kind, sender="ann", now=datetime.now(UTC))


# ---- offering -------------------------------------------------------------------------------------------------------


def test_offering_commits_attempt_offer_and_scope_together_and_nothing_runs_out_before_a_program_comes() -> None:
    """EXT.1"""
    player = offered()
    offer, attempt = open_offer(player), Attempt.objects.get(run=player.run)
    scope = Scope.objects.get(run=player.run)
    assert (offer.visit, offer.attempt, offer.number, offer.queue, offer.lease_ms) == (1, 1, 1, "labelling", 300_000)
    assert payload(offer.input_digest or "") == {"hosts": ["a", "b"]}
    assert (attempt.status, attempt.number) == ("paused", 1)
    assert offer.revision_created == attempt.revision_created
    assert (scope.phase, scope.waits_for, scope.wake_at_ms) == ("waiting", "external", None)
    assert (player.run.status, player.run.wake_at_ms) == ("waiting", None)
    assert json.loads(player.run.reasons) == [{"cause": "external", "step": "label", "visit": 1}]
    assert Visit.objects.get(run=player.run).access == "write"
    assert_sound()


def test_work_without_input_gives_a_program_null() -> None:
    player = offered(workflow("  - { id: it, kind: external, queue: q }"))
    assert open_offer(player).input_digest is None
    assert open_offer(player).lease_ms == 60_000


def test_an_input_that_cannot_be_computed_fails_the_step() -> None:
    player = offered(workflow('  - { id: it, kind: external, queue: q, input: "${ params.no }" }'))
    assert error_of(player.run_id)["code"] == "bad_expression"
    assert ExternalOffer.objects.count() == 0


# ---- reserving ------------------------------------------------------------------------------------------------------


def test_a_reservation_tells_everything_but_its_token_and_begins_the_timeout() -> None:
    """EXT.2, EXT.6"""
    player, program = offered(), Program()
    now_ms = database_now_ms()
    told = program.reserve(open_offer(player), now_ms=now_ms)
    assert told is not None
    assert (told.run_id, told.step, told.visit, told.attempt, told.queue) == (player.run_id, "label", 1, 1, "labelling")
    assert told.dispatch_id == Attempt.objects.get(run=player.run).dispatch_id
    assert (told.lease_until_ms, told.workflow) == (now_ms + 300_000, "demo")
    offer = ExternalOffer.objects.get(run=player.run)
    assert (offer.status, offer.worker, offer.reserved_by) == ("reserved", "robot 1", "ann (key robots)")
    assert offer.token_hash != program.token
    assert program.token not in json.dumps(all_rows(), default=str)
    assert Scope.objects.get(run=player.run).wake_at_ms == player.run.wake_at_ms == now_ms + 3_600_000
    event = Event.objects.get(run=player.run, type="work_reserved")
    assert (event.actor, json.loads(event.payload)) == ("ann (key robots)", {"offer": 1, "worker": "robot 1"})
    entry = AuditEntry.objects.get(action="external.reserve")
    assert json.loads(entry.data) == {"queue": "labelling", "work": "v1.1", "worker": "robot 1"}


def test_an_offer_goes_to_one_program() -> None:
    """EXT.2"""
    player, first, second = offered(), Program("a"), Program("b")
    offer = open_offer(player)
    assert first.reserve(offer) is not None
    before = all_rows()
    assert second.reserve(offer) is None
    assert all_rows() == before


@pytest.mark.parametrize("kind", ["cancel", "pause"])
def test_nothing_is_given_out_while_a_cancel_or_a_pause_is_pending(kind: str) -> None:
    """EXT.2, CTL.4"""
    player = offered()
    say(player.run_id, kind)
    assert Program().reserve(open_offer(player)) is None


def test_a_held_run_gives_out_no_work_and_takes_the_result_of_what_was_reserved() -> None:
    """EXT.2, CTL.4"""
    both = workflow(
        """
  - id: both
    kind: parallel
    branches:
      one: [ { id: first, kind: external, queue: q } ]
      two: [ { id: second, kind: external, queue: q } ]
"""
    )
    player, program = offered(both), Program()
    one, two = ExternalOffer.objects.order_by("visit")
    program.reserve(one)
    say(player.run_id, "pause")
    player.again()
    assert player.run.held
    assert Program("other").reserve(two) is None
    program.finish("done")
    player.again()
    assert Visit.objects.get(run=player.run, step="first").outcome == "ok"
    assert (player.run.status, open_offer(player).pk) == ("paused", two.pk)


# ---- renewing -------------------------------------------------------------------------------------------------------


def test_renewing_moves_the_end_and_makes_no_revision() -> None:
    """EXT.3"""
    player, program = offered(), Program()
    told = program.reserve(open_offer(player))
    assert told is not None
    revision = player.revision()
    until = program.renew(now=told.lease_until_ms - 1)
    assert until == told.lease_until_ms - 1 + 300_000
    assert player.revision() == revision
    assert ExternalOffer.objects.get().renewals == 1


def test_a_reservation_is_dead_exactly_at_its_end() -> None:
    """EXT.3"""
    player, program = offered(), Program()
    told = program.reserve(open_offer(player))
    assert told is not None
    refusal = refused(program.renew, now=told.lease_until_ms)
    assert (refusal.code, refusal.http_status) == ("offer.lost", 409)
    assert refusal.message == (f"The reservation of v1.1 of run {player.run_id} is lost: it was not renewed in time.")


def test_an_unknown_token_is_told_so() -> None:
    for call in (Program("x").renew, Program("x").finish, Program("").finish):
        refusal = refused(call)
        assert (refusal.code, refusal.http_status) == ("offer.not_found", 404)


# ---- what is not renewed --------------------------------------------------------------------------------------------


def test_work_that_is_not_renewed_is_offered_again_with_the_same_key_and_another_token() -> None:
    """EXT.4"""
    player, first, second = offered(), Program("a"), Program("b", name="robot 2")
    offer = open_offer(player)
    told = first.reserve(offer)
    assert told is not None
    assert lapsed(now_ms=told.lease_until_ms - 1) == []
    assert lapse(offer_id=offer.pk, now=datetime.now(UTC), now_ms=told.lease_until_ms - 1) is False
    assert lapsed(now_ms=told.lease_until_ms) == [offer.pk]
    assert lapse_now(offer) is True
    assert lapse_now(offer) is False
    again = second.reserve(open_offer(player))
    assert again is not None
    assert (again.dispatch_id, again.attempt, again.offer) == (told.dispatch_id, 1, 2)
    second.finish("by the second")
    player.again()
    assert output_of(player.run_id) == ["ok", "by the second", 1]
    assert events_of(player.run_id)[2:6] == ["run_waiting", "work_reserved", "work_lapsed", "work_reserved"]


def test_the_timeout_goes_on_when_work_is_offered_again() -> None:
    """EXT.6"""
    player, program = offered(), Program("a")
    offer = open_offer(player)
    program.reserve(offer)
    ends_ms = player.run.wake_at_ms
    lapse_now(offer)
    Program("b").reserve(open_offer(player))
    assert Scope.objects.get(run=player.run).wake_at_ms == ends_ms == player.run.wake_at_ms


def test_a_result_after_its_lease_is_taken_as_long_as_nobody_else_was_offered_the_work() -> None:
    """EXT.4"""
    player, program = offered(), Program()
    program.reserve(open_offer(player), now_ms=database_now_ms() - 400_000)
    assert program.finish("late, but the first").lost == ""
    player.again()
    assert output_of(player.run_id)[:2] == ["ok", "late, but the first"]


def test_the_result_of_a_displaced_program_moves_nothing_and_is_kept_once() -> None:
    """EXT.5, SET.4"""
    player, first, second = offered(), Program("a"), Program("b")
    offer = open_offer(player)
    first.reserve(offer)
    lapse_now(offer)
    second.reserve(open_offer(player))
    told = first.finish("mine")
    assert (told.lost, told.kept) == ("it was not renewed in time, and the work was offered again", True)
    offer.refresh_from_db()
    assert (offer.status, offer.outcome, payload(offer.output_digest or "")) == ("lapsed", "ok", "mine")
    before = all_rows()
    assert first.finish("mine").kept is True
    assert first.finish("another").kept is False
    assert all_rows() == before
    second.finish("theirs")
    player.again()
    assert output_of(player.run_id)[1] == "theirs"


# ---- finishing ------------------------------------------------------------------------------------------------------


def test_a_result_is_stored_before_the_run_goes_on_with_exactly_it() -> None:
    """EXT.5"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    done = program.finish({"labels": [1, 2]})
    assert (done.new, done.lost, done.visit, done.attempt) == (True, "", 1, 1)
    offer = ExternalOffer.objects.get()
    assert (offer.status, offer.outcome, payload(offer.output_digest or "")) == ("finished", "ok", {"labels": [1, 2]})
    assert Attempt.objects.get().status == "paused"
    assert player.run.wake_at_ms is not None
    player.again()
    assert player.run.status == "succeeded"
    assert output_of(player.run_id) == ["ok", {"labels": [1, 2]}, 1]
    assert events_of(player.run_id)[3:] == [
        "work_reserved",
        "work_finished",
        "step_succeeded",
        "run_closing",
        "run_succeeded",
    ]


def test_the_same_result_again_changes_nothing_and_another_one_is_refused() -> None:
    """EXT.5"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    program.finish({"a": 1, "b": 2})
    before = all_rows()
    assert program.finish({"b": 2, "a": 1}).new is False
    assert all_rows() == before
    player.again()
    assert program.finish({"a": 1, "b": 2}).new is False
    refusal = refused(program.finish, {"a": 2})
    assert (refusal.code, refusal.http_status) == ("attempt.conflict", 409)
    assert refusal.message == "Attempt v1.1 is already settled with another result."
    assert refused(program.renew).data["reason"] == "it is finished"


def test_a_named_outcome_is_routed() -> None:
    """EXT.5"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    program.finish(outcome="unusable")
    player.again()
    assert output_of(player.run_id)[0] == "unusable"


# ---- failing, retries, timeout ---------------------------------------------------------------------------------------


def test_a_failure_is_repeated_by_the_policy_as_a_new_attempt_under_a_new_key() -> None:
    """EXT.7"""
    player, program = offered(), Program("a")
    first = program.reserve(open_offer(player))
    program.fail("No light.")
    player.again()
    assert Scope.objects.get(run=player.run).waits_for == "retry"
    player.pass_time(2_000)
    player.again()
    second = Program("b").reserve(open_offer(player))
    assert first is not None
    assert second is not None
    assert (second.attempt, second.visit) == (2, 1)
    assert second.dispatch_id != first.dispatch_id
    attempt = Attempt.objects.get(number=1)
    assert json.loads(attempt.error) == {"code": "task_error", "message": "No light."}


def test_a_failure_that_is_not_to_be_repeated_ends_the_visit() -> None:
    """EXT.7"""
    player, program = offered(), Program("a")
    program.reserve(open_offer(player))
    program.fail("Never.", retryable=False)
    player.again()
    assert (player.run.status, output_of(player.run_id)) == ("succeeded", ["failed", None, 1])


def test_the_timeout_counts_from_the_first_reservation_and_an_uncertain_try_keeps_its_key() -> None:
    """EXT.6, ADM.7"""
    player, program = offered(), Program("a")
    player.pass_time(7_200_000)
    first = program.reserve(open_offer(player), now_ms=unix_ms(player.hand.now))
    assert player.run.wake_at_ms == unix_ms(player.hand.now) + 3_600_000
    player.pass_time(3_600_000)
    player.again()
    attempt = Attempt.objects.get(number=1)
    assert (attempt.status, attempt.outcome, json.loads(attempt.error)["code"]) == ("failed", "timed_out", "timeout")
    told = program.finish("late")
    assert (told.lost, told.kept) == ("the timeout of the step has passed", True)
    player.pass_time(2_000)
    player.again()
    second = Program("b").reserve(open_offer(player))
    assert first is not None
    assert second is not None
    assert (second.attempt, second.dispatch_id) == (2, first.dispatch_id)


def test_without_a_retry_the_timeout_is_the_outcome() -> None:
    """EXT.6"""
    text = workflow("  - { id: it, kind: external, queue: q, timeout: 1m, next: { timed_out: continue } }")
    player, program = offered(text), Program()
    program.reserve(open_offer(player), now_ms=unix_ms(player.hand.now))
    player.pass_time(60_000)
    player.again()
    assert player.run.status == "succeeded"
    assert Visit.objects.get().outcome == "timed_out"
    assert ExternalOffer.objects.get().status == OfferStatus.WITHDRAWN


# ---- ending it ------------------------------------------------------------------------------------------------------


def test_a_cancel_withdraws_the_offer_and_the_program_is_told() -> None:
    """EXT.8"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    say(player.run_id, "cancel")
    player.again()
    assert (player.run.status, Attempt.objects.get().status) == ("cancelled", "cancelled")
    assert refused(program.renew).data["reason"] == "the step was stopped"
    assert program.finish("late").kept is True
    assert player.run.status == "cancelled"
    assert_sound()


def test_both_ways_of_writing_offer_the_same() -> None:
    rows = []
    for write in (None, advance_plainly):
        hand = Hand(publish_run(LABELLING), **({} if write is None else {"write": write}))
        hand.step()
        rows.append(ExternalOffer.objects.filter(run_id=hand.run_id).values().get())
    for row in rows:
        del row["id"], row["run_id"]
    assert rows[0] == rows[1]
    assert Run.objects.filter(status="waiting").count() == 2
