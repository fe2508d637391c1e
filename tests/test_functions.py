"""Task functions: the decorator, the registry and its discovery."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from workflows import functions
from workflows.functions import FunctionError, Registry, TaskFunction, workflow_task

functions.autodiscover()  # what is shipped registers once in a process, and not in the middle of a test here


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    empty = Registry()
    monkeypatch.setattr(functions, "registry", empty)
    return empty


def test_a_function_is_registered_under_the_name_it_is_given_and_stays_itself(registry: Registry) -> None:
    @workflow_task("billing.charge", access="read", idempotent=True, outcomes=("declined",))
    def charge(amount: int) -> int:
        return amount

    assert charge(3) == 3
    found = registry.get("billing.charge")
    assert found is not None
    assert found.function is charge
    assert found.declaration == {"access": "read", "idempotent": True, "outcomes": ["declined"]}
    assert str(found.signature) == "(amount: 'int') -> 'int'"
    assert registry.names() == ["billing.charge"]
    assert "billing.charge" in registry


def test_without_a_name_it_is_called_by_app_and_function(registry: Registry) -> None:
    @workflow_task
    def plain() -> None: ...

    @workflow_task(access="read")
    def options() -> None: ...

    assert registry.names() == ["test_functions.options", "test_functions.plain"]
    assert registry.get("test_functions.plain").access == "write"  # type: ignore[union-attr]


def test_in_an_app_the_label_of_the_app_comes_first(registry: Registry) -> None:
    def archive() -> None: ...

    archive.__module__ = "django.contrib.auth.workflow_tasks"
    assert functions.default_name(archive) == "auth.archive"
    archive.__module__ = "somewhere.shop.workflow_tasks"
    assert functions.default_name(archive) == "shop.archive"


def test_a_name_is_given_once(registry: Registry) -> None:
    @workflow_task("a.b")
    def first() -> None: ...

    with pytest.raises(FunctionError) as caught:

        @workflow_task("a.b")
        def second() -> None: ...

    where = f"{__name__}.test_a_name_is_given_once.<locals>"
    assert str(caught.value) == (
        f'The task function "a.b" is registered twice: by {where}.first and by {where}.second.'
    )
    assert registry.get("a.b").function is first  # type: ignore[union-attr]


def test_a_module_that_is_loaded_again_replaces_its_own_functions(registry: Registry) -> None:
    def declare(answer: int) -> None:
        @workflow_task("a.b")
        def same() -> int:
            return answer

    declare(1)
    declare(2)

    assert registry.get("a.b").function() == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"name": "Bad Name"},
            '"Bad Name" cannot be the name of a task function: '
            "use lower-case letters, digits and _, in parts joined by dots.",
        ),
        ({"access": "rw"}, 'a.b: access must be "read" or "write", not "rw".'),
        ({"outcomes": ("ok",)}, 'a.b: "ok" cannot be an outcome of its own.'),
        ({"outcomes": ("Not-A-Name",)}, 'a.b: "Not-A-Name" cannot be an outcome of its own.'),
        ({"outcomes": ("timed_out",)}, 'a.b: "timed_out" cannot be an outcome of its own.'),
    ],
)
def test_declarations_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"name": "a.b", "access": "write", "idempotent": False, "outcomes": (), **options}

    with pytest.raises(FunctionError) as caught:
        TaskFunction(lambda: None, **given)

    assert str(caught.value) == message


def test_discovery_imports_the_module_of_every_app_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import django.contrib.auth as app

    (tmp_path / "workflow_tasks.py").write_text(
        "from workflows.functions import workflow_task\n\n@workflow_task\ndef greet() -> str:\n    return 'hello'\n"
    )
    monkeypatch.setattr(app, "__path__", [*app.__path__, str(tmp_path)])
    try:
        functions.autodiscover()
        functions.autodiscover()
    finally:
        sys.modules.pop("django.contrib.auth.workflow_tasks", None)

    assert registry.names() == ["auth.greet"]
