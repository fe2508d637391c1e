"""Verbs of operators in worlds where they have something to do: pruning, bulk actions, importing. See ``verbs``."""

from __future__ import annotations

import json
from functools import partial

from tests.attacks.verbs import ONE, Call, attacked, fresh
from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.plans import START, publish_run, store_plan, workflow
from workflows.jsonvalue import store
from workflows.ledger import bulk, importing, pruning
from workflows.ledger.publishing import store_payloads
from workflows.ledger.transactions import ledger_transaction
from workflows.operations.exporting import export_run
from workflows.operations.people import Actor


def _finished() -> int:
    run_id = publish_run(ONE)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok("an output", log="a log")})
    return run_id


@attacked(pruning.prune_runs)
def prune() -> Call:
    run_id = _finished()
    wish = pruning.Pruning(before=None, actor="bob", reason="old", now=START)
    return partial(pruning.prune_runs, root=run_id, runs=[run_id], family=[run_id], wish=wish)


@attacked(pruning.drop_payloads)
def drop_payloads() -> Call:
    _finished()
    unused = store("nobody names it")

    @ledger_transaction
    def keep() -> None:
        store_payloads([unused])

    keep()
    return partial(pruning.drop_payloads, digests=[unused.digest, store("an output").digest])


@attacked(pruning.drop_plan)
def drop_plan() -> Call:
    text = workflow("  - { id: unused, kind: shell, run: x }", name="unused")
    return partial(pruning.drop_plan, plan_id=store_plan(text).plan_id)


@attacked(pruning.hold_for_audit)
def hold_for_audit() -> Call:
    return partial(pruning.hold_for_audit, run_id=publish_run(ONE), actor="bob", reason="asked", now=START)


@attacked(pruning.release_from_audit)
def release_from_audit() -> Call:
    run_id = publish_run(ONE)
    pruning.hold_for_audit(run_id=run_id, actor="bob", reason="asked", now=START)
    return partial(pruning.release_from_audit, run_id=run_id, actor="bob", reason="done", now=START)


def _wish() -> bulk.Bulk:
    return bulk.Bulk(
        request_id=fresh(),
        action="abandon",
        criteria={"statuses": ["queued"]},
        reason="enough",
        actor="bob",
        runs=[publish_run(ONE), publish_run(ONE)],
        now=START,
    )


@attacked(bulk.make_bulk)
def make_bulk() -> Call:
    return partial(bulk.make_bulk, _wish())


@attacked(bulk.take_item)
def take_item() -> Call:
    number, _ = bulk.make_bulk(_wish())
    return partial(bulk.take_item, bulk_id=number, now_ms=0, for_ms=1_000)


@attacked(bulk.finish_item)
def finish_item() -> Call:
    number, _ = bulk.make_bulk(_wish())
    item = bulk.take_item(bulk_id=number, now_ms=0, for_ms=1_000)
    assert item is not None
    return partial(bulk.finish_item, item=item, result="done", message="", now=START)


@attacked(bulk.abort_bulk)
def abort_bulk() -> Call:
    number, _ = bulk.make_bulk(_wish())
    return partial(bulk.abort_bulk, bulk_id=number, actor="bob", now=START)


@attacked(importing.import_runs)
def import_runs() -> Call:
    pieces = export_run(_finished(), actor=Actor(name="bob", recorded="bob"))
    document = json.loads("".join(pieces))
    return partial(importing.import_runs, document=document, key=fresh(), actor="bob", now=START)
