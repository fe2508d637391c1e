"""``runs reconcile``: what became of a step whose worker died."""

from __future__ import annotations

import argparse
from typing import Any

from workflows.errors import FAILURES, Refusal
from workflows.jsonvalue import read_json
from workflows.management.actions import visit_word
from workflows.management.base import read_text
from workflows.management.controls import goes_on, refuse_visit_of_several
from workflows.management.several import Change, Options, action_of
from workflows.operations.people import Actor
from workflows.operations.reconciling import Told, check_reconciliation, reconcile


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "decision", choices=["happened", "did_not", "stop"], help="what became of the interrupted attempt"
    )
    parser.add_argument(
        "--visit", type=visit_word, metavar="V", help="which step of one run, as v3; default: the only one that waits"
    )
    happened = parser.add_argument_group("what happened")
    happened.add_argument("--outcome", help="the outcome; default: the step's main one")
    output = happened.add_mutually_exclusive_group()
    output.add_argument("--output", metavar="JSON", help="the output as JSON; @FILE reads it from a file")
    output.add_argument("--text", help="the output as text; @FILE reads it from a file")
    codes = ", ".join(code for code, rule in FAILURES.items() if rule.retryable)
    happened.add_argument("--error", metavar="CODE", help=f"it failed, with this error: {codes}")
    happened.add_argument("--message", default="", help="the message of the error")
    happened.add_argument("--exit-code", type=int, metavar="N", help="the exit code of the process")


def _prepare(options: Options) -> None:
    options["told"] = _told(options)


def _reconcile(number: int, actor: Actor, options: Options) -> str:
    visit = reconcile(number, options["told"], actor=actor, visit=options["visit"])
    return f"v{visit} is reconciled{goes_on(number)}"


def _foresee(number: int, options: Options) -> str:
    visit = check_reconciliation(number, options["told"], visit=options["visit"])
    words = {"happened": "would have happened", "did_not": "would be tried once more", "stop": "would fail"}
    return f"v{visit} {words[options['decision']]}"


def _told(options: dict[str, Any]) -> Told:
    says = {name: options[name] for name in ("outcome", "output", "text", "error", "message", "exit_code")}
    given = [name for name, value in says.items() if value not in (None, "")]
    if options["decision"] != "happened" and given:
        raise Refusal("input.invalid", reason=f'--{given[0].replace("_", "-")} belongs to "happened".')
    return Told(
        decision=options["decision"],
        reason=options["reason"],
        outcome=options["outcome"],
        output=_output(options["output"], options["text"]),
        error_code=options["error"],
        message=options["message"],
        exit_code=options["exit_code"],
    )


def _output(as_json: str | None, text: str | None) -> Any:
    if text is not None:
        return read_text(text[1:]) if text.startswith("@") else text
    if as_json is None:
        return None
    value, problems = read_json(read_text(as_json[1:]) if as_json.startswith("@") else as_json)
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message.replace("The file is", "The output is", 1))
    return value


RECONCILE = action_of(
    Change(
        name="reconcile",
        help="say what became of a step whose worker died",
        act=_reconcile,
        foresee=_foresee,
        prepare=_prepare,
        check=refuse_visit_of_several,
        add_words=_add_words,
    )
)
