"""Small changes of workflow files, to find what is refused and what breaks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflows.definitions.source import read_source

DATA = Path(__file__).parent.parent / "data"
VALUES: tuple[Any, ...] = (
    None, True, 5, -1, 0, 1.5, "", "text", "Bad Name", "${ 1 }", "5m", [], {}, [1], ["a"], {"a": 1}, {"secret": "x"},
)  # fmt: skip

Place = tuple[str | int, ...]


def small_files() -> dict[str, dict[str, Any]]:
    """The reference file in parts: each of its steps in a file of its own, and the rest with one step."""
    document = read_source((DATA / "examples" / "reference.yaml").read_bytes()).document
    files = {step["id"]: {"format": 1, "name": "part", "steps": [step]} for step in document["steps"]}
    simple = [{"id": "only", "kind": "shell", "run": "true"}]
    top = {key: value for key, value in document.items() if key not in ("steps", "on_failure", "finally", "output")}
    files["(top)"] = {**top, "steps": simple}
    closing = {key: document[key] for key in ("on_failure", "finally", "output")}
    files["(closing)"] = {"format": 1, "name": "part", "steps": simple, **closing}
    return files


def mutations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """``document`` with one value replaced, one key removed, renamed or added; each with a description."""
    for place in _places(document):
        if place:
            for value in VALUES:
                yield f"{place} set to {value!r}", _changed(document, place, value)
        if place and isinstance(place[-1], str):
            yield f"{place} removed", _without(document, place)
            yield f"{place} renamed", _changed(_without(document, place), (*place[:-1], f"x{place[-1]}"), 1)
        if isinstance(_at(document, place), dict):
            yield f"{place} with another key", _changed(document, (*place, "bogus"), 1)


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _places(member, (*place, key))


def _at(document: Any, place: Place) -> Any:
    for part in place:
        document = document[part]
    return document


def _changed(document: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    _at(changed, place[:-1])[place[-1]] = copy.deepcopy(value)
    return changed


def _without(document: dict[str, Any], place: Place) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    del _at(changed, place[:-1])[place[-1]]
    return changed
