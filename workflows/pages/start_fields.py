"""The fields of a start form: those of ``pages/fields.py``, and objects with declared members as nested ones.

What is in a form is a mapping of input names to texts. It can be made of values (defaults, an earlier run, JSON) and
back, so that the form and its JSON say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workflows.definitions.field_values import converted
from workflows.errors import Problem
from workflows.pages.fields import PREFIX, SECRETS, Choice, FieldView, Typed, field_views, typed
from workflows.pages.tags import pretty

Declaration = Mapping[str, Any]
Texts = Mapping[str, str]
#: Between the name of a parameter and that of its member, in the name of an input; no name has it.
_INSIDE = ":"
_MOST_MEMBERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """An object whose members are fields."""

    name: str
    label: str
    hint: str
    is_required: bool
    fields: tuple[FieldView, ...]
    problems: tuple[Problem, ...]

    @property
    def is_group(self) -> bool:
        return True


def is_nested(declaration: Declaration) -> bool:
    """Whether an object is shown as fields of its own: its members are declared, few, and no objects themselves."""
    members = declaration.get("properties") or {}
    simple = all((one.get("type") or "object") != "object" for one in members.values())
    return declaration["type"] == "object" and 0 < len(members) <= _MOST_MEMBERS and simple


def start_fields(
    declarations: Iterable[Declaration], texts: Texts, problems: Sequence[Problem] = ()
) -> list[FieldView | FieldGroup]:
    """The fields with what is in them, in the order of the declarations."""
    return [
        _group(declaration, texts, problems) if is_nested(declaration) else _field(declaration, texts, problems)
        for declaration in declarations
    ]


def _field(declaration: Declaration, texts: Texts, problems: Sequence[Problem]) -> FieldView:
    view = field_views([declaration], texts, problems)[0]
    # what a person typed into a hidden field is theirs; it comes back like everything else
    typed_text = texts.get(view.input_name, "") if view.widget in SECRETS else view.value
    return replace(
        view, value=typed_text, hint=_with_default(view.hint, declaration), choices=_with_foreign(view, texts)
    )


def _with_foreign(view: FieldView, texts: Texts) -> tuple[Choice, ...]:
    """The choices, and what a link or an earlier version chose that is not among them: it must not change unseen."""
    text = texts.get(view.input_name, "")
    if view.widget != "choices" or not text or any(one.is_chosen for one in view.choices):
        return view.choices
    return (*view.choices, Choice(value=text, label=f"{text[:80]} (not allowed here)", is_chosen=True))


def _with_default(hint: str, declaration: Declaration) -> str:
    if declaration["type"] in ("integer", "number", "date", "datetime") and declaration.get("default") is not None:
        return f"{hint} Left empty: {declaration['default']}.".strip()
    return hint


def _group(declaration: Declaration, texts: Texts, problems: Sequence[Problem]) -> FieldGroup:
    name = declaration["name"]
    own = [problem for problem in problems if problem.path == name]
    inside = [
        replace(problem, path=problem.path.replace(f"{name}.", f"{name}{_INSIDE}", 1))
        for problem in problems
        if problem.path.startswith(f"{name}.")
    ]
    is_required = not declaration.get("optional") and "default" not in declaration
    fields = [_field(member, texts, inside) for member in _members(declaration)]
    if not is_required:  # left empty altogether it is left out, so no member of it has to be there
        fields = [replace(one, is_required=False) for one in fields]
    told = {problem for one in fields for problem in one.problems}
    own += [replace(problem, path=name) for problem in inside if problem not in told]
    return FieldGroup(
        name=name,
        label=str(declaration.get("title") or _spelled_out(name)),
        hint=str(declaration.get("description") or ""),
        is_required=is_required,
        fields=tuple(fields),
        problems=tuple(own),
    )


def _members(declaration: Declaration) -> Iterator[Declaration]:
    hidden = {"sensitive": True} if declaration.get("sensitive") else {}
    for name, member in declaration["properties"].items():
        yield {
            "title": _spelled_out(name),
            **member,
            **hidden,
            "name": f"{declaration['name']}{_INSIDE}{name}",
        }


def _spelled_out(name: str) -> str:
    return name.replace("_", " ").capitalize()


# ---- from values to texts --------------------------------------------------------------------------------------------


def default_texts(declarations: Iterable[Declaration]) -> dict[str, str]:
    """What is in a form that nobody has touched."""
    return texts_of(
        declarations, {one["name"]: one["default"] for one in declarations if one.get("default") is not None}
    )


def texts_of(declarations: Iterable[Declaration], values: Mapping[str, Any], *, hide: bool = False) -> dict[str, str]:
    """``values`` by name as what is in the form. ``hide`` leaves out those of sensitive parameters."""
    texts: dict[str, str] = {}
    for declaration in declarations:
        value = values.get(declaration["name"])
        if value is None or (hide and declaration.get("sensitive")):
            continue
        if is_nested(declaration) and isinstance(value, dict):
            for member in _members(declaration):
                inner = value.get(member["name"].partition(_INSIDE)[2])
                if inner is not None and not (hide and member.get("sensitive")):
                    texts[PREFIX + member["name"]] = _text(member, inner)
        else:
            texts[PREFIX + declaration["name"]] = _text(declaration, value)
    return texts


def _text(declaration: Declaration, value: Any) -> str:
    """The text that an untouched form would show for a default of this value."""
    if value == []:
        return ""
    is_plain_list = isinstance(value, list) and not any(isinstance(item, (list, dict, bool)) for item in value)
    if declaration["type"] == "array" and not is_plain_list:
        return pretty(value)
    shown = {**declaration, "default": value, "sensitive": False}
    return field_views([shown], None)[0].value


# ---- from texts to values --------------------------------------------------------------------------------------------


def typed_values(declarations: Sequence[Declaration], texts: Texts) -> Typed:
    """What was typed, for ``check_parameters``. An empty list field is an empty list where leaving it out would
    mean something else; an object without any member is left out."""
    flat = [declaration for declaration in declarations if not is_nested(declaration)]
    found = typed(flat, texts)
    given = dict(found.given)
    for declaration in flat:
        name = declaration["name"]
        is_required = not declaration.get("optional") and "default" not in declaration
        may_be_cleared = bool(declaration.get("default")) or is_required
        if declaration["type"] == "array" and may_be_cleared and name not in given and PREFIX + name in texts:
            given[name] = []
    for declaration in declarations:
        if is_nested(declaration):
            members = _typed_members(declaration, texts)
            if members:
                given[declaration["name"]] = members
    return Typed(given=given, from_text=found.from_text)


def _typed_members(declaration: Declaration, texts: Texts) -> dict[str, Any]:
    members = {member["name"]: member for member in _members(declaration)}
    inside = typed(members.values(), texts)
    return {
        name.partition(_INSIDE)[2]: _value(members[name], value) if name in inside.from_text else value
        for name, value in inside.given.items()
    }


def plain_values(declarations: Sequence[Declaration], texts: Texts) -> dict[str, Any]:
    """What was typed as JSON values; a text that cannot be what is declared stays a text."""
    found = typed_values(declarations, texts)
    by_name = {declaration["name"]: declaration for declaration in declarations}
    return {
        name: _value(by_name[name], value) if name in found.from_text else value for name, value in found.given.items()
    }


def _value(declaration: Declaration, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    changed, problems = converted(declaration, value)
    return value if problems else changed
