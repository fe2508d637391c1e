"""What people see of external work: who has it, until when, or since when it waits (promises WEB.1, WEB.5)."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from tests.commands.support import manage
from tests.external.programs import Program, offered, open_offer, taken_over
from tests.pages.visitors import LOOK, visitor
from workflows.clock import moment
from workflows.models import ExternalOffer
from workflows.queries.external import offers_of, queues_of
from workflows.queries.why_rows import why_run

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = '<script>alert("x")</script>'


def test_the_reason_says_since_when_nobody_has_the_work_and_then_who_has_it_until_when() -> None:
    """WEB.5"""
    player, program = offered(), Program(name="robot 7")
    offer = open_offer(player)
    (reason,) = why_run(player.run)
    assert reason.sentence == 'label waits in the queue "labelling" for a program that takes it.'
    assert (reason.since, reason.until) == (moment(offer.offered_ms), None)
    told = program.reserve(offer)
    program.renew()
    assert told is not None
    offer.refresh_from_db()
    (reason,) = why_run(player.run)
    assert reason.sentence == 'robot 7 has the work of label, from the queue "labelling", renewed 1 time.'
    assert reason.until == moment(offer.lease_until_ms or 0)
    assert reason.since == moment(offer.reserved_ms or 0)


def test_the_page_of_a_step_shows_its_offers_and_text_of_programs_stays_text() -> None:
    """WEB.1, WEB.5"""
    player, program = offered(), Program(name=HOSTILE)
    client = visitor(*LOOK)
    page = client.get(f"/runs/{player.run_id}/visits/1/").content.decode()
    assert "no program has reserved it" in page
    program.reserve(open_offer(player))
    page = client.get(f"/runs/{player.run_id}/visits/1/").content.decode()
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "it has the work until" in page
    overview = client.get(f"/runs/{player.run_id}/").content.decode()
    assert HOSTILE not in overview
    assert "has the work of label" in overview


def test_the_page_tells_what_came_too_late() -> None:
    """EXT.5"""
    player, _, _ = taken_over()
    assert [(one.number, one.status, one.late_outcome) for one in offers_of(player.run_id, 1)] == [
        (2, "reserved", ""),
        (1, "lapsed", "ok"),
    ]
    page = visitor(*LOOK).get(f"/runs/{player.run_id}/visits/1/").content.decode()
    assert "A result came too late and moved nothing" in page
    assert "offered 2 times" in page


def test_queues_are_listed_with_what_waits_in_them() -> None:
    offered()
    (queue,) = queues_of()
    assert (queue.name, queue.open, queue.reserved) == ("labelling", 1, 0)


def test_the_command_lists_the_queues() -> None:
    assert manage("external", "list").out == "No work waits for other programs.\n"
    player = offered()
    since = moment(open_offer(player).offered_ms)
    Program().reserve(open_offer(player))
    offered()
    said = manage("external", "list").out.splitlines()
    assert said[0].split() == ["QUEUE", "WAITING", "RESERVED", "WAITS", "SINCE"]
    assert said[1].split()[:3] == ["labelling", "1", "1"]
    (queue,) = json.loads(manage("external", "list", "--json").out)
    assert (queue["queue"], queue["open"], queue["reserved"]) == ("labelling", 1, 1)
    assert datetime.fromisoformat(queue["oldest"]) >= since.replace(microsecond=0)


def test_the_command_that_says_why_knows_the_queue() -> None:
    player = offered()
    said = manage("runs", "why", str(player.run_id))
    assert 'waits in the queue "labelling"' in said.out


def test_the_admin_shows_offers_and_no_hash_of_a_token() -> None:
    """EXT.10"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    offer = ExternalOffer.objects.get()
    client = visitor(is_staff=True, is_superuser=True)
    listed = client.get("/admin/workflows/externaloffer/")
    shown = client.get(f"/admin/workflows/externaloffer/{offer.pk}/change/")
    assert (listed.status_code, shown.status_code) == (200, 200)
    assert "robot 1" in listed.content.decode()
    assert offer.token_hash not in shown.content.decode()
