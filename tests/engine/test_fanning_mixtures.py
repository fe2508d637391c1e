"""Random workflows under random orders, deaths and cancels: the same end, one story in the rows, nothing left over."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime

import pytest

from tests.engine.test_stopping import assert_nothing_is_left
from tests.support.kinds import bad
from tests.support.mixtures import Mixture, MixturePlayer, end_of
from tests.support.plans import publish_run
from tests.support.rows import assert_sound
from workflows.ledger.controlling import send
from workflows.models import Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

#: How many mixtures are tried; WAYPOST_TEST_MIXTURES asks for more.
SEEDS = range(int(os.environ.get("WAYPOST_TEST_MIXTURES", "10")))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_ends_the_same_in_any_order_and_whoever_dies(seed: int) -> None:
    """ADM 3, 5, CHD.2, INT.3"""
    text = Mixture(seed).text
    undisturbed = end_of(text)
    assert undisturbed[0] in ("succeeded", "failed")
    assert_sound()
    disturbed = end_of(text, random.Random(seed))
    assert disturbed == undisturbed
    assert_sound()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cancel_at_any_moment_leaves_nothing(seed: int) -> None:
    """CTL.3, INT.7, MON.10"""
    draw = random.Random(seed)
    player = MixturePlayer(publish_run(Mixture(seed).text), disturb=draw)
    if player.play_through(moves=draw.randint(0, 12)).closing:
        return  # too late to be cancelled
    now = datetime.now(UTC)
    send(run_id=player.run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=now)
    if player.run.lease.expires_ms:
        player.hand.reload()
    else:
        player.hand = player.take()
    decision = player.step()
    while not decision.draft.ended:
        decision = player.step({name: bad("cancelled", "stopped") for name in player.running()[:1]})
    assert player.run.status == "cancelled"
    assert Visit.objects.filter(run_id=player.run_id, step="tidy").count() == 1
    assert_nothing_is_left(player.run_id)
