"""Runs that pages are looked at with: one that asks, one whose write was interrupted, names that mean harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from tests.pages.addresses import Address
from tests.support.hand import Hand
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import expire, play
from workflows.models import RunFilter
from workflows.operations import bulk, schedules
from workflows.operations.people import Actor

#: Marked up, with a script, turned around, as a link that runs.
HARM = "<script>alert(1)</script><b onclick=alert(2)>\u202e[x](javascript:alert(3))"
ASKS = workflow(
    """
  - id: ask
    kind: approval
    ask: "Really? ${ params.harm }"
    show: { what: "${ params.harm }", list: "${ [params.harm] }" }
    form: { note: { type: string, optional: true, title: '<i>Note</i>' } }
    timeout: 1h
""",
    before="title: '<u>Asks</u>'\nparams: { harm: { type: string, default: '' } }",
    name="asks",
)
BROKEN = workflow("  - { id: pay, kind: shell, run: make, access: write }", name="broken")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    asks: int
    broken: int
    bulk: int
    workflow: str = "asks"
    schedule: int = 777_779

    def path(self, name: str, address: Address) -> str:
        about: list[Any] = [getattr(self, address.about)] if address.about else []
        return reverse(f"pages:{name}", args=[*about, *address.more])


def make_world() -> World:
    store_plan(ASKS, private=False)
    asks = publish_run(ASKS, {"harm": HARM}, title=HARM)
    play(asks)
    broken = publish_run(BROKEN)
    Hand(broken).step()
    expire(broken)
    Hand(broken).step()
    shell = Actor(name="shell:root", recorded="shell:root")
    made = bulk.create("cancel", RunFilter(numbers=(999_999,)), actor=shell, request_id="b1")
    timed = schedules.create("asks", schedules.Wish(cron="0 2 * * *", title=HARM.replace("\u202e", "")), actor=shell)
    return World(asks=asks, broken=broken, bulk=made, schedule=timed)
