"""Forks, exports and prunings of runs with external work (promises EXT.11, CTL.6, REV.4)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.external.programs import Program, offered, open_offer, taken_over
from tests.support.forks import digest_of, fork_at
from tests.support.players import Player, output_of
from tests.support.rows import assert_sound
from workflows.ledger.inspection import inspect_run
from workflows.ledger.past import Past
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Event, ExternalOffer, Payload, Run
from workflows.operations.exporting import export_run
from workflows.operations.importing import import_document
from workflows.operations.people import Actor
from workflows.operations.pruning import Retention, prune

pytestmark = pytest.mark.django_db(transaction=True)

SHELL = Actor(name="shell:ann", recorded="shell:ann")


def cut_after(run_id: int, type: str) -> int:
    """The revision of the latest event of a type."""
    return int(Event.objects.filter(run_id=run_id, type=type).latest("sequence").revision)


@pytest.mark.parametrize("after", ["run_waiting", "work_reserved"])
def test_a_fork_offers_anew_under_another_key_what_was_not_finished(after: str) -> None:
    """EXT.11, FORK.2"""
    player, program = offered(), Program("a")
    program.reserve(open_offer(player))
    cut = cut_after(player.run_id, after)
    origin = digest_of(player.run_id)
    fork = Player(fork_at(player.run_id, cut).run_id)
    fork.play()
    assert digest_of(player.run_id) == origin
    first, second = Attempt.objects.filter(run=fork.run).order_by("number")
    assert (first.status, second.status) == ("cancelled", "paused")
    assert first.dispatch_id != second.dispatch_id
    own = Program("b")
    assert own.reserve(open_offer(fork)) is not None
    own.finish("of the fork")
    program.finish("of the origin")
    fork.again()
    player.again()
    assert (output_of(fork.run_id)[1], output_of(player.run_id)[1]) == ("of the fork", "of the origin")


def test_a_fork_takes_a_result_that_was_stored_at_the_cut() -> None:
    """EXT.11, EXT.5"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    program.finish("stored")
    cut = cut_after(player.run_id, "work_finished")
    player.again()
    fork = Player(fork_at(player.run_id, cut).run_id)
    fork.play()
    assert output_of(fork.run_id) == ["ok", "stored", 1]
    assert program.finish("stored").run_id == player.run_id


def test_the_past_shows_work_as_it_was() -> None:
    """REV.2"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    cut = cut_after(player.run_id, "work_reserved")
    program.finish("x")
    player.again()
    (attempt,) = Past(player.run_id, cut).attempts(("status",), {1: "external"})
    assert attempt["status"] == "paused"


def exported(run_id: int) -> Any:
    return json.loads("".join(export_run(run_id, actor=SHELL)))


def finished() -> Player:
    """A run whose work was done by the second program that had it."""
    player, _, second = taken_over()
    second.finish("in time")
    player.again()
    return player


def test_an_export_tells_who_did_the_work_and_not_by_which_token() -> None:
    """CTL.6, EXT.10"""
    document = exported(finished().run_id)
    offers = document["runs"][0]["externaloffer"]
    assert [(one["status"], one["worker"], one["token_hash"]) for one in offers] == [
        ("lapsed", "robot 1", ""),
        ("finished", "robot 1", ""),
    ]


def test_an_exported_run_is_imported_with_its_offers() -> None:
    """CTL.6"""
    player = finished()
    imported = import_document(exported(player.run_id), actor=SHELL)
    assert ExternalOffer.objects.filter(run_id=imported.run).count() == 2
    assert inspect_run(imported.run) == []


def test_a_document_of_an_earlier_version_knows_no_offers() -> None:
    document = exported(finished().run_id)
    del document["runs"][0]["externaloffer"]
    imported = import_document(document, actor=SHELL)
    assert ExternalOffer.objects.filter(run_id=imported.run).count() == 0


def test_a_pruned_run_leaves_no_offers_and_no_values() -> None:
    """REV.4"""
    finished()
    inputs = ExternalOffer.objects.first()
    assert inputs is not None
    later = datetime.now(UTC) + timedelta(days=1)
    prune(Retention(older_than_ms=0), actor=SHELL, now=later)
    assert not Run.objects.exists()
    assert not ExternalOffer.objects.exists()
    assert not Payload.objects.filter(digest=inputs.input_digest).exists()


@pytest.mark.unsound
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({"status": "open"}, "offer 1 of v1.1 is open, reserved at"),
        ({"status": "lapsed"}, "offer 1 of v1.1 is lapsed, settled at revision None"),
        ({"attempt": 2}, "v1.1 waits for another program and is not offered"),
        ({"number": 2}, "offers of v1.1 are numbered [2] instead of 1 to 1"),
        ({"digest": "0" * 64}, "offer 1 of v1.1 is reserved with the result none"),
    ],
)
def test_rows_that_do_not_agree_are_found(planted: dict[str, Any], said: str) -> None:
    """REV.3"""
    player = offered()
    Program().reserve(open_offer(player))
    assert_sound()
    ledger_transaction(ExternalOffer.objects.filter(run=player.run).update)(**planted)
    assert any(problem.startswith(said) for problem in inspect_run(player.run_id)), inspect_run(player.run_id)
