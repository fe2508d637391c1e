"""What approvals and questions have in common: how the text, the shown values and the audience are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows.engine.contract import Entry
from workflows.expressions import BadExpression, Value
from workflows.jsonvalue import text_of
from workflows.steps.entering import kind_of_value


def rendered_text(entry: Entry, value: Value) -> str:
    """The text of a question. A value alone (``${ x }``) is written as text."""
    rendered = entry.evaluate(value)
    if rendered is None:
        raise BadExpression('"ask" gave null; a question needs a text.')
    return text_of(rendered)


def shown(entry: Entry) -> list[Mapping[str, Any]]:
    return [{"name": one["name"], "value": entry.evaluate(one["value"])} for one in entry.step.options["show"]]


def audience(entry: Entry, written: Value | None) -> dict[str, list[str]]:
    """``{users, groups}`` as lists of names; empty: everyone who may see the run."""
    if written is None:
        return {}
    value = entry.evaluate(written)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadExpression(f"People are given as users and groups, but this is {kind_of_value(value)}.")
    return {key: names(value[key], key) for key in ("users", "groups") if value.get(key) is not None}


def names(value: Any, what: str) -> list[str]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadExpression(f'"{what}" must be a list of names, but it is {kind_of_value(value)}.')
    return value
