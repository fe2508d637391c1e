"""The steps of a file as a tree of lists, tolerant of everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.kinds import KINDS, Outcomes, outcomes_of
from workflows.definitions.validation.report import Path

#: Kinds of step lists. Sections run in the scope of the run, the others in scopes of their own.
MAIN, ON_FAILURE, FINALLY, ITEM, BRANCH, BLOCK = "main", "on_failure", "finally", "item", "branch", "block"
SECTIONS = {"steps": MAIN, "on_failure": ON_FAILURE, "finally": FINALLY}


@dataclass(slots=True, kw_only=True, eq=False)
class StepNode:
    """A step that is a mapping. ``id`` is None unless it is text; ``kind`` is None unless it is one of the kinds."""

    path: Path
    raw: Mapping[str, Any]
    body: StepList
    position: int
    id: str | None
    kind: str | None
    bodies: list[StepList] = field(default_factory=list)
    outcomes: Outcomes = field(default_factory=lambda: Outcomes(main=None, named=(), all=()))

    @property
    def name(self) -> str:
        """The step in a sentence: ``shell step "a"``."""
        return f"{self.kind or ''} {self.short}".strip()

    @property
    def short(self) -> str:
        """``step "a"``, or ``step 1`` when it has no id."""
        return f'step "{self.id}"' if self.id is not None else f"step {self.position + 1}"


@dataclass(slots=True, kw_only=True, eq=False)
class StepList:
    """A list of steps. ``owner`` is the step that holds it; ``name`` that of a branch, a block or a section."""

    path: Path
    kind: str
    name: str
    owner: StepNode | None = None
    steps: list[StepNode] = field(default_factory=list)
    broken: bool = False

    @property
    def owner_name(self) -> str:
        """The name that messages use for the body: the owner's id or the block's name."""
        return (self.owner.id or "") if self.owner is not None else self.name

    @property
    def outer(self) -> StepList | None:
        """The list that this one is seen from: the owner's; a block and a section have none."""
        return self.owner.body if self.owner is not None else None

    def by_id(self, step_id: str) -> StepNode | None:
        return next((step for step in self.steps if step.id == step_id), None)


@dataclass(slots=True, kw_only=True)
class Tree:
    """``lists`` in reading order of the file; ``by_id`` holds the first step of each id."""

    lists: list[StepList] = field(default_factory=list)
    by_id: dict[str, StepNode] = field(default_factory=dict)

    @property
    def steps(self) -> Iterator[StepNode]:
        """Every step, list by list."""
        return (step for steps in self.lists for step in steps.steps)

    def section(self, kind: str) -> StepList | None:
        return next((steps for steps in self.lists if steps.kind == kind and steps.owner is None), None)

    def block(self, name: str) -> StepList | None:
        return next((steps for steps in self.lists if steps.kind == BLOCK and steps.name == name), None)


def build(document: Mapping[str, Any], declared_outcomes: Mapping[str, tuple[str, ...]]) -> Tree:
    """The tree of ``document``. ``declared_outcomes`` are those of the known task functions, by name."""
    tree = Tree()
    for key, kind in SECTIONS.items():
        _add(tree, document.get(key), StepList(path=(key,), kind=kind, name=key), declared_outcomes)
    blocks = document.get("blocks")
    for name, block in blocks.items() if isinstance(blocks, Mapping) else ():
        if isinstance(block, Mapping):
            steps = StepList(path=("blocks", name, "steps"), kind=BLOCK, name=name)
            _add(tree, block.get("steps"), steps, declared_outcomes)
    return tree


def _add(tree: Tree, written: object, steps: StepList, declared: Mapping[str, tuple[str, ...]]) -> None:
    if not isinstance(written, list):
        return
    tree.lists.append(steps)
    for index, raw in enumerate(written):
        if not isinstance(raw, Mapping):
            steps.broken = True
            continue
        node = _node(raw, steps, index, declared)
        steps.steps.append(node)
        if node.kind is None or node.id is None:
            steps.broken = True
        if node.id is not None:
            tree.by_id.setdefault(node.id, node)
        for body, inner in _bodies(node):
            node.bodies.append(inner)
            _add(tree, body, inner, declared)


def _node(raw: Mapping[str, Any], steps: StepList, index: int, declared: Mapping[str, tuple[str, ...]]) -> StepNode:
    step_id, kind = raw.get("id"), raw.get("kind")
    node = StepNode(
        path=(*steps.path, index),
        raw=raw,
        body=steps,
        position=len(steps.steps),
        id=step_id if isinstance(step_id, str) else None,
        kind=kind if isinstance(kind, str) and kind in KINDS else None,
    )
    if node.kind is not None:
        call = raw.get("call") if node.kind == "task" else None
        node.outcomes = outcomes_of(raw, declared.get(call, ()) if isinstance(call, str) else ())
    return node


def _bodies(node: StepNode) -> Iterator[tuple[object, StepList]]:
    if node.kind == "map" and "do" in node.raw:
        yield node.raw["do"], StepList(path=(*node.path, "do"), kind=ITEM, name="do", owner=node)
    branches = node.raw.get("branches") if node.kind == "parallel" else None
    for name, body in branches.items() if isinstance(branches, Mapping) else ():
        yield body, StepList(path=(*node.path, "branches", name), kind=BRANCH, name=name, owner=node)
