"""``external``: what a step gives to a program, with its defaults."""

from __future__ import annotations

import pytest

from tests.external.programs import offered
from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, error_of
from workflows.models import ExternalOffer, Visit
from workflows.steps import KINDS
from workflows.steps.external import ExternalKind

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_kind_is_registered() -> None:
    assert isinstance(KINDS["external"], ExternalKind)


@pytest.mark.parametrize(("written", "access"), [("", "write"), (", access: read", "read")])
def test_it_is_a_write_unless_the_file_says_otherwise(written: str, access: str) -> None:
    offered(workflow(f"  - {{ id: it, kind: external, queue: q{written} }}"))
    assert Visit.objects.get().access == access


def test_the_timeout_may_be_computed() -> None:
    offered(workflow("  - { id: it, kind: external, queue: q, timeout: \"${ string(2) + 'm' }\" }"))
    assert ExternalOffer.objects.get().timeout_ms == 120_000


def test_a_timeout_that_is_none_fails_the_step() -> None:
    player = offered(workflow("  - { id: it, kind: external, queue: q, timeout: \"${ 'soon' }\" }"))
    assert error_of(player.run_id)["code"] == "bad_expression"


def test_an_input_that_is_too_large_fails_the_step() -> None:
    text = workflow(
        """
  - { id: big, kind: shell, run: x }
  - { id: it, kind: external, queue: q, input: ["${ steps.big.output }", "${ steps.big.output }"] }
"""
    )
    player = Player(publish_run(text), {"big": ok("x" * 600_000)})
    player.play()
    assert error_of(player.run_id)["code"] == "bad_expression"
    assert not ExternalOffer.objects.exists()
