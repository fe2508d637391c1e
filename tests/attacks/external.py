"""Verbs of programs that do external work, in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from functools import partial

from tests.attacks.verbs import Call, attacked, begun, fresh
from tests.support.plans import START, workflow
from workflows.jsonvalue import store
from workflows.ledger import external
from workflows.ledger.external import Brought, hash_of
from workflows.models import ExternalOffer

OFFERS = workflow("  - { id: work, kind: external, queue: q, lease: 1m, timeout: 1h }")


def offer() -> int:
    run_id = begun(OFFERS).run_id
    number: int = ExternalOffer.objects.values_list("pk", flat=True).get(run_id=run_id)
    return number


def reserving(offer_id: int, token: str) -> Call:
    return partial(
        external.reserve, offer_id=offer_id, token_hash=hash_of(token), worker="robot", recorded="ann", now=START
    )


def reserved() -> tuple[int, str]:
    """An offer that a program has, and its token."""
    offer_id, token = offer(), fresh()
    reserving(offer_id, token)()
    return offer_id, token


def finishing(token: str) -> Call:
    brought = Brought(outcome="ok", output=store("done"))
    return partial(external.finish, token_hash=hash_of(token), brought=brought, recorded="ann", now=START)


@attacked(external.reserve)
def reserves_work() -> Call:
    return reserving(offer(), fresh())


@attacked(external.renew)
def renews_a_reservation() -> Call:
    return partial(external.renew, token_hash=hash_of(reserved()[1]))


@attacked(external.finish)
def finishes_work() -> Call:
    return finishing(reserved()[1])


@attacked(external.lapse)
def offers_work_again() -> Call:
    offer_id, _ = reserved()
    until = ExternalOffer.objects.values_list("lease_until_ms", flat=True).get(pk=offer_id)
    return partial(external.lapse, offer_id=offer_id, now=START, now_ms=until)


@attacked(external.finish)
def keeps_a_late_result_of_work() -> Call:
    offer_id, token = reserved()
    until = ExternalOffer.objects.values_list("lease_until_ms", flat=True).get(pk=offer_id)
    external.lapse(offer_id=offer_id, now=START, now_ms=until)
    return finishing(token)
