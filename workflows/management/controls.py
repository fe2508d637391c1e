"""``runs cancel|abandon|resume|retry|pause|skip|steer``: what operators do to runs, one or several at once."""

from __future__ import annotations

import argparse

from workflows.errors import Refusal
from workflows.management.actions import goes_on_with, visit_word
from workflows.management.base import STANDARD_INPUT, read_text
from workflows.management.several import Change, Options, action_of
from workflows.operations import previewing, signals
from workflows.operations import runs as operations
from workflows.operations.driving import carry_out_cancel
from workflows.operations.people import Actor
from workflows.operations.reasons import checked_reason
from workflows.statuses import RunStatus


def goes_on(number: int) -> str:
    """How a run goes on, unless a worker has it."""
    return "" if operations.is_driven(number) else f"; {goes_on_with(number)} goes on with it"


def _cancel(number: int, actor: Actor, options: Options) -> str:
    is_new = operations.cancel(number, actor=actor, reason=options["reason"])
    if operations.ends_without_steps(number):
        carry_out_cancel(number)
    if operations.status_of(number) == RunStatus.CANCELLED:
        return "cancelled" if is_new else "was cancelled already"
    if operations.is_driven(number):
        return "is being cancelled by its worker"
    return f"is being cancelled; {goes_on_with(number)} runs its closing steps"


def _abandon(number: int, actor: Actor, options: Options) -> str:
    operations.abandon(number, actor=actor, reason=options["reason"])
    return f"abandoned; `python manage.py runs resume {number}` opens it again"


def _prepare_abandon(options: Options) -> None:
    checked_reason(options["reason"], needed_for="Abandoning a run")


def _resume(number: int, actor: Actor, options: Options) -> str:
    how = operations.resume(number, actor=actor, reason=options["reason"])
    words = {"released": "is no longer held", "reopened": "is open again", "woken": "will be looked at again"}
    return f"{words[how]}{goes_on(number)}"


def _pause(number: int, actor: Actor, options: Options) -> str:
    is_new = operations.pause(number, actor=actor, reason=options["reason"])
    lifts = f"`python manage.py runs resume {number}`"
    return f"is held; {lifts} lets it go on" if is_new else "was held already"


def _retry(number: int, actor: Actor, options: Options) -> str:
    how = operations.retry(number, actor=actor, reason=options["reason"])
    words = {"hurried": "tries again now", "reopened": "is open again at the step that failed"}
    return f"{words[how]}{goes_on(number)}"


# ---- skip ------------------------------------------------------------------------------------------------------------


def _add_skip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--visit", type=visit_word, metavar="V", help="which step of one run, as v3; default: the only one"
    )


def _prepare_skip(options: Options) -> None:
    checked_reason(options["reason"], needed_for="Skipping a step")


def refuse_visit_of_several(options: Options, numbers: list[int]) -> None:
    """A visit belongs to one run. Raises ``input.invalid``."""
    if options["visit"] is not None and len(numbers) > 1:
        raise Refusal("input.invalid", reason="--visit names a step of one run; several runs are named.")


def _skip(number: int, actor: Actor, options: Options) -> str:
    visit = operations.skip(number, actor=actor, reason=options["reason"], visit=options["visit"])
    return f"v{visit} counts as skipped{goes_on(number)}"


# ---- steer -----------------------------------------------------------------------------------------------------------


def _add_steer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what the next try shall know; - reads it from standard input")
    parser.add_argument("--request-id", metavar="ID", help="sent again with the same id it is the same text")


def _prepare_steer(options: Options) -> None:
    if options["text"] == STANDARD_INPUT:
        if STANDARD_INPUT in options["runs"]:
            raise Refusal("input.invalid", reason="Standard input holds either the numbers of runs or the text.")
        options["text"] = read_text(STANDARD_INPUT).rstrip("\n")
    signals.check_steering(options["text"])


def _steer(number: int, actor: Actor, options: Options) -> str:
    accepted = signals.steer(
        number, options["text"], actor=actor, reason=options["reason"], request_id=options["request_id"]
    )
    if not accepted.new:
        return "the text was accepted before"
    return "the text waits for a step that takes it"


CANCEL = action_of(
    Change(
        name="cancel",
        help="end runs as cancelled, after their closing steps",
        act=_cancel,
        foresee=lambda number, options: previewing.cancel(number),
    )
)
ABANDON = action_of(
    Change(
        name="abandon",
        help="end runs at once, whatever they are doing; resume undoes it",
        act=_abandon,
        foresee=lambda number, options: previewing.abandon(number, options["reason"]),
        prepare=_prepare_abandon,
    )
)
RESUME = action_of(
    Change(
        name="resume",
        help="let held, failed, blocked and abandoned runs go on",
        act=_resume,
        foresee=lambda number, options: previewing.resume(number),
    )
)
RETRY = action_of(
    Change(
        name="retry",
        help="try the failed or waiting step again now",
        act=_retry,
        foresee=lambda number, options: previewing.retry(number),
    )
)
PAUSE = action_of(
    Change(
        name="pause",
        help="hold runs: what runs goes on, nothing new starts",
        act=_pause,
        foresee=lambda number, options: previewing.pause(number),
    )
)
SKIP = action_of(
    Change(
        name="skip",
        help="let the failed or waiting step of a run count as skipped",
        act=_skip,
        foresee=lambda number, options: previewing.skip(number, options["reason"], options["visit"]),
        prepare=_prepare_skip,
        check=refuse_visit_of_several,
        add_words=_add_skip,
    )
)
STEER = action_of(
    Change(
        name="steer",
        help="tell the next try of a step that takes it what to do",
        act=_steer,
        foresee=lambda number, options: previewing.steer(number, options["text"]),
        prepare=_prepare_steer,
        add_words=_add_steer,
    )
)
