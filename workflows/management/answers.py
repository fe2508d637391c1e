"""``runs answer`` and ``runs signal``: their words, and what they ask of the operations."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from workflows.errors import Refusal
from workflows.jsonvalue import read_json
from workflows.ledger.answering import Answered
from workflows.management.actions import RunAction, print_done
from workflows.management.base import Command, read_text
from workflows.management.parameters import given_parameters
from workflows.management.targets import run_id, visit_number
from workflows.operations.answering import Wish, answer
from workflows.operations.people import shell_actor
from workflows.operations.signals import signal
from workflows.queries.waiting import signals_awaited


def add_answer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="number of a run")
    parser.add_argument(
        "interrupt", nargs="?", metavar="INTERRUPT", help="which question, as v3; default: the only open one"
    )
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_const", dest="decision", const="approved", help="approve it")
    decision.add_argument("--reject", action="store_const", dest="decision", const="rejected", help="reject it")
    decision.add_argument("--choice", dest="decision", metavar="NAME", help="choose one of the choices")
    parser.add_argument(
        "--field",
        action="append",
        default=[],
        dest="fields",
        metavar="NAME=VALUE",
        help="a field of the form: name=text, name:=json, or name=@file",
    )
    parser.add_argument("--comment", default="", metavar="TEXT", help="kept with the answer")
    parser.add_argument("--as", dest="person", metavar="USER", help="the person who answers")


def add_signal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="number of a run")
    parser.add_argument("name", metavar="NAME", help="name of the signal")
    parser.add_argument("--payload", metavar="JSON", help="what it carries, as JSON; @FILE reads it from a file")
    parser.add_argument("--request-id", metavar="ID", help="sent again with the same id it is the same signal")
    parser.add_argument("--as", dest="person", metavar="USER", help="the person who sends it")


def carry_out_answer(options: dict[str, Any]) -> Answered:
    """Answer as the command line says. Raises what ``operations.answering.answer`` raises."""
    given = given_parameters(options["fields"], None)
    wish = Wish(
        decision=options["decision"],
        fields=given.values,
        from_text=given.from_text,
        comment=options["comment"],
    )
    return answer(run_id(options["run"]), _visit(options["interrupt"]), wish, actor=shell_actor(options["person"]))


def carry_out_signal(options: dict[str, Any]) -> tuple[int, bool]:
    """Send the signal; the run, and whether it is new. Raises what ``operations.signals.signal`` raises."""
    number = run_id(options["run"])
    actor = shell_actor(options["person"])
    payload = _payload(options["payload"])
    return number, signal(number, options["name"], payload, actor=actor, request_id=options["request_id"])


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    value, problems = read_json(read_text(text[1:]) if text.startswith("@") else text)
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message.replace("The file is", "The payload is", 1))
    return value


def _visit(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return visit_number(text)
    except ValueError as error:
        raise Refusal("input.invalid", reason=str(error)) from None


def _answer(command: Command, options: dict[str, Any]) -> int:
    answered = carry_out_answer(options)
    document = {
        "run": answered.run_id,
        "interrupt": f"v{answered.visit}",
        "settled": answered.settled,
        "new": answered.new,
        "votes": answered.votes,
        "quorum": answered.quorum,
    }
    if answered.settled:
        return print_done(command, options, document, f"v{answered.visit} is answered")
    words = f"v{answered.visit} has {answered.votes} of {answered.quorum} approvals"
    return print_done(command, options, document, words, goes_on=False)


def _signal(command: Command, options: dict[str, Any]) -> int:
    awaited = signals_awaited(run_id(options["run"]))
    number, is_new = carry_out_signal(options)
    words = _kept(options["name"], awaited) if is_new else "the signal was accepted before"
    return print_done(command, options, {"run": number, "new": is_new}, words)


def _kept(name: str, awaited: Mapping[int, str]) -> str:
    """What becomes of a signal, by what is waited for as it comes."""
    if name in awaited.values():
        return "the signal was accepted"
    others = ", ".join(f'v{visit} waits for "{other}"' for visit, other in sorted(awaited.items()))
    return f'the signal is kept: no step waits for "{name}" now' + (f"; {others}" if others else "")


ANSWER = RunAction(name="answer", help="answer an open question of a run", add_words=add_answer, perform=_answer)
SIGNAL = RunAction(name="signal", help="send a signal to a run", add_words=add_signal, perform=_signal)
