"""The picture of a plan: steps, routes and bodies with their places, ready to be drawn (docs/architecture.md).

Pure layout, no database. ``graph_of`` gives the picture of a plan; what a run has done to it is told by a
:class:`NodeState` per step, which :func:`drawn` puts beside the nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workflows.definitions.graph import shown_routes
from workflows.definitions.plan import DONE, FAIL, Body, Plan, StepPlan
from workflows.queries.graph_layers import MAIN, Arrow, Box, place, points_down
from workflows.queries.graph_lines import lines, moved
from workflows.queries.graph_words import (
    ICON_AND_MARK,
    cut_to_width,
    named,
    node_width,
    second_line,
    text_width,
    title_of,
    words_of_note,
)

#: Colour families of the kinds.
FAMILIES = {
    **dict.fromkeys(("shell", "task", "http", "verify", "external", "langgraph"), "work"),
    **dict.fromkeys(("llm", "agent"), "model"),
    **dict.fromkeys(("approval", "question"), "people"),
    **dict.fromkeys(("map", "parallel", "block", "workflow"), "body"),
    **dict.fromkeys(("assign", "condition", "wait"), "flow"),
}
NODE_HEIGHT = 46
_PADDING = 14
_HEADER = 46
_LANE_HEADER = 24
_MOST_LABEL = 28
#: Steps drawn in all: a block that is called too often is drawn once, and its calls are plain nodes.
_MOST_NODES = 150
_MOST_DEPTH = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A step. ``path`` has no items and rounds (``deploy/roll_out``). One with ``is_group`` holds others below its
    header. ``lines`` are the title and the words below it, cut to the width."""

    path: str
    step: str
    kind: str
    family: str
    title: str
    lines: tuple[str, str]
    x: int
    y: int
    width: int
    height: int
    depth: int = 0
    is_group: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A box around a branch or a section of the run, with its name."""

    label: str
    kind: str  # branch, section
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The start or an end of a body: start, done, fail."""

    kind: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A way from the step at ``source``; ``outcomes`` are all that take it, ``label`` names those worth naming."""

    source: str
    target: str
    outcomes: tuple[str, ...]
    label: str
    full_label: str
    path: str
    label_x: int
    label_y: int
    anchor: str
    is_back: bool
    is_main: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The nodes are in reading order; ``words`` say for each path where the step goes on."""

    title: str
    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    frames: tuple[Frame, ...]
    terminals: tuple[Terminal, ...]
    words: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """What a run did at a step. ``status`` is one of: ok, failed, running, waiting, people, blocked, skipped,
    cancelled, stopped, reached; any other is drawn neutrally. ``outcomes`` counts how often each was taken."""

    status: str
    visits: int = 0
    done: int | None = None
    total: int | None = None
    href: str = ""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    words: str = ""


def plan_path(path: str) -> str:
    """The place in the plan of the path of a visit: ``deploy[3]/roll_out#2`` → ``deploy/roll_out``."""
    return re.sub(r"\[[^\]]*\]|#\d+", "", path)


def graph_of(plan: Plan) -> Graph:
    """The picture of ``plan``: main steps, below them what runs after a failure and at the end."""
    artist = _Artist(plan)
    main = artist.body(plan.main, "", 0, has_start=True)
    others = [("On failure", plan.on_failure), ("Finally", plan.closing)]
    others += [(f"Block {name}", plan.blocks[name]) for name in sorted(artist.apart)]
    framed = [artist.framed(label, "section", artist.body(body, "", 0)) for label, body in others if body is not None]
    row = _beside(framed)
    whole = _Part(width=max(main.width, row.width), height=main.height)
    whole.take(main, 0 if not framed else max(0, (row.width - main.width) // 2), 0)
    if framed:
        whole.take(row, max(0, (main.width - row.width) // 2), main.height + 24)
        whole.height = main.height + 24 + row.height
    order = {node.path: position for position, node in enumerate(artist.in_order)}
    nodes = sorted(whole.nodes, key=lambda node: order[node.path])
    return Graph(
        title=plan.title,
        width=whole.width + 4,
        height=whole.height + 4,
        nodes=tuple(nodes),
        edges=tuple(whole.edges),
        frames=tuple(whole.frames),
        terminals=tuple(whole.terminals),
        words=artist.words,
    )


# ---- what is drawn with the state of a run ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A graph beside what a run did: nodes with their states, edges with the number of times they were taken."""

    graph: Graph
    nodes: tuple[tuple[Node, NodeState | None], ...]
    edges: tuple[tuple[Edge, int], ...]
    has_states: bool


def drawn(graph: Graph, states: Mapping[str, NodeState] | None) -> Drawn:
    """``states`` by path in the plan, or by the id of the step."""
    known = states or {}

    def state(path: str) -> NodeState | None:
        return known.get(path) or known.get(path.rsplit("/", 1)[-1])

    taken = []
    for edge in graph.edges:
        source = state(edge.source)
        if not edge.source:  # from the start
            taken.append(int(state(edge.target) is not None))
            continue
        taken.append(sum(source.outcomes.get(outcome, 0) for outcome in edge.outcomes) if source else 0)
    return Drawn(
        graph=graph,
        nodes=tuple((node, state(node.path)) for node in graph.nodes),
        edges=tuple(zip(graph.edges, taken, strict=True)),
        has_states=bool(known),
    )


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Part:
    """A piece of the picture; places are relative to its upper left corner."""

    width: int = 0
    height: int = 0
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    terminals: list[Terminal] = field(default_factory=list)

    def take(self, part: _Part, x: int, y: int) -> None:
        self.nodes += [replace(one, x=one.x + x, y=one.y + y) for one in part.nodes]
        self.frames += [replace(one, x=one.x + x, y=one.y + y) for one in part.frames]
        self.terminals += [replace(one, x=one.x + x, y=one.y + y) for one in part.terminals]
        self.edges += [
            replace(one, path=moved(one.path, x, y), label_x=one.label_x + x, label_y=one.label_y + y)
            for one in part.edges
        ]


def _beside(parts: Sequence[_Part]) -> _Part:
    row = _Part(height=max((part.height for part in parts), default=0))
    x = 0
    for part in parts:
        row.take(part, x, 0)
        x += part.width + _PADDING
    row.width = max(0, x - _PADDING)
    return row


class _Artist:
    """Draws the bodies of one plan, inner ones first. ``apart`` are the blocks drawn once for all of their calls."""

    def __init__(self, plan: Plan) -> None:
        self.width = node_width(plan)
        self.apart = set(plan.blocks) if _is_too_large(plan) else set()
        self.in_order: list[Node] = []
        self.words: dict[str, str] = {}

    def body(self, body: Body, prefix: str, depth: int, *, has_start: bool = False) -> _Part:
        parts: dict[str, _Part] = {}
        kinds: dict[str, str] = {}
        boxes, arrows, edges = [], [], []
        if has_start:
            parts["start"] = _Part(width=14, height=14)
            kinds["start"] = "start"
            boxes.append(Box(key="start", width=14, height=14))
            arrows.append(Arrow(source="start", target=f"step {body.first}", weight=MAIN))
            edges.append(_Way("", (), "", True))
        for step in body.steps:
            key = f"step {step.id}"
            parts[key] = part = self.step(step, prefix, depth)
            boxes.append(Box(key=key, width=part.width, height=part.height))
            for target, way in self.ways(step, prefix, is_quiet=bool(prefix)):
                if target in (DONE, FAIL):
                    end = f"{target} {step.id}"
                    kinds[end], parts[end] = target, _Part(width=46, height=20)
                    boxes.append(Box(key=end, width=46, height=20))
                goal = end if target in (DONE, FAIL) else f"step {target}"
                label = text_width(way.label, 11) + 12 if way.label else 0
                arrows.append(Arrow(source=key, target=goal, label_width=label, weight=MAIN if way.is_main else 1))
                edges.append(way)
        return _composed(boxes, arrows, edges, parts, kinds)

    def ways(self, step: StepPlan, prefix: str, *, is_quiet: bool) -> Iterator[tuple[str, _Way]]:
        """The routes of a step that are drawn. In a body of its own the usual end of the last step goes unsaid."""
        path = f"{prefix}{step.id}"
        every: dict[str, list[str]] = {}
        for outcome, target in step.routes.items():
            every.setdefault(target, []).append(outcome)
        shown = {target: named(step, target, names) for target, names in shown_routes(step).items()}
        words = [f"{', '.join(names) or step.main_outcome or 'then'} → {target}" for target, names in shown.items()]
        self.words[path] = "; ".join(words) or "ends the run"
        for target, names in shown.items():
            if is_quiet and target == DONE and not names:
                continue
            main = step.main_outcome is not None and step.routes.get(step.main_outcome) == target
            yield target, _Way(path, tuple(every[target]), ", ".join(names), main)

    def step(self, step: StepPlan, prefix: str, depth: int) -> _Part:
        path = f"{prefix}{step.id}"
        inner = {
            name: body
            for name, body in step.bodies.items()
            if body.kind != "block" or (body.name not in self.apart and depth < _MOST_DEPTH)
        }
        node = self.node(step, path, depth, is_group=bool(inner))
        self.in_order.append(node)
        if not inner:
            return _Part(width=node.width, height=node.height, nodes=[node])
        drawn_bodies = [self.body(body, f"{path}/", depth + 1) for body in inner.values()]
        if step.kind == "parallel":
            drawn_bodies = [self.framed(name, "branch", part) for name, part in zip(inner, drawn_bodies, strict=True)]
        row = _beside(drawn_bodies)
        width = max(self.width, row.width + 2 * _PADDING)
        height = _HEADER + row.height + _PADDING
        part = _Part(width=width, height=height, nodes=[replace(node, width=width, height=height)])
        part.take(row, (width - row.width) // 2, _HEADER + 2)
        return part

    def node(self, step: StepPlan, path: str, depth: int, *, is_group: bool) -> Node:
        title = title_of(step)
        note = words_of_note(step)
        below = second_line(step)
        room = self.width - ICON_AND_MARK
        below_room = self.width - (72 if step.kind == "end" else 56)
        return Node(
            path=path,
            step=step.id,
            kind=step.kind,
            family=f"ends_{note}" if step.kind == "end" else FAMILIES.get(step.kind, "work"),
            title=title,
            lines=(cut_to_width(title, room, 14), cut_to_width(below, below_room, 11)),
            x=0,
            y=0,
            width=self.width,
            height=NODE_HEIGHT,
            depth=depth,
            is_group=is_group,
            note=note,
        )

    def framed(self, label: str, kind: str, part: _Part) -> _Part:
        width = max(part.width + 2 * _PADDING, text_width(label, 12) + 2 * _PADDING)
        height = part.height + _LANE_HEADER + _PADDING
        framed = _Part(width=width, height=height)
        framed.frames.append(Frame(label=label, kind=kind, x=0, y=0, width=width, height=height))
        framed.take(part, (width - part.width) // 2, _LANE_HEADER + 4)
        return framed


@dataclass(frozen=True, slots=True)
class _Way:
    source: str
    outcomes: tuple[str, ...]
    full_label: str
    is_main: bool

    @property
    def label(self) -> str:
        label = self.full_label
        return label if len(label) <= _MOST_LABEL else label[: _MOST_LABEL - 1] + "…"


def _composed(
    boxes: list[Box], arrows: list[Arrow], ways: list[_Way], parts: Mapping[str, _Part], kinds: Mapping[str, str]
) -> _Part:
    found = place(boxes, arrows)
    drawn_lines = lines(found, arrows)
    right = max([round(one.right) for layer in found.layers for one in layer] + [line.right for line in drawn_lines])
    whole = _Part(width=right, height=found.tops[-1] + found.heights[-1])
    for key, box in found.boxes.items():
        x = round(box.left)
        whole.take(parts[key], x, box.y)
        if key in kinds:
            whole.terminals.append(Terminal(kind=kinds[key], x=x, y=box.y, width=box.width, height=box.height))
    order = {box.key: position for position, box in enumerate(boxes)}
    for arrow, way, line in zip(arrows, ways, drawn_lines, strict=True):
        whole.edges.append(
            Edge(
                source=way.source,
                target=arrow.target.split(" ")[-1],
                outcomes=way.outcomes,
                label=way.label,
                full_label=way.full_label,
                path=line.path,
                label_x=line.label_x,
                label_y=line.label_y,
                anchor=line.anchor,
                is_back=not points_down(order, arrow),
                is_main=way.is_main,
            )
        )
    return whole


def _is_too_large(plan: Plan) -> bool:
    def count(body: Body | None, depth: int) -> int:
        if body is None or depth > _MOST_DEPTH:
            return 0
        total = 0
        for step in body.steps:
            total += 1 + sum(count(inner, depth + 1) for inner in step.bodies.values())
            if total > _MOST_NODES:
                break
        return total

    return sum(count(body, 0) for body in (plan.main, plan.on_failure, plan.closing)) > _MOST_NODES
