"""Http steps as they come out of the compiler."""

from __future__ import annotations

from typing import Any

from tests.steps.support import step_of
from workflows.definitions.options import OPTIONS
from workflows.definitions.plan import StepPlan

_COMMON = ("timeout", "access", "idempotent", "retry", "id")


def http(url: Any, **keys: Any) -> StepPlan:
    """``keys`` are those of the format; ``timeout`` is in milliseconds."""
    common = {key: keys.pop(key) for key in _COMMON if key in keys}
    return step_of("http", OPTIONS["http"]({"url": url, **keys}, {}), **common)
