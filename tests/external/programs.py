"""Programs that do external work in tests: they speak to the ledger's verbs as the doors of the product do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.support.plans import publish_run, workflow
from tests.support.players import Player
from workflows.errors import Failure
from workflows.jsonvalue import store
from workflows.ledger.external import Brought, Finished, Reservation, finish, hash_of, lapse, renew, reserve
from workflows.models import ExternalOffer
from workflows.statuses import OfferStatus

LABELLING = workflow(
    """
  - id: label
    kind: external
    queue: labelling
    input: { hosts: [a, b] }
    outcomes: [unusable]
    lease: 5m
    timeout: 1h
    retry: { attempts: 3, wait: 1s, jitter: none, errors: [task_error, timeout] }
    next: { unusable: continue, failed: continue, timed_out: continue }
""",
    after='output: ["${ steps.label.outcome }", "${ steps.label.output }", "${ steps.label.attempts }"]',
)


def offered(text: str = LABELLING, **more: Any) -> Player:
    """A run that waits for a program."""
    player = Player(publish_run(text, **more))
    player.play()
    return player


def open_offer(player: Player) -> ExternalOffer:
    """The one open offer of a run."""
    offer: ExternalOffer = ExternalOffer.objects.get(run_id=player.run_id, status=OfferStatus.OPEN)
    return offer


@dataclass
class Program:
    """One program under its own token."""

    token: str = "s3cret of robot 1"
    name: str = "robot 1"
    reservation: Reservation | None = None

    def reserve(self, offer: ExternalOffer, **more: Any) -> Reservation | None:
        self.reservation = reserve(
            offer_id=offer.pk,
            token_hash=hash_of(self.token),
            worker=self.name,
            recorded="ann (key robots)",
            now=datetime.now(UTC),
            **more,
        )
        return self.reservation

    def renew(self, **more: Any) -> int:
        return renew(token_hash=hash_of(self.token), **more)

    def finish(self, output: Any = None, outcome: str = "ok") -> Finished:
        return self.bring(Brought(outcome=outcome, output=None if output is None else store(output)))

    def fail(self, message: str = "No.", code: str = "task_error", *, retryable: bool = True) -> Finished:
        failure = Failure(code=code, message=message)
        return self.bring(Brought(outcome="failed", failure=failure, retryable=retryable))

    def bring(self, brought: Brought) -> Finished:
        return finish(
            token_hash=hash_of(self.token), brought=brought, recorded="ann (key robots)", now=datetime.now(UTC)
        )


def taken_over() -> tuple[Player, Program, Program]:
    """A run whose work a first program did not renew, so that a second one has it; what the first brings is late."""
    player, first, second = offered(), Program("a"), Program("b")
    offer = open_offer(player)
    first.reserve(offer)
    offer.refresh_from_db()
    lapse(offer_id=offer.pk, now=datetime.now(UTC), now_ms=offer.lease_until_ms)
    second.reserve(open_offer(player))
    first.finish("late")
    return player, first, second
