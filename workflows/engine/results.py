"""Results of attempts: limits, marks of what was cut or repaired, and failures as stored texts."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workflows.engine.contract import INTERRUPTED, Result
from workflows.engine.output_schema import schema_mismatch
from workflows.errors import FAILURES, Failure
from workflows.jsonvalue import NotStorable, clean_text, repair, store

MIB = 1024 * 1024
OUTPUT_LIMIT = MIB
MESSAGE_LIMIT = 4 * 1024
TRACE_LIMIT = 16 * 1024

_OWN_FILES = str(Path(__file__).parent.parent)

#: Reason of a stop → outcome, failure code, message.
_STOPPED = {
    "timeout": ("timed_out", "timeout", "The step took longer than its timeout and was stopped."),
    "cancelled": ("cancelled", "cancelled", "The step was cancelled while it ran."),
    "shutdown": (INTERRUPTED, "crashed", "The worker was shut down while the step ran."),
}


def failure_result(
    code: str, message: str, *, outcome: str | None = None, exit_code: int | None = None, log: str = ""
) -> Result:
    """A failed attempt, with the default outcome of its code. The message is made storable and short."""
    text, repaired = clean_text(message)
    return Result(
        outcome=outcome or FAILURES[code].outcome,
        failure=Failure(code=code, message=short(text)),
        exit_code=exit_code,
        log=log,
        repaired=repaired,
    )


def stopped_result(
    reason: str, *, message: str | None = None, detail: str = "", exit_code: int | None = None, log: str = ""
) -> Result:
    """An attempt that was ended from outside: ``timeout``, ``cancelled`` or ``shutdown``."""
    outcome, code, usual = _STOPPED[reason]
    return failure_result(code, f"{message or usual}{detail}", outcome=outcome, exit_code=exit_code, log=log)


def output_result(
    value: Any,
    *,
    outcome: str,
    schema: Mapping[str, Any] | None,
    exit_code: int | None = None,
    log: str = "",
    repaired: bool = False,
) -> Result:
    """The result with an output, or the failure that says why this output cannot be stored or does not fit."""
    value, changed = repair(value)
    repaired = repaired or changed
    try:
        stored = store(value, limit=OUTPUT_LIMIT)
    except NotStorable as error:
        return failure_result(error.code, f"The output cannot be stored: {error}", exit_code=exit_code, log=log)
    mismatch = schema_mismatch(schema, value)
    if mismatch is not None:
        return failure_result("invalid_output", mismatch, exit_code=exit_code, log=log)
    return Result(
        outcome=outcome,
        output=None if value is None else stored,
        exit_code=exit_code,
        log=log,
        repaired=repaired,
    )


def exception_result(error: BaseException, *, mask: Callable[[str], str] = str) -> Result:
    """An attempt that an exception ended: its class, its message and a trimmed trace, all of it text."""
    name = type(error).__qualname__
    try:
        message = str(error)
    except Exception:  # a class whose own text cannot be made must not decide how the attempt ends
        message = "(its message cannot be shown)"
    text, repaired = clean_text(mask(f"{name}: {message}" if message else name))
    trace, _ = clean_text(mask(_trace(error)))
    failure = Failure(code="task_error", message=short(text), trace=_last_part(trace, TRACE_LIMIT))
    return Result(outcome=failure.rule.outcome, failure=failure, repaired=repaired)


def _trace(error: BaseException) -> str:
    """The trace from the first frame that is not the engine's own."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        frames = frames.tb_next
    try:
        lines = traceback.format_exception(type(error), error, frames or error.__traceback__)
    except Exception:  # formatting calls code of the exception
        return ""
    return "".join(lines)


def _last_part(text: str, limit: int) -> str:
    data = text.encode()
    if len(data) <= limit:
        return text
    return "…" + data[3 - limit :].decode(errors="ignore")


def short(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """``text`` cut to ``limit`` bytes of UTF-8, with a sign where it was cut."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - 3].decode(errors="ignore") + "…"
