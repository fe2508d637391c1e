"""``map``: a body for every item of a list."""

from __future__ import annotations

from typing import Any

from workflows.engine.contract import Entered, Entry, FanOut
from workflows.expressions import BadExpression
from workflows.jsonvalue import text_of
from workflows.steps.entering import failed, kind_of_value, milliseconds


class MapKind:
    name = "map"

    def enter(self, entry: Entry) -> Entered:
        """The list is evaluated once; too many items and equal keys fail the step before any item starts."""
        options = entry.step.options
        values = entry.evaluate(options["over"])
        if not isinstance(values, list):
            raise BadExpression(f'"over" must give a list, but it gave {kind_of_value(values)}.')
        if len(values) > options["max_items"]:
            message = f"The list has {len(values)} items; max_items is {options['max_items']}."
            return failed("too_many_items", message)
        keys = None if options["key"] is None else [self._key(entry, value, i) for i, value in enumerate(values)]
        if keys is not None and len(set(keys)) < len(keys):
            return failed("duplicate_key", _equal_keys(keys))
        return FanOut(values=values, keys=keys, timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"))

    @staticmethod
    def _key(entry: Entry, value: Any, index: int) -> str:
        options = entry.step.options
        key = entry.evaluate_with(options["key"], {options["as"]: value, "index": index})
        if key is None:
            raise BadExpression(f'"key" gave null for item {index}; every item needs a key.')
        return text_of(key)


def _equal_keys(keys: list[str]) -> str:
    seen: dict[str, int] = {}
    for index, key in enumerate(keys):
        if key in seen:
            return f'Items {seen[key]} and {index} have the same key "{key[:100]}".'
        seen[key] = index
    raise AssertionError("all keys differ")
