"""Whatever is sent to an operation gets an answer that its description names (promise API.5); `python -m tests.api`
sends more."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.api import fuzzing
from tests.api.programs import key_of, person
from tests.api.world import make_world
from workflows.api.api import api
from workflows.api.description import operations_of

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("WAYPOST_API_EXAMPLES", "6"))
NAMES = [operation.view_func.__name__ for operation in operations_of(api)]


@pytest.fixture
def key(settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    settings.WAYPOST_API_REQUESTS_PER_MINUTE = 1_000_000
    fuzzing.wait_for_nothing(monkeypatch)
    return key_of(person(name="ada", is_superuser=True))


@pytest.mark.unsound
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_sent_is_answered_as_described(key: str, name: str) -> None:
    """API 1, 5"""
    world = make_world()
    runs = [world.asks, world.waits, world.broken, world.failed]
    there = {"run": runs, "visit": [1, 2], "revision": [1, 2], "name": ["asks"], "version": [1]}
    operation = next(one for one in fuzzing.operations(key) if one.definition.raw["operationId"] == name)
    assert fuzzing.try_operation(operation, key, examples=EXAMPLES, there=there) >= 1
