"""Parameters from the command line: ``-P name=text``, ``-P name:=json``, ``-P name=@file``, ``--input FILE``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from workflows.errors import Problem, Refusal
from workflows.jsonvalue import read_json
from workflows.management.base import read_text


@dataclass(slots=True, kw_only=True)
class Given:
    """``values`` by name; ``from_text`` names those that are text, to be converted by the declared type."""

    values: dict[str, Any] = field(default_factory=dict)
    from_text: set[str] = field(default_factory=set)


def given_parameters(words: Iterable[str], input_file: str | None) -> Given:
    """What was given; a ``-P`` replaces the value of the input file. Raises ``input.invalid``, ``params.invalid``."""
    given = Given(values=_from_file(input_file) if input_file is not None else {})
    seen: set[str] = set()
    for word in words:
        name, value, is_text = _parameter(word)
        if name in seen:
            raise Refusal("input.invalid", reason=f'Parameter "{name}" is given twice.')
        seen.add(name)
        given.values[name] = value
        given.from_text.discard(name)
        if is_text:
            given.from_text.add(name)
    return given


def _parameter(word: str) -> tuple[str, Any, bool]:
    name, separator, text = word.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":")
    if not separator or not name:
        raise Refusal(
            "input.invalid",
            reason=f'"-P {word}" is not a parameter; write -P name=text, -P name:=json or -P name=@file.',
        )
    if text.startswith("@"):
        text = read_text(text[1:])
    return (name, _json(text, name), False) if is_json else (name, text, True)


def _json(text: str, name: str) -> Any:
    value, problems = read_json(text)
    if problems:
        _refuse([_at(problem, name) for problem in problems])
    return value


def _at(problem: Problem, name: str) -> Problem:
    return Problem(
        code=problem.code,
        path=name,
        message=problem.message.replace("The file is", f'The value of "{name}" is', 1),
        hint=problem.hint,
        line=problem.line,
        column=problem.column,
    )


def _from_file(path: str) -> dict[str, Any]:
    value, problems = read_json(read_text(path))
    if problems:
        _refuse(problems)
    if not isinstance(value, dict):
        message = "The file is not usable JSON: it must be an object that maps names of parameters to values."
        _refuse([Problem(code="E609", path="(file)", message=message, hint='Example: {"region": "eu"}.')])
    values: dict[str, Any] = value
    return values


def _refuse(problems: list[Problem]) -> None:
    raise Refusal("params.invalid", count=len(problems), problems=tuple(problems))
