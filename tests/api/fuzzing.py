"""Schemathesis against the description, in this process: whatever is sent gets an answer that the description names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from workflows.operations import external
from workflows.queries import event_waiting

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that may wait get their answer at once."""
    monkeypatch.setattr(event_waiting, "LONGEST_WAIT_S", 0.0)
    monkeypatch.setattr(external, "MOST_WAIT_S", 0.0)


def operations(key: str) -> Iterator[Any]:
    """Every operation of the description as the server gives it to the owner of a key."""
    schema = schemathesis.openapi.from_wsgi(
        "/api/v1/openapi.json", app=WSGIHandler(), headers={"Authorization": f"Bearer {key}"}
    )
    for result in schema.get_all_operations():
        yield result.ok()


def try_operation(operation: Any, key: str, *, examples: int, there: Mapping[str, Sequence[Any]]) -> int:
    """Call an operation with made-up values, valid ones and others; the number of calls. Raises what a check finds.

    ``there`` has values of path parameters that name something: every second call is about one of these.
    """
    count = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def call(case: Any) -> None:
        nonlocal count
        count += 1
        if count % 2:
            about = {
                name: there[name][count % len(there[name])] for name in case.path_parameters or {} if name in there
            }
            case.path_parameters = {**(case.path_parameters or {}), **about}
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {key}"}
        case.call_and_validate(checks=CHECKS)

    for mode in schemathesis.GenerationMode:
        strategy = operation.as_strategy(generation_mode=mode)
        with suppress(Unsatisfiable):  # nothing to get wrong in an operation without parameters
            given(strategy)(call)()
    return count
