"""Failures as the rows of visits, attempts and runs hold them."""

from __future__ import annotations

from workflows.errors import Failure
from workflows.ledger.records import compact


def failure_text(failure: Failure | None, *, trace: bool = False) -> str:
    """``{code, message}`` as canonical JSON, "" for none; with the trace for an attempt."""
    if failure is None:
        return ""
    value = {"code": failure.code, "message": failure.message}
    if trace and failure.trace:
        value["trace"] = failure.trace
    return compact(value)
