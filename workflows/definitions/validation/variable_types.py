"""Types of variables, as far as the file fixes them: the initial value's, unless something else is assigned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workflows.definitions.validation.places import Place
from workflows.definitions.validation.scopes import Scope, Variable
from workflows.expressions.analysis import analyse
from workflows.expressions.checking import CelType, TypeProblem, static_type, type_of_field, type_of_value

#: A variable by the identity of its home and its name.
Key = tuple[int, str]


def variable_types(places: Iterable[Place]) -> dict[Key, CelType]:
    """The type of each variable that every assignment keeps; the others are left out."""
    listed = list(places)
    visible = {id(place.scope.variables): place.scope.variables for place in listed}
    declared = {key_of(name, variable): variable for each in visible.values() for name, variable in each.items()}
    types: dict[Key, CelType] = {
        key: found for key, variable in declared.items() if (found := _initial(variable.value)) != CelType.DYN
    }
    assignments = [
        (key_of(name, variable), value, place)
        for place in listed
        if place.key == "set" and place.step is not None and place.step.kind == "assign"
        for name, value in (place.value.items() if isinstance(place.value, Mapping) else ())
        if (variable := place.scope.variables.get(name)) is not None
    ]
    changed = True
    while changed:
        changed = False
        for key, value, place in assignments:
            if key in types and _assigned(value, place, types) != types[key]:
                del types[key]
                changed = True
    return types


def key_of(name: str, variable: Variable) -> Key:
    """Identifies a variable in one file."""
    return (id(variable.home), name)


def _initial(value: Any) -> CelType:
    if isinstance(value, str) and "${" in value:
        return CelType.DYN
    return type_of_value(value)


def _assigned(value: Any, place: Place, types: Mapping[Key, CelType]) -> CelType:
    if not isinstance(value, str) or "${" not in value:
        return type_of_value(value)
    infos = analyse(value)
    if len(infos) != 1 or not infos[0].is_whole_text:
        return CelType.STRING
    found = static_type(infos[0].source, types_in(place.scope, types))
    return CelType.DYN if isinstance(found, TypeProblem) else found


def types_in(scope: Scope, variables: Mapping[Key, CelType]) -> dict[str, CelType]:
    """What is known about the types of the names of a scope, by dotted path."""
    types = {f"run.{name}": CelType.STRING for name in ("workflow", "started_at")}
    for name, declaration in scope.params.items():
        kind = declaration.get("type") if isinstance(declaration, Mapping) else None
        if isinstance(kind, str):
            types[f"params.{name}"] = type_of_field(kind, optional=declaration.get("optional") is True)
    for name, variable in scope.variables.items():
        types[f"vars.{name}"] = variables.get(key_of(name, variable), CelType.DYN)
    if "index" in scope.extra:
        types["index"] = CelType.INT
    return types
