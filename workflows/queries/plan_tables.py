"""Steps and parameters of a plan as tables. Pure: no database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workflows.definitions.plan import Body, Plan, StepPlan
from workflows.queries.graph_words import title_of, words_of_note

_MOST_TEXT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """A step of the file. ``timeout`` is milliseconds, or the text of an expression; ``attempts`` counts the first.
    ``people`` are who may answer, ``routes`` outcome and target of what the file or the format sends elsewhere."""

    step: str
    kind: str
    title: str
    note: str
    section: str
    depth: int
    routes: tuple[tuple[str, str], ...]
    timeout: int | str | None
    attempts: int
    access: str
    max_visits: int | None
    only_if: str
    people: tuple[str, ...]

    @property
    def timeout_ms(self) -> int | None:
        return self.timeout if isinstance(self.timeout, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterLine:
    """``needed`` is yes, no, or the default as JSON; ``limits`` are the rules for values in words."""

    name: str
    title: str
    type: str
    description: str
    is_required: bool
    default: str | None
    limits: tuple[str, ...]
    is_sensitive: bool


def step_lines(plan: Plan) -> list[StepLine]:
    """The steps in reading order; what runs after a failure, at the end, and in blocks comes after the main steps."""
    sections: list[tuple[str, Body | None]] = [("", plan.main), ("on failure", plan.on_failure)]
    sections += [("finally", plan.closing), *((f"block {name}", body) for name, body in plan.blocks.items())]
    return [line for name, body in sections for line in _lines(body, name, 0)]


def _lines(body: Body | None, section: str, depth: int) -> Iterator[StepLine]:
    for step in body.steps if body is not None else ():
        yield _line(step, section, depth)
        for inner in step.bodies.values():
            if inner.kind != "block":
                yield from _lines(inner, section, depth + 1)


def _line(step: StepPlan, section: str, depth: int) -> StepLine:
    main = step.routes.get(step.main_outcome or "")
    routes = {outcome: target for outcome, target in step.routes.items() if outcome not in step.unrouted}
    timeout = step.timeout
    return StepLine(
        step=step.id,
        kind=step.kind,
        title=title_of(step),
        note=words_of_note(step),
        section=section,
        depth=depth,
        routes=tuple(
            (outcome, target) for outcome, target in routes.items() if target != main or outcome == step.main_outcome
        ),
        timeout=timeout if timeout is None or isinstance(timeout, int) else str(timeout.source),
        attempts=max((policy.attempts for policy in step.retry), default=1),
        access=step.access or "",
        max_visits=step.max_visits,
        only_if=str(step.only_if.source) if step.only_if is not None else "",
        people=_people(step),
    )


def _people(step: StepPlan) -> tuple[str, ...]:
    audience = step.options.get("by") or step.options.get("to")
    if step.kind not in ("approval", "question"):
        return ()
    if audience is None or not isinstance(audience.source, Mapping):
        return ("everyone who may answer",)
    written = audience.source
    groups = written.get("groups") or []
    users = written.get("users") or []
    return (
        *(str(user) for user in (users if isinstance(users, list) else [users])),
        *(f"group {group}" for group in (groups if isinstance(groups, list) else [groups])),
    )


def parameter_lines(declarations: tuple[Mapping[str, Any], ...]) -> list[ParameterLine]:
    """The declared parameters in the order of the file."""
    return [
        ParameterLine(
            name=field["name"],
            title=field.get("title") or "",
            type=_type(field),
            description=field.get("description") or "",
            is_required="default" not in field and not field.get("optional"),
            default=_shown(field),
            limits=tuple(_limits(field)),
            is_sensitive=bool(field.get("sensitive")),
        )
        for field in declarations
    ]


def _type(field: Mapping[str, Any]) -> str:
    items = field.get("items") or {}
    if field["type"] == "array" and items.get("type"):
        return f"array of {items['type']}"
    return str(field["type"])


def _shown(field: Mapping[str, Any]) -> str | None:
    default = field.get("default")
    if default is None:
        return None
    if field.get("sensitive"):
        return "(hidden)"
    return _cut(json.dumps(default, ensure_ascii=False))


def _limits(field: Mapping[str, Any]) -> Iterator[str]:
    if field.get("enum"):
        yield "one of " + _cut(", ".join(_plain(value) for value in field["enum"]))
    for key, words in (("min", "at least"), ("max", "at most")):
        if field.get(key) is not None:
            yield f"{words} {field[key]}"
    unit = "entries" if field["type"] == "array" else "characters"
    for key, words in (("min_length", "at least"), ("max_length", "at most")):
        if field.get(key) is not None:
            yield f"{words} {field[key]} {unit}"
    if field.get("pattern"):
        yield f"matches {field['pattern']}"
    if field.get("properties"):
        yield "with " + _cut(", ".join(field["properties"]))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
