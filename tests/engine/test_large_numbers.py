"""Numbers that are whole and larger than 2^53 - 1 were doubles when they were stored, and are again (SET.5)."""

from __future__ import annotations

import pytest

from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import assert_sound

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = workflow(
    """
  - { id: a, kind: shell, access: read, run: x }
  - { id: b, kind: shell, access: read, run: x, env: { A: "${ steps.a.output }" } }
""",
    after='output: ["${ steps.a.output[0] > 1.0 }", "A is ${ steps.a.output }"]',
)


@pytest.mark.parametrize("takeover", [0, 2])
def test_a_large_number_in_an_output_is_read_as_it_was_stored(takeover: int) -> None:
    """SET.5"""
    player = Player(publish_run(TEXT), {"a": ok([1e17])}, takeover=takeover)
    assert player.play().status == "succeeded"
    assert output_of(player.run_id) == [True, "A is [100000000000000000]"]
    assert_sound(player.run_id)
