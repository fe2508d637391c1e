"""The three closed lists of errors: problems of files, refused operations, failures of steps and runs.

* ``PROBLEMS``: E and W codes for workflow files and parameters (docs/format.md). The sentences are made where the
  problem is found, since they name what was written; this list says which codes exist and when they apply.
* ``REFUSALS``: dotted codes of operations that were refused, each with its sentence, HTTP status and exit code.
* ``FAILURES``: snake-case codes of what ends a step or a run: known or uncertain, retryable, default outcome.

Codes are part of the API. Every surface (command, page, API) translates from here and invents none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.problems import PROBLEMS
from workflows.refusals import REFUSALS, ExitCode, RefusalRule

__all__ = [
    "FAILURES",
    "PROBLEMS",
    "REFUSALS",
    "ExitCode",
    "Failure",
    "FailureRule",
    "Problem",
    "Refusal",
    "RefusalRule",
    "WaypostError",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a workflow file or with parameters: where, what, and what to do."""

    code: str
    path: str
    message: str
    hint: str = ""
    line: int | None = None
    column: int | None = None

    @property
    def severity(self) -> str:
        """``error`` for E codes, ``warning`` for W codes."""
        return "warning" if self.code.startswith("W") else "error"

    def as_json(self) -> dict[str, Any]:
        return {
            "severity": self.severity,
            "code": self.code,
            "path": self.path,
            "line": self.line,
            "message": self.message,
            "hint": self.hint,
        }


class WaypostError(Exception):
    """Base of every error of this project that a person may see: a stable ``code`` and the data it is about."""

    def __init__(self, code: str, message: str, *, hint: str = "", data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.data = dict(data or {})

    def __str__(self) -> str:
        return self.message


class _Lenient(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


class Refusal(WaypostError):
    """An operation that was refused. Nothing was written.

    >>> Refusal("run.terminal", run=7, status="failed").message
    'Run 7 is already failed.'
    """

    def __init__(self, code: str, *, problems: tuple[Problem, ...] = (), **data: Any) -> None:
        rule = REFUSALS[code]
        values = _Lenient(data)
        if "count" in data:
            values["problems"] = "1 problem" if data["count"] == 1 else f"{data['count']} problems"
        super().__init__(code, rule.sentence.format_map(values), hint=rule.hint.format_map(values).strip(), data=data)
        self.problems = problems

    @property
    def http_status(self) -> int:
        return REFUSALS[self.code].http_status

    @property
    def exit_code(self) -> int:
        return REFUSALS[self.code].exit_code


@dataclass(frozen=True, slots=True)
class FailureRule:
    """What a failure code means for retries.

    ``uncertain``: the effect may have happened, so a repetition keeps the dispatch id.
    ``retryable``: a policy may name it; ``crashed`` only counts where it is named.
    ``outcome``: what the visit ends with when nothing repairs it.
    """

    uncertain: bool = False
    retryable: bool = False
    outcome: str = "failed"


FAILURES: dict[str, FailureRule] = {
    # errors that a retry policy may name (docs/format.md, Retry)
    "exit_nonzero": FailureRule(retryable=True),
    "timeout": FailureRule(uncertain=True, retryable=True, outcome="timed_out"),
    "crashed": FailureRule(uncertain=True, retryable=True),
    "network": FailureRule(uncertain=True, retryable=True),
    "http_status": FailureRule(retryable=True),
    "rate_limited": FailureRule(retryable=True),
    "invalid_output": FailureRule(retryable=True),
    "refused": FailureRule(retryable=True, outcome="refused"),
    "child_failed": FailureRule(retryable=True),
    "items_failed": FailureRule(retryable=True),
    "task_error": FailureRule(retryable=True),
    # errors that are never retried
    "bad_expression": FailureRule(),
    "budget_exceeded": FailureRule(),
    "cancelled": FailureRule(),
    "command_not_found": FailureRule(),
    "duplicate_key": FailureRule(),
    "input_changed": FailureRule(),
    "loop_limit": FailureRule(),
    "output_too_large": FailureRule(),
    "secret_missing": FailureRule(),
    "start_failed": FailureRule(),
    "stopped": FailureRule(),
    "too_many_items": FailureRule(),
    "value_too_large": FailureRule(),
    # codes only a run ends with (docs/format.md, Failure)
    "blocked": FailureRule(outcome="blocked"),
    "ended_failed": FailureRule(),
    "expired": FailureRule(outcome="expired"),
    "finally_failed": FailureRule(),
    "internal_error": FailureRule(),
    "not_passed": FailureRule(outcome="not_passed"),
    "output_error": FailureRule(),
    "receipt_missing": FailureRule(),
    "rejected": FailureRule(outcome="rejected"),
    "routed_to_fail": FailureRule(),
    "run.poisoned": FailureRule(),
    # refusals of the ledger that a step meets
    "run.too_deep": FailureRule(),
    "run.too_many_children": FailureRule(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt, a visit or a run failed. ``message`` ≤ 4 KiB, ``trace`` ≤ 16 KiB; both may be shown."""

    code: str
    message: str
    trace: str = field(default="", repr=False)

    @property
    def rule(self) -> FailureRule:
        return FAILURES[self.code]
