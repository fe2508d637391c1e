"""Reasons: what a person says why, kept with an action for ever."""

from __future__ import annotations

from workflows.errors import Refusal
from workflows.jsonvalue import check_storable
from workflows.ledger.auditing import MOST_REASON


def checked_reason(reason: str, *, needed_for: str = "") -> str:
    """A reason without space around it. ``needed_for`` begins the sentence that asks for one ("Abandoning a run").

    Raises ``input.invalid``: it is missing where it is needed, too long, or cannot be stored.
    """
    text = reason.strip()
    if needed_for and not text:
        raise Refusal("input.invalid", reason=f"{needed_for} needs a reason (`--reason`).")
    problems = check_storable(text, "reason")
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message, problems=tuple(problems))
    if len(text) > MOST_REASON:
        raise Refusal("input.invalid", reason=f"The reason has {len(text)} characters; the limit is {MOST_REASON}.")
    return text
