"""Expressions of a file: that they can be read, fit in type, and read only what exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from workflows.definitions.validation.names import Names, Use
from workflows.definitions.validation.places import Place, texts
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.variable_types import types_in, variable_types
from workflows.definitions.wording import cut
from workflows.expressions.analysis import ExpressionInfo, analyse, double_braces
from workflows.expressions.checking import CelType, TypeProblem, static_type

_LOOKS_FIRST = ("outcome", "visits", "error", "exit_code")

cached_analysis = lru_cache(maxsize=4096)(analyse)


def check_expressions(found: Iterable[Place], names: Names, report: Report) -> None:
    """Report E401 to E416 (the rest of E41x elsewhere) for every evaluated value."""
    checked = list(found)
    known_types = variable_types(checked)
    by_scope: dict[int, dict[str, CelType]] = {}
    for place in checked:
        if (types := by_scope.get(id(place.scope))) is None:
            types = by_scope[id(place.scope)] = types_in(place.scope, known_types)
        for path, text in texts(place.value, place.path):
            _check_text(text, path, place, types, names, report)
        if place.is_condition and isinstance(place.value, str):
            _check_condition(place, types, report)
        if place.key == "over" and isinstance(place.value, str):
            _check_list(place, types, report)


def _check_text(
    text: str, path: Path, place: Place, types: Mapping[str, CelType], names: Names, report: Report
) -> None:
    if "{" not in text:
        return
    for problem in double_braces(text):
        report.add(problem.code, path, problem.message, problem.hint)
    infos = cached_analysis(text) if "${" in text else ()
    asked = _asked(infos, place)
    for info in infos:
        before = len(report.problems)
        for problem in info.problems:
            report.add(problem.code, path, problem.message, problem.hint)
        use = Use(path=path, scope=place.scope, asked=asked, keeps_null=_is_bare_output(info))
        for reference in info.references:
            names.check(reference.path, use)
        if info.tree is not None and len(report.problems) == before:
            _check_type(info, path, types, report)


def _is_bare_output(info: ExpressionInfo) -> bool:
    """Whether the whole value is ``${ steps.x.output }``, which stays null when the step has not run."""
    paths = [reference.path for reference in info.references]
    return info.is_whole_text and len(paths) == 1 and len(paths[0]) == 3 and ".".join(paths[0]) == info.source


def _asked(infos: tuple[ExpressionInfo, ...], place: Place) -> frozenset[str]:
    """Steps that the text, or the step's own ``only_if``, asks about before it reads them."""
    only_if = place.step.raw.get("only_if") if place.step is not None else None
    own = cached_analysis(only_if) if isinstance(only_if, str) else ()
    return frozenset(
        reference.path[1]
        for info in (*infos, *own)
        for reference in info.references
        if len(reference.path) > 2 and reference.path[0] == "steps" and reference.path[2] in _LOOKS_FIRST
    ) | frozenset(
        reference.path[1]
        for info in infos
        if "null" in info.source or any(call.name in ("get", "has") for call in info.calls)
        for reference in info.references
        if len(reference.path) > 1 and reference.path[0] == "steps"
    )


def _check_type(info: ExpressionInfo, path: Path, types: Mapping[str, CelType], report: Report) -> None:
    found = static_type(info.source, types)
    if isinstance(found, TypeProblem):
        report.add(found.code, path, found.message, found.hint)


def _check_condition(place: Place, types: Mapping[str, CelType], report: Report) -> None:
    """E413 for a condition that can never be true or false."""
    text: str = place.value
    infos = cached_analysis(text)
    if any(info.problems for info in infos):
        return
    if len(infos) == 1 and infos[0].is_whole_text:
        found = static_type(infos[0].source, types)
        if isinstance(found, CelType) and not found.may_be_condition:
            _not_a_condition(place, f'"{cut(infos[0].source)}" gives {found.word}', _comparison(found), report)
    elif infos:
        hint = "Put the whole condition into one `${ … }`."
        _not_a_condition(place, f'"{cut(text)}" gives text', hint, report)
    else:
        meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(text.lower(), text.lower())
        hint = f"Write {meant} without quotes." if meant in ("true", "false") else "Write it as `${ … }`."
        _not_a_condition(place, f'it is the text "{cut(text)}"', hint, report)


def _check_list(place: Place, types: Mapping[str, CelType], report: Report) -> None:
    """E409 for the list of a map that can never be one."""
    infos = cached_analysis(place.value)
    if len(infos) != 1 or not infos[0].is_whole_text or infos[0].problems:
        return
    found = static_type(infos[0].source, types)
    if isinstance(found, CelType) and found not in (CelType.LIST, CelType.DYN):
        message = f'"over" must be a list, but "{cut(infos[0].source)}" gives {found.word}.'
        report.add("E409", place.path, message, "Write an expression that gives a list, one entry per item.")


def _not_a_condition(place: Place, but: str, hint: str, report: Report) -> None:
    report.add("E413", place.path, f'"{place.path[-1]}" must be true or false, but {but}.', hint)


def _comparison(found: CelType) -> str:
    examples: dict[CelType, Any] = {
        CelType.STRING: '`!= ""`',
        CelType.INT: "`> 0`",
        CelType.UINT: "`> 0u`",
        CelType.DOUBLE: "`> 0.0`",
        CelType.LIST: "`!= []`",
        CelType.MAP: "`!= {}`",
    }
    return f"Compare it with something, e.g. {examples.get(found, '`!= null`')}."
