"""Parameters and form fields: defaults that fit, patterns that can be read, nothing that looks like a credential."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import re2

from workflows.definitions.credentials import looks_like_credential
from workflows.definitions.field_limits import is_date, is_datetime, is_number
from workflows.definitions.field_values import check_value
from workflows.definitions.models.fields import FIELD_TYPES
from workflows.definitions.models.values import holds_expression, is_name, is_whole
from workflows.definitions.suggestions import did_you_mean
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.tree import Tree
from workflows.definitions.wording import article, cut, flow, sentence, shown, what_it_is

_EXAMPLES = {
    "string": '`default: ""`',
    "integer": "`default: 10`",
    "number": "`default: 1.5`",
    "boolean": "`default: true`",
    "array": "`default: []`",
    "object": "`default: {}`",
    "date": "`default: 2026-01-31`",
    "datetime": "`default: 2026-01-31T09:30:00Z`",
}


def check_fields(document: Mapping[str, Any], tree: Tree, report: Report) -> None:
    """Report E122, E123, E125, E128, E213 and E412 for every parameter and form field."""
    for path, name, declaration in declarations(document, tree):
        if not isinstance(declaration, Mapping):
            continue
        kind = declaration.get("type")
        if isinstance(kind, str) and kind in FIELD_TYPES:
            _check_default(path, name, declaration, report)
            _check_enum(path, name, declaration, report)
        _check_pattern(path, declaration, report)
        _check_bounds(path, declaration, report)
        _check_nested(path, declaration, report)


def declarations(document: Mapping[str, Any], tree: Tree) -> Iterator[tuple[Path, str, Any]]:
    """Every parameter of the workflow and its blocks, and every field of a form: path, name, declaration."""
    yield from _members(document.get("params"), ("params",))
    blocks = document.get("blocks")
    for name, block in blocks.items() if isinstance(blocks, Mapping) else ():
        if isinstance(block, Mapping):
            yield from _members(block.get("params"), ("blocks", name, "params"))
    for step in tree.steps:
        if step.kind in ("approval", "question"):
            yield from _members(step.raw.get("form"), (*step.path, "form"))


def _members(written: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    if isinstance(written, Mapping):
        for name, declaration in written.items():
            yield (*path, name), name, declaration


# ---- defaults --------------------------------------------------------------------------------------------------------


def _check_default(path: Path, name: str, declaration: Mapping[str, Any], report: Report) -> None:
    if "default" not in declaration:
        return
    default, kind, place = declaration["default"], declaration["type"], (*path, "default")
    if looks_like_credential(name, default) and kind == "string":
        _refuse_credential(place, name, report)
    elif holds_expression(default):
        message = '"default" must be fixed text; expressions are not evaluated here.'
        report.add("E412", place, message, "Write the value itself.")
    elif default is None and declaration.get("optional") is True:
        return
    elif not has_type(kind, default):
        refuse_value(place, f"The default {shown(default)}", name, kind, default, report)
    else:
        check_limits(place, f'The default of "{name}"', name, declaration, default, report)


def _refuse_credential(place: Path, name: str, report: Report) -> None:
    proposal = name if is_name(name) else "api_token"
    report.add(
        "E125",
        place,
        f'The default of "{name}" looks like a credential.',
        f"List `{proposal}` under `secrets:` and use it as `{{ secret: {proposal} }}`; change the credential, "
        "it is in the file's history.",
    )


def has_type(kind: str, value: Any) -> bool:
    """Whether a value is of a field's type."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return is_whole(value) or (isinstance(value, float) and value.is_integer())
        case "number":
            return is_number(value)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
        case "date":
            return is_date(value)
    return is_datetime(value)


def refuse_value(place: Path, what: str, name: str, kind: str, value: Any, report: Report) -> None:
    """E123: ``what`` (the default "10") is of another type than ``name``."""
    got = what_it_is(value)
    if kind in ("date", "datetime") and isinstance(value, str):
        got = f"not {article(kind)}"
    elif value is None:
        what, got = what.removesuffix(" null"), "null"
    report.add("E123", place, f'{what} is {got}, but "{name}" is {article(kind)}.', _type_hint(kind, value))


def _type_hint(kind: str, value: Any) -> str:
    if kind == "string" and isinstance(value, int | float | bool):
        return f'Put it in quotes: "{shown(value)}".'
    if isinstance(value, str) and _fits_without_quotes(kind, value):
        return "Remove the quotes."
    if kind == "boolean":
        return "Write true or false."
    if kind == "array" and not isinstance(value, Mapping | list) and value is not None:
        return f"Write a list: [{cut(flow(value))}]."
    if kind == "date":
        return "Write it as 2026-01-31: year, month, day with dashes."
    if kind == "datetime":
        return "Write it as 2026-01-31T09:30:00Z: date, T, time, and Z or an offset."
    if value is None:
        return "Remove `default` and write `optional: true`."
    return f"Write e.g. {_EXAMPLES[kind]}."


def _fits_without_quotes(kind: str, text: str) -> bool:
    patterns = {"integer": r"-?[0-9]+", "number": r"-?[0-9]+(\.[0-9]+)?", "boolean": "true|false"}
    return kind in patterns and re.fullmatch(patterns[kind], text) is not None


def check_limits(place: Path, what: str, name: str, declaration: Mapping[str, Any], value: Any, report: Report) -> None:
    """E123 for a value of the right type that the declaration's limits refuse, or whose members are of another type."""
    try:
        _, problems = check_value({**declaration, "name": name}, value, name)
    except (KeyError, TypeError, ValueError, AttributeError):
        return  # the declaration itself is wrong; that is reported where it stands
    for problem in problems:
        message = (
            problem.message.replace(f'"{name}"', what, 1) if problem.path == name else f"{what}: {problem.message}"
        )
        report.add("E123", place, message, problem.hint)


# ---- the rest of a declaration ---------------------------------------------------------------------------------------


def _check_enum(path: Path, name: str, declaration: Mapping[str, Any], report: Report) -> None:
    enum, labels, kind = declaration.get("enum"), declaration.get("labels"), declaration["type"]
    if not isinstance(enum, list):
        return
    if not enum:
        report.add("E221", (*path, "enum"), '"enum" is empty.', "List the allowed values.")
    for index, value in enumerate(enum):
        if kind not in ("array", "object") and not has_type(kind, value):
            refuse_value((*path, "enum", index), f"The allowed value {shown(value)}", name, kind, value, report)
    if isinstance(labels, list) and len(labels) != len(enum):
        report.add(
            "E221",
            (*path, "labels"),
            f'"labels" has {len(labels)} texts, but "enum" has {len(enum)} values.',
            "Write one label for each value, in the same order.",
        )


def _check_pattern(path: Path, declaration: Mapping[str, Any], report: Report) -> None:
    pattern = declaration.get("pattern")
    if not isinstance(pattern, str):
        return
    reason = pattern_trouble(pattern)
    if reason:
        report.add(
            "E128",
            (*path, "pattern"),
            f"{shown(pattern)} is not a valid regular expression: {reason}.",
            "Patterns use RE2 syntax and must match the whole value.",
        )


def pattern_trouble(pattern: str) -> str:
    """Why ``pattern`` is not an RE2 expression; "" when it is one."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as trouble:
        try:
            re.compile(pattern)
        except re.error as known:
            return str(known).partition(" (line")[0]
        reason: object = trouble.args[0] if trouble.args else ""
        return reason.decode() if isinstance(reason, bytes) else str(reason)
    return ""


def _check_bounds(path: Path, declaration: Mapping[str, Any], report: Report) -> None:
    for least, most in (("min", "max"), ("min_length", "max_length")):
        low, high = declaration.get(least), declaration.get(most)
        if low is not None and high is not None and is_number(low) and is_number(high) and low > high:
            report.add(
                "E213",
                (*path, most),
                f'"{most}" must not be below "{least}" ({shown(low)}), got {shown(high)}.',
                "No value could fit; swap them or change one.",
            )


def _check_nested(path: Path, declaration: Mapping[str, Any], report: Report) -> None:
    """E122 for types inside of arrays and objects."""
    items, properties = declaration.get("items"), declaration.get("properties")
    inner: list[tuple[Path, Any]] = [((*path, "items"), items)] if isinstance(items, Mapping) else []
    if isinstance(properties, Mapping):
        inner += [((*path, "properties", name), value) for name, value in properties.items()]
    for place, nested in inner:
        if not isinstance(nested, Mapping):
            continue
        kind = nested.get("type")
        if kind is not None and kind not in FIELD_TYPES:
            suggestion = did_you_mean(kind, FIELD_TYPES, "field type") if isinstance(kind, str) else ""
            hint = sentence(suggestion, f"Types: {', '.join(FIELD_TYPES)}.")
            report.add("E122", (*place, "type"), f"{shown(kind)} is not a parameter type.", hint)
        _check_pattern(place, nested, report)
        _check_nested(place, nested, report)
