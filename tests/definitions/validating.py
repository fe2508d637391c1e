"""Checking a workflow file in tests, with what was found as text."""

from __future__ import annotations

from typing import Any

from workflows.definitions.validation import Known, validate

HEAD = "format: 1\nname: demo\n"


def lines_of(text: str, **known: Any) -> str:
    """The errors of a file, each on three lines: ``line: code path``, the message and the hint."""
    found = validate(text, Known(**known))
    return "\n".join(
        f"{error.line}: {error.code} {error.path}\n    {error.message}\n    {error.hint}" for error in found.errors
    )


def errors_of(text: str, **known: Any) -> list[str]:
    """The errors of a file that begins with ``HEAD``, each as ``code path: message hint``."""
    found = validate(HEAD + text, Known(**known))
    return [f"{error.code} {error.path}: {error.message} {error.hint}".strip() for error in found.errors]


def warnings_of(text: str, **known: Any) -> list[str]:
    """The warnings of a file that begins with ``HEAD`` and has no errors, each as ``code path: message``."""
    found = validate(HEAD + text, Known(**known))
    assert found.errors == ()
    return [f"{warning.code} {warning.path}: {warning.message}" for warning in found.warnings]
