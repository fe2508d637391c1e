"""What the kinds with an effect have in common when their step is entered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows.definitions.durations import DurationError, parse_duration
from workflows.engine.contract import Effect, Entry, Settled
from workflows.errors import Failure
from workflows.expressions import BadExpression, Value
from workflows.statuses import Access


def effect(entry: Entry, inputs: Mapping[str, Any], *, access: str = Access.WRITE, idempotent: bool = False) -> Effect:
    """The effect of a step. ``access`` and ``idempotent`` apply where the file says nothing."""
    step = entry.step
    return Effect(
        inputs=inputs,
        access=step.access or access,
        idempotent=idempotent if step.idempotent is None else step.idempotent,
        workspace=step.workspace,
        timeout_ms=milliseconds(entry, step.timeout, "timeout"),
    )


def milliseconds(entry: Entry, written: int | Value | None, key: str) -> int | None:
    """Milliseconds of a duration of the file, which may be a template. Raises :class:`BadExpression`."""
    if written is None or isinstance(written, int):
        return written
    value = entry.evaluate(written)
    try:
        return parse_duration(value)
    except DurationError as error:
        raise BadExpression(f'"{key}" must be a duration: {error}') from None


def failed(code: str, message: str) -> Settled:
    """The visit fails before anything was done."""
    failure = Failure(code=code, message=message)
    return Settled(outcome=failure.rule.outcome, failure=failure)


def kind_of_value(value: Any) -> str:
    """A value in the words of the format, for messages: ``the text "x"``, ``a list``, ``null``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{value if len(value) <= 80 else value[:80] + "…"}"'
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return type(value).__name__
