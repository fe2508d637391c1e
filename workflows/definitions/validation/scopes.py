"""What can be read and changed at a place of the file: names, parameters, variables, steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.validation.tree import (
    BLOCK,
    BRANCH,
    FINALLY,
    ITEM,
    MAIN,
    ON_FAILURE,
    StepList,
    StepNode,
    Tree,
)

#: How far the run has come where an expression is evaluated, for what `run` holds.
_CLOSING = (ON_FAILURE, FINALLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable and the list in whose scope it lives; None for those of the workflow."""

    home: StepList | None
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """What an expression sees.

    ``steps`` is the list whose steps and outer lists are visible, None where no steps are; ``step`` the step that
    evaluates it, None at the end of the list. ``extra`` are names of this place only: an item, ``signal``, ``state``.
    ``place`` is what a message calls it.
    """

    params: Mapping[str, Any]
    variables: Mapping[str, Variable]
    steps: StepList | None
    step: StepNode | None = None
    names: frozenset[str] = frozenset({"params", "run", "steps", "vars"})
    extra: tuple[str, ...] = ()
    in_block: str = ""
    is_closing: bool = False
    place: str = ""
    types: dict[str, Any] = field(default_factory=dict)

    @property
    def available(self) -> list[str]:
        """Names that can be used, in the order in which they are listed to people."""
        return sorted({*self.names, *self.extra})


class Scopes:
    """Makes the scopes of one file."""

    def __init__(self, document: Mapping[str, Any], tree: Tree) -> None:
        self.document = document
        self.tree = tree
        self._visible_in: dict[int, dict[str, Variable]] = {}

    def of_run(self, *, names: str = "params run", steps: StepList | None = None, place: str = "") -> Scope:
        """The scope of keys at the top of the file; ``names`` are those it has."""
        return Scope(
            params=_mapping(self.document, "params"),
            variables=self._visible(None),
            steps=steps,
            names=frozenset(names.split()),
            place=place,
        )

    def of_block(self, name: str, *, steps: StepList | None = None, place: str = "") -> Scope:
        """The scope of a block's variables (without ``steps``) and output (with its list)."""
        block = _mapping(_mapping(self.document, "blocks"), name)
        known = {"params", "run"} if steps is None else {"params", "run", "steps", "vars"}
        return Scope(
            params=_mapping(block, "params"),
            variables={} if steps is None else self._visible(steps),
            steps=steps,
            names=frozenset(known),
            in_block=name,
            place=place,
        )

    def of_step(self, step: StepNode) -> Scope:
        """The scope of a step's own keys."""
        return self._of_list(step.body, step)

    def inside(self, step: StepNode, *, with_body: bool) -> Scope:
        """The scope of a map's keys that are about one item; ``with_body``: after the steps of the item."""
        outer = self.of_step(step)
        body = step.bodies[0] if with_body and step.bodies else None
        variables = outer.variables if body is None else self._visible(body)
        return Scope(
            params=outer.params,
            variables=variables,
            steps=outer.steps if body is None else body,
            step=step if body is None else None,
            extra=(*outer.extra, *item_names(step)),
            in_block=outer.in_block,
            is_closing=outer.is_closing,
            place="collect",
        )

    def with_names(self, scope: Scope, *extra: str) -> Scope:
        """``scope`` with more names."""
        return Scope(
            params=scope.params,
            variables=scope.variables,
            steps=scope.steps,
            step=scope.step,
            names=scope.names,
            extra=(*scope.extra, *extra),
            in_block=scope.in_block,
            is_closing=scope.is_closing,
            place=scope.place,
        )

    def _of_list(self, steps: StepList, step: StepNode) -> Scope:
        root = root_of(steps)
        block = root.name if root.kind == BLOCK else ""
        holder = _mapping(_mapping(self.document, "blocks"), block) if block else self.document
        items = [name for each in chain(steps) if each.kind == ITEM and each.owner for name in item_names(each.owner)]
        return Scope(
            params=_mapping(holder, "params"),
            variables=self._visible(steps),
            steps=steps,
            step=step,
            extra=tuple(items),
            in_block=block,
            is_closing=root.kind in _CLOSING,
            place=step.id or "",
        )

    def _visible(self, steps: StepList | None) -> dict[str, Variable]:
        """The variables that are visible in ``steps`` by name: made once for all the places of a list."""
        key = id(steps)
        if key not in self._visible_in:
            self._visible_in[key] = dict(self._variables(steps))
        return self._visible_in[key]

    def _variables(self, steps: StepList | None) -> Iterator[tuple[str, Variable]]:
        """Variables that are visible in ``steps``, outer ones first so that inner ones replace them."""
        lists = list(chain(steps)) if steps is not None else []
        root = lists[-1] if lists else None
        if root is not None and root.kind == BLOCK:
            yield from _declared(_mapping(_mapping(self.document, "blocks"), root.name), root)
        else:
            yield from _declared(self.document, None)
        for each in reversed(lists):
            if each.kind == ITEM and each.owner is not None:
                yield from _declared(each.owner.raw, each)


def item_names(step: StepNode) -> tuple[str, str]:
    """The names that the body of a map has for its item and its position."""
    written = step.raw.get("as")
    return (written if isinstance(written, str) else "item", "index")


def chain(steps: StepList | None) -> Iterator[StepList]:
    """``steps`` and the lists around it, from the inside."""
    while steps is not None:
        yield steps
        steps = steps.outer


def root_of(steps: StepList) -> StepList:
    """The section or block that ``steps`` is in."""
    return list(chain(steps))[-1]


def visible_lists(steps: StepList | None, tree: Tree) -> list[StepList]:
    """The lists whose steps can be read from ``steps``: its own, those around it, and the sections before it."""
    lists = list(chain(steps))
    if lists:
        before = {ON_FAILURE: (MAIN,), FINALLY: (MAIN, ON_FAILURE)}.get(lists[-1].kind, ())
        lists += [section for kind in before if (section := tree.section(kind)) is not None]
    return lists


def shared_variable_owner(steps: StepList, variable: Variable) -> StepList | None:
    """The body that runs side by side with others between ``steps`` and the home of ``variable``; None when none does.

    Such a body can read the variable and cannot change it.
    """
    for each in chain(steps):
        if each is variable.home:
            return None
        if each.kind in (ITEM, BRANCH):
            return each
    return None


def _mapping(holder: Any, key: str) -> Mapping[str, Any]:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _declared(holder: Mapping[str, Any], home: StepList | None) -> Iterator[tuple[str, Variable]]:
    for name, value in _mapping(holder, "vars").items():
        wrapped = isinstance(value, Mapping) and set(value) == {"value"}
        yield name, Variable(home=home, value=value["value"] if wrapped else value)
