"""Fields that a workflow file declares, as a form shows and reads them."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.definitions.parameters import FIELD_WORDS, check_parameters
from workflows.errors import Problem
from workflows.pages.fields import FieldView, field_views, other_problems, typed

TEXT = {"name": "x", "type": "string"}
LIST = {"name": "x", "type": "array", "items": {"type": "string"}}


def view(declaration: dict[str, Any], posted: str | None = None, *problems: Problem) -> FieldView:
    given = None if posted is None else {"field-x": posted}
    return field_views([declaration], given, problems)[0]


@pytest.mark.parametrize(
    ("declaration", "widget"),
    [
        (TEXT, "text"),
        ({**TEXT, "multiline": True}, "area"),
        ({**TEXT, "sensitive": True}, "secret"),
        ({**TEXT, "enum": ["a", "b"]}, "choices"),
        ({"name": "x", "type": "boolean"}, "choices"),
        ({"name": "x", "type": "integer"}, "number"),
        ({"name": "x", "type": "number"}, "number"),
        ({"name": "x", "type": "date"}, "date"),
        ({"name": "x", "type": "datetime"}, "text"),
        ({"name": "x", "type": "object"}, "json"),
        (LIST, "lines"),
        ({"name": "x", "type": "array"}, "json"),
        ({"name": "x", "type": "array", "items": {"type": "object"}}, "json"),
    ],
)
def test_each_type_has_its_widget(declaration: dict[str, Any], widget: str) -> None:
    assert view(declaration).widget == widget


@pytest.mark.parametrize(
    ("declaration", "text", "value"),
    [
        (TEXT, " kept as it is ", " kept as it is "),
        (TEXT, "one\r\ntwo", "one\ntwo"),
        ({"name": "x", "type": "integer"}, "12", 12),
        ({"name": "x", "type": "number"}, "1.5", 1.5),
        ({"name": "x", "type": "boolean"}, "false", False),
        ({"name": "x", "type": "integer", "enum": [1, 2]}, "2", 2),
        ({"name": "x", "type": "object"}, '{"a": [1]}', {"a": [1]}),
        (LIST, "one\r\n\r\n two ", ["one", "two"]),
        (LIST, '["one", "two\\nlines"]', ["one", "two\nlines"]),
        ({**LIST, "items": {"type": "integer"}}, "1\n2", [1, 2]),
        ({**TEXT, "default": "d"}, "", ""),  # a default that was cleared
    ],
)
def test_what_is_typed_becomes_the_value(declaration: dict[str, Any], text: str, value: object) -> None:
    said = typed([declaration], {"field-x": text})
    checked = check_parameters([declaration], said.given, from_text=said.from_text, words=FIELD_WORDS)
    assert checked.problems == ()
    assert checked.values == {"x": value}


@pytest.mark.parametrize("kind", ["string", "integer", "boolean", "object", "date"])
def test_an_empty_field_is_left_out(kind: str) -> None:
    assert typed([{"name": "x", "type": kind, "optional": True}], {"field-x": " "}).given == {}


@pytest.mark.parametrize(
    ("declaration", "text"),
    [
        ({**TEXT, "default": "d"}, "d"),
        ({"name": "x", "type": "integer", "default": 3}, "3"),
        ({"name": "x", "type": "boolean", "default": True}, "true"),
        ({**LIST, "default": ["a", "b"]}, "a\nb"),
        ({**LIST, "default": ["a\nb"]}, '["a\\nb"]'),
        ({**LIST, "default": ["[a"]}, '["[a"]'),
        ({"name": "x", "type": "object", "default": {"a": 1}}, '{"a": 1}'),
    ],
)
def test_a_default_stands_in_the_field_and_is_read_back_the_same(declaration: dict[str, Any], text: str) -> None:
    shown = view(declaration)
    assert shown.value == text
    said = typed([declaration], {"field-x": shown.value})
    checked = check_parameters([declaration], said.given, from_text=said.from_text, words=FIELD_WORDS)
    assert checked.values == {"x": declaration["default"]}


def test_choices_have_their_labels_and_one_is_chosen() -> None:
    shown = view({**TEXT, "enum": ["a", "b"], "labels": ["First", "Second"], "default": "b"})
    assert [(one.value, one.label, one.is_chosen) for one in shown.choices] == [
        ("a", "First", False),
        ("b", "Second", True),
    ]
    asked = view({**TEXT, "enum": ["a"]})
    assert [one.value for one in asked.choices] == ["", "a"]


def test_a_secret_does_not_come_back() -> None:
    assert view({**TEXT, "sensitive": True, "default": "hidden"}).value == ""
    assert view({**TEXT, "sensitive": True}, "typed").value == ""


def test_problems_stand_at_their_field_and_the_others_apart() -> None:
    inside = Problem(code="E602", path="x[0].a", message="m")
    apart = Problem(code="E604", path="choice", message="m")
    assert view(LIST, "a", inside, apart).problems == (inside,)
    assert other_problems([LIST], [inside, apart]) == [apart]
