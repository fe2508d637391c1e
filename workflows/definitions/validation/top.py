"""The keys at the top of a file: other tools' files, variables, schedules, schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from workflows.definitions.models.fields import FIELD_TYPES
from workflows.definitions.models.values import is_name
from workflows.definitions.validation.fields import check_limits, has_type, refuse_value
from workflows.definitions.validation.known import is_required
from workflows.definitions.validation.names import report_parameter
from workflows.definitions.validation.report import Path, Report, last_name
from workflows.definitions.validation.schedules import cron_problem, zone_problem
from workflows.definitions.validation.tree import Tree
from workflows.definitions.wording import shown, what_it_is


def check_top(document: Mapping[str, Any], tree: Tree, report: Report) -> None:
    """Report E123, E127, E129, E221, E404, E504 and E505 for keys outside of steps, and for the schemas of steps."""
    _check_variables(document, tree, report)
    schedules = document.get("schedule")
    for index, schedule in enumerate(schedules if isinstance(schedules, list) else []):
        if isinstance(schedule, Mapping):
            _check_schedule(document, schedule, ("schedule", index), report)
    for path, schema in _schemas(document, tree):
        _check_schema(schema, path, report)


# ---- variables -------------------------------------------------------------------------------------------------------


def _check_variables(document: Mapping[str, Any], tree: Tree, report: Report) -> None:
    for path, variables in _variable_lists(document, tree):
        for name, value in variables.items() if isinstance(variables, Mapping) else ():
            if value is None or (isinstance(value, Mapping) and set(value) != {"value"}):
                report.add(
                    "E127",
                    (*path, name),
                    f'Variable "{name}" needs an initial value.',
                    _variable_hint(name, value),
                )


def _variable_lists(document: Mapping[str, Any], tree: Tree) -> Iterator[tuple[Path, Any]]:
    yield ("vars",), document.get("vars")
    blocks = document.get("blocks")
    for name, block in blocks.items() if isinstance(blocks, Mapping) else ():
        if isinstance(block, Mapping):
            yield ("blocks", name, "vars"), block.get("vars")
    for step in tree.steps:
        if step.kind == "map":
            yield (*step.path, "vars"), step.raw.get("vars")


def _variable_hint(name: str, value: Any) -> str:
    if isinstance(value, Mapping) and value:
        return f"Write `{name}: {{ value: {{ … }} }}` for a mapping."
    return f'Write `{name}: 0`, `{name}: ""`, `{name}: []` or `{name}: {{ value: null }}`.'


# ---- schedules -------------------------------------------------------------------------------------------------------


def _check_schedule(document: Mapping[str, Any], schedule: Mapping[str, Any], path: Path, report: Report) -> None:
    cron, zone = schedule.get("cron"), schedule.get("timezone")
    problems = [
        cron_problem(cron, "cron") if isinstance(cron, str) else None,
        zone_problem(zone, "timezone") if isinstance(zone, str) else None,
    ]
    for problem in problems:
        if problem is not None:
            report.add(problem.code, (*path, problem.path), problem.message, problem.hint)
    _check_schedule_params(document, schedule, path, report)


def _check_schedule_params(
    document: Mapping[str, Any], schedule: Mapping[str, Any], path: Path, report: Report
) -> None:
    declared = document.get("params", {})
    given = schedule.get("params", {})
    if not isinstance(declared, Mapping) or not isinstance(given, Mapping):
        return
    for name, declaration in declared.items():
        if isinstance(declaration, Mapping) and is_required(declaration) and name not in given and is_name(name):
            report.add(
                "E129",
                path,
                f'This schedule gives no value for the required parameter "{name}".',
                f"Add `params: {{ {name}: … }}` to the schedule or a default to the parameter.",
            )
    for name, value in given.items():
        place = (*path, "params", name)
        if name not in declared:
            report_parameter(name, list(declared), place, report)
            continue
        kind = declared[name].get("type") if isinstance(declared[name], Mapping) else None
        if kind not in FIELD_TYPES or (value is None and declared[name].get("optional") is True):
            continue
        if not has_type(kind, value):
            refuse_value(place, f"The value {shown(value)}", name, kind, value, report)
        else:
            check_limits(place, f'The value of "{name}"', name, declared[name], value, report)


# ---- JSON Schemas ----------------------------------------------------------------------------------------------------


def _schemas(document: Mapping[str, Any], tree: Tree) -> Iterator[tuple[Path, Any]]:
    yield ("returns",), document.get("returns")
    for step in tree.steps:
        if "schema" in step.raw and step.kind is not None:
            yield (*step.path, "schema"), step.raw["schema"]


def _check_schema(schema: Any, path: Path, report: Report) -> None:
    if not isinstance(schema, dict):
        return
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as trouble:
        _refuse_word(trouble, path, report)
        return
    try:
        jsonschema_rs.validator_for(schema, retriever=_no_retrieval)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        message = f'"{path[-1]}" refers to a schema that cannot be found in it.'
        hint = "Schemas are not fetched from elsewhere; use `$defs` and `$ref: '#/$defs/NAME'`."
        report.add("E221", path, message, hint)


def _refuse_word(trouble: jsonschema_rs.ValidationError, path: Path, report: Report) -> None:
    place = (*path, *trouble.instance_path)
    found = trouble.instance
    value = what_it_is(found) if isinstance(found, list | dict) else shown(found)
    is_type = place[-1] == "type"
    report.add(
        "E221",
        place,
        f'"{last_name(place)}" cannot be {value} in a JSON Schema.',
        "Types: string, integer, number, boolean, array, object, null."
        if is_type
        else "See https://json-schema.org for the words of the language.",
    )


def _no_retrieval(uri: str) -> Any:
    raise ValueError(uri)
