"""Where a file holds values that are evaluated: every text with its path, the scope it sees and the key it is under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workflows.definitions.kinds import keys_of
from workflows.definitions.validation.report import Path
from workflows.definitions.validation.scopes import Scope, Scopes
from workflows.definitions.validation.tree import BLOCK, MAIN, StepNode, Tree

#: Keys that must be true or false.
CONDITION_KEYS = frozenset({"only_if", "if", "match", "when"})
_MAY_HOLD_SECRETS = frozenset({"env", "headers"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """A value that is evaluated. ``key`` is the key of the step (or of the file) that holds it.

    ``takes_secrets``: each member may be a secret. ``step`` is the step it belongs to, if any.
    """

    path: Path
    value: Any
    scope: Scope
    key: str
    step: StepNode | None = None
    takes_secrets: bool = False
    is_condition: bool = False


def places(document: Mapping[str, Any], tree: Tree, scopes: Scopes) -> Iterator[Place]:
    """Every value of the file that is evaluated."""
    yield from _at_the_top(document, tree, scopes)
    for step in tree.steps:
        if step.kind is not None:
            yield from _of_step(step, scopes)


def texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text in ``value``, with its path; keys of mappings are not evaluated."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from texts(member, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))


def _at_the_top(document: Mapping[str, Any], tree: Tree, scopes: Scopes) -> Iterator[Place]:
    own = scopes.of_run()
    for name, value in _mapping(document, "vars").items():
        yield Place(path=("vars", name), value=value, scope=own, key="vars")
    if "output" in document:
        scope = scopes.of_run(names="params run steps vars", steps=tree.section(MAIN), place="output")
        yield Place(path=("output",), value=document["output"], scope=scope, key="output")
    concurrency = _mapping(document, "concurrency")
    if "key" in concurrency:
        yield Place(path=("concurrency", "key"), value=concurrency["key"], scope=own, key="concurrency")
    defaults = _mapping(document, "defaults")
    scope = scopes.of_run(names="params run vars")
    if "timeout" in defaults:
        yield Place(path=("defaults", "timeout"), value=defaults["timeout"], scope=scope, key="timeout")
    if "env" in defaults:
        yield Place(path=("defaults", "env"), value=defaults["env"], scope=scope, key="env", takes_secrets=True)
    for name, block in _mapping(document, "blocks").items():
        yield from _of_block(name, block, tree, scopes)


def _of_block(name: str, block: Any, tree: Tree, scopes: Scopes) -> Iterator[Place]:
    path: Path = ("blocks", name)
    own = scopes.of_block(name)
    for variable, value in _mapping(block, "vars").items():
        yield Place(path=(*path, "vars", variable), value=value, scope=own, key="vars")
    if isinstance(block, Mapping) and "output" in block:
        steps = next((each for each in tree.lists if each.kind == BLOCK and each.name == name), None)
        if steps is not None:
            scope = scopes.of_block(name, steps=steps, place="output")
            yield Place(path=(*path, "output"), value=block["output"], scope=scope, key="output")


def _of_step(step: StepNode, scopes: Scopes) -> Iterator[Place]:
    own = scopes.of_step(step)
    rules = keys_of(step.kind or "")
    for key, value in step.raw.items():
        path = (*step.path, key)
        if key == "cases":
            yield from _cases(step, value, path, own)
        elif key == "checks":
            yield from _checks(step, value, path, own)
        elif key in rules and rules[key].expressions:
            yield Place(
                path=path,
                value=value,
                scope=_scope(step, key, own, scopes),
                key=key,
                step=step,
                takes_secrets=key in _MAY_HOLD_SECRETS,
                is_condition=key in CONDITION_KEYS,
            )


def _scope(step: StepNode, key: str, own: Scope, scopes: Scopes) -> Scope:
    match step.kind, key:
        case "map", "key" | "vars" | "with":
            return scopes.inside(step, with_body=False)
        case "map", "collect":
            return scopes.inside(step, with_body=True)
        case "wait", "match":
            return scopes.with_names(own, "signal")
        case "langgraph", "collect":
            return scopes.with_names(own, "state")
    return own


def _cases(step: StepNode, cases: Any, path: Path, scope: Scope) -> Iterator[Place]:
    for index, case in enumerate(cases if isinstance(cases, list) else []):
        if isinstance(case, Mapping) and "when" in case:
            yield Place(
                path=(*path, index, "when"), value=case["when"], scope=scope, key="when", step=step, is_condition=True
            )


def _checks(step: StepNode, checks: Any, path: Path, scope: Scope) -> Iterator[Place]:
    for index, check in enumerate(checks if isinstance(checks, list) else []):
        for key in ("env", "timeout"):
            if isinstance(check, Mapping) and key in check:
                yield Place(
                    path=(*path, index, key),
                    value=check[key],
                    scope=scope,
                    key=key,
                    step=step,
                    takes_secrets=key == "env",
                )


def _mapping(holder: Any, key: str) -> Mapping[str, Any]:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, Mapping) else {}
