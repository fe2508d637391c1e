"""The check at the doors: parameters, answers and API bodies are refused where a step's output would be repaired."""

from __future__ import annotations

from typing import Any

from workflows.errors import Problem
from workflows.jsonvalue.faults import faults_of


def check_storable(value: Any, path: str) -> list[Problem]:
    """Everything in ``value`` that cannot be stored (E605, E606, E607, E610), with the paths below ``path``."""
    return [
        Problem(code=fault.code or "E602", path=fault.path, message=fault.message, hint=fault.hint)
        for fault in faults_of(value, path)
    ]
