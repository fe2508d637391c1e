"""Where a run stands, as the exit code of a command (docs/architecture.md)."""

from __future__ import annotations

from workflows.errors import ExitCode
from workflows.statuses import RunStatus

_CODES: dict[str, int] = {
    RunStatus.SUCCEEDED: ExitCode.SUCCEEDED,
    RunStatus.FAILED: ExitCode.FAILED,
    RunStatus.CANCELLED: ExitCode.CANCELLED,
    RunStatus.ABANDONED: ExitCode.CANCELLED,
    RunStatus.PAUSED: ExitCode.PARKED_FOR_PEOPLE,
    RunStatus.BLOCKED: ExitCode.BLOCKED,
}


def exit_code_of(status: str) -> int:
    """The exit code of a command that leaves a run in this status; a run that could go on was left running."""
    return _CODES.get(status, ExitCode.LEFT_RUNNING)
