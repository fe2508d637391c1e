"""Runs that together make every shape of batch: what is written by one path of the ledger is written by every other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.hand import Hand, Write, expire
from tests.support.kinds import bad, interrupted, ok
from tests.support.plans import START, publish_run, workflow
from workflows.clock import unix_ms
from workflows.jsonvalue import store
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.ledger.reopening import reopen
from workflows.statuses import ControlKind

Scenario = Callable[[Write], int]


def chain(write: Write) -> int:
    """Initial variables, settlements with pure visits and admissions behind them, an output."""
    run_id = publish_run(
        workflow(
            """
  - { id: one, kind: shell, run: make, access: read }
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }", seen: "${ steps.one.output }" } }
  - { id: again, kind: shell, run: make, only_if: "${ vars.n > 3 }" }
  - { id: last, kind: shell, run: make }
""",
            before="vars: { n: { type: integer, value: 3 }, seen: { type: any } }",
            after="output: { n: '${ vars.n }', seen: '${ vars.seen }' }",
        )
    )
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.1": ok({"b": [1, 2.5, None], "ä": "\U0001f600"}, log="a log\n")})
    hand.step({"v3.1": ok(None)})
    hand.step({"v4.1": ok("end")})
    return run_id


def pure(write: Write) -> int:
    """A chain of pure visits, longer than one transaction takes."""
    run_id = publish_run(
        workflow(
            """
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" }, max_visits: 300 }
  - { id: more, kind: condition, if: "${ vars.n < 150 }", next: { then: count, else: done } }
""",
            before="vars: { n: { type: integer, value: 0 } }",
        )
    )
    hand = Hand(run_id, write=write)
    while not hand.step().draft.ended:
        pass
    return run_id


def refused(write: Write) -> int:
    """An entry beyond max_visits that is routed."""
    run_id = publish_run(
        workflow("""
  - { id: work, kind: shell, run: make, max_visits: 1, next: { ok: work, exhausted: rest } }
  - { id: rest, kind: shell, run: make }
""")
    )
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.1": ok(1)})
    hand.step({"v3.1": ok(2)})
    return run_id


def retried(write: Write) -> int:
    """An uncertain failure, a wait, a known failure that is repeated at once, and a success."""
    run_id = publish_run(
        workflow("""
  - id: work
    kind: shell
    run: make
    access: read
    retry: [{ attempts: 3, wait: 5s, jitter: none, errors: [timeout] }, { attempts: 2, wait: 0s, errors: [exit_nonzero] }]
""")
    )
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.1": bad("timeout")})
    hand = Hand(run_id, write=write, now=hand.now)
    hand.pass_time(5_000)
    hand.step()
    hand.step({"v1.2": bad(message="no\n" * 2000)})
    hand.step({"v1.3": ok("at last")})
    return run_id


def interrupted_write(write: Write) -> int:
    """A dead owner, a reconciliation, another attempt that a shutdown kills, and a result that a person enters."""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make, access: write }", after="output: x"))
    Hand(run_id, write=write).step()
    expire(run_id)
    Hand(run_id, write=write).step()
    did_not = Reconciliation(decision="did_not", actor="bob", reason="looked")
    reconcile(run_id=run_id, visit=1, reconciliation=did_not, now=START)
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.2": interrupted()})
    happened = Reconciliation(decision="happened", actor="bob", reason="saw", outcome="ok", output=store([1]))
    reconcile(run_id=run_id, visit=1, reconciliation=happened, now=START)
    Hand(run_id, write=write).step()
    return run_id


def repeated_read(write: Write) -> int:
    """A dead owner's read, dispatched again in the transaction that interrupts it."""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make, access: read }"))
    Hand(run_id, write=write).step()
    expire(run_id)
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.2": ok()})
    return run_id


def slept(write: Write) -> int:
    """A timer that parks the run, and its end."""
    run_id = publish_run(workflow("  - { id: nap, kind: wait, for: 1m }\n  - { id: work, kind: shell, run: make }"))
    Hand(run_id, write=write).step()
    hand = Hand(run_id, write=write)
    hand.pass_time(60_000)
    hand.step()
    hand.step({"v2.1": ok()})
    return run_id


def closed(write: Write) -> int:
    """A failure, on_failure, a failing finally step, and a reopening that succeeds."""
    run_id = publish_run(
        workflow(
            "  - { id: work, kind: shell, run: make }",
            after="on_failure: [{ id: repair, kind: shell, run: y }]\nfinally: [{ id: tidy, kind: shell, run: y }]",
        )
    )
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.1": bad()})
    hand.step({"v2.1": ok()})
    hand.step({"v3.1": bad()})
    reopen(run_id=run_id, actor="bob", reason="again", now=START)
    hand = Hand(run_id, write=write)
    hand.step()
    hand.step({"v1.2": ok()})
    hand.step({"v4.1": ok()})
    return run_id


def controlled(write: Write) -> int:
    """Pause, resume, cancel, and a success that comes too late."""
    run_id = publish_run(
        workflow("  - { id: work, kind: shell, run: make }\n  - { id: next_one, kind: shell, run: make }")
    )
    hand = Hand(run_id, write=write)
    hand.step()
    for number, kind in enumerate((ControlKind.PAUSE, ControlKind.RESUME, ControlKind.CANCEL)):
        send(run_id=run_id, kind=kind, payload={"reason": "r"}, request_id=str(number), sender="bob", now=START)
        hand.reload()
        hand.step()
    hand.step({"v1.1": ok("too late")})
    return run_id


def ended(write: Write) -> int:
    """An ``end`` step that replaces the output."""
    run_id = publish_run(workflow("  - { id: stop, kind: end, status: succeeded, output: { a: 1 } }"))
    Hand(run_id, write=write).step()
    return run_id


def fanned_out(write: Write) -> int:
    """Items with variables of their own, two at once, one of which fails; and a block."""
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: [1, 2, 3]
    as: item
    concurrency: 2
    join: settled
    vars: { twice: { type: integer, value: "${ item * 2 }" } }
    do:
      - { id: work, kind: shell, run: make, env: { N: "${ vars.twice }" }, workspace: none }
  - { id: call, kind: block, use: helper, with: { n: 3 } }
""",
            after="""
blocks:
  helper:
    params: { n: { type: integer } }
    steps:
      - { id: inner, kind: shell, run: make }
""",
        )
    )
    hand = Hand(run_id, write=write)
    hand.step()
    while hand.running:
        names = hand.running
        hand.step({name: bad() if name == "v3.1" else ok(name) for name in names})
    return run_id


def asked(write: Write) -> int:
    """A question that is answered, one whose deadline passes, and one that a cancel closes."""
    run_id = publish_run(
        workflow("""
  - { id: first, kind: question, ask: "What now?", choices: [more, less], next: { more: second, less: done } }
  - { id: second, kind: question, ask: "And now?", choices: [more, less], timeout: 1m, next: { more: done, less: done, expired: third } }
  - { id: third, kind: question, ask: "Still?", choices: [more, less], next: { more: done, less: done } }
""")
    )
    Hand(run_id, write=write).step()
    reply = Reply(voter="ann", recorded_by="ann", decision="more")
    answer(run_id=run_id, visit=1, reply=reply, now=START, now_ms=unix_ms(START))
    Hand(run_id, write=write).step()
    hand = Hand(run_id, write=write)
    hand.pass_time(60_000)
    hand.step()
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="r", sender="bob", now=START)
    Hand(run_id, write=write).step()
    return run_id


SCENARIOS: Mapping[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        chain,
        pure,
        refused,
        retried,
        interrupted_write,
        repeated_read,
        slept,
        closed,
        controlled,
        ended,
        fanned_out,
        asked,
    )
}
