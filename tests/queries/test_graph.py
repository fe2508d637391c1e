from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.queries.graph import Edge, Graph, Node, NodeState, drawn, graph_of, plan_path
from workflows.queries.graph_lines import moved

TESTS = Path(__file__).parent.parent
FILES = sorted(
    [
        *TESTS.glob("data/cases/*/workflow.yaml"),
        *TESTS.glob("data/examples/*.yaml"),
        *(TESTS.parent / "workflows" / "library").glob("*.yaml"),
    ]
)


def graph(text: bytes | str) -> Graph:
    return graph_of(compile_plan(freeze(read_source(text).document).document))


def small(steps: str, more: str = "") -> Graph:
    return graph(f"format: 1\nname: demo\nsteps:\n{steps}{more}")


def points(path: str) -> Iterator[tuple[float, float]]:
    """Points along an SVG path, about every two pixels."""
    x = y = 0.0
    for command, numbers in re.findall(r"([MLCQV])([-\d ]*)", path):
        values = [float(number) for number in numbers.split()]
        if command == "V":
            values = [x, *values]
        corners = [(x, y), *zip(values[::2], values[1::2], strict=True)]
        if command != "M":
            yield from (_on(corners, step / 60) for step in range(61))
        x, y = corners[-1]


def _on(corners: list[tuple[float, float]], part: float) -> tuple[float, float]:
    """A point of a Bézier curve of any degree (de Casteljau)."""
    while len(corners) > 1:
        corners = [(a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part) for a, b in pairwise(corners)]
    return corners[0]


def holds(outer: Node, inner: Node) -> bool:
    return inner.path.startswith(f"{outer.path}/")


def overlap(one: Node, other: Node) -> bool:
    across = one.x < other.x + other.width and other.x < one.x + one.width
    return across and one.y < other.y + other.height and other.y < one.y + one.height


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_nodes_lie_apart_inside_of_the_picture_and_of_what_holds_them(file: Path):
    picture = graph(file.read_bytes())

    for one, other in combinations(picture.nodes, 2):
        if not holds(one, other) and not holds(other, one):
            assert not overlap(one, other), (one.path, other.path)
    for outer in picture.nodes:
        for inner in picture.nodes:
            if holds(outer, inner):
                assert outer.x < inner.x
                assert inner.x + inner.width < outer.x + outer.width
                assert outer.y < inner.y
                assert inner.y + inner.height < outer.y + outer.height
    assert all(node.x >= 0 and node.x + node.width <= picture.width for node in picture.nodes)
    assert all(node.y >= 0 and node.y + node.height <= picture.height for node in picture.nodes)


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_arrow_runs_through_a_step_that_it_does_not_belong_to(file: Path):
    picture = graph(file.read_bytes())

    for edge in picture.edges:
        for node in picture.nodes:
            if node.path == edge.source or node.step == edge.target or edge.source.startswith(f"{node.path}/"):
                continue
            for x, y in points(edge.path):
                inside = node.x + 1 < x < node.x + node.width - 1 and node.y + 1 < y < node.y + node.height - 1
                assert not inside, f"{edge.source} → {edge.target} runs through {node.path}"


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_step_has_one_node_at_every_place_it_can_run(file: Path):
    plan = compile_plan(freeze(read_source(file.read_bytes()).document).document)
    picture = graph_of(plan)

    assert {node.step for node in picture.nodes} == set(plan.steps)
    assert len({node.path for node in picture.nodes}) == len(picture.nodes)
    assert set(picture.words) == {node.path for node in picture.nodes}
    assert graph_of(plan) == picture


def edge(picture: Graph, source: str, target: str) -> Edge:
    return next(one for one in picture.edges if (one.source, one.target) == (source, target))


def test_a_way_back_runs_beside_the_steps_and_points_up():
    picture = small(
        "  - { id: try_it, kind: shell, run: x, max_visits: 3 }\n"
        '  - { id: good, kind: condition, if: "${ true }", next: { then: done, else: try_it } }\n'
    )

    back = edge(picture, "good", "try_it")
    try_it = next(node for node in picture.nodes if node.path == "try_it")
    assert back.is_back
    assert back.label == "else"
    assert max(x for x, _ in points(back.path)) > try_it.x + try_it.width
    assert list(points(back.path))[-1][1] < next(iter(points(back.path)))[1]


def test_outcomes_that_share_a_way_are_all_named():
    picture = small(
        "  - { id: first, kind: shell, run: x, next: { failed: second } }\n  - { id: second, kind: shell, run: x }\n"
    )

    way = edge(picture, "first", "second")
    assert way.label == "ok, failed"
    assert set(way.outcomes) >= {"ok", "failed"}
    assert picture.words == {"first": "ok, failed → second", "second": "ok → done"}


def test_blocks_that_are_called_too_often_are_drawn_once():
    calls = "".join(f"  - {{ id: call_{number}, kind: block, use: many }}\n" for number in range(60))
    inside = "".join(f"      - {{ id: inner_{number}, kind: shell, run: x }}\n" for number in range(5))
    picture = small(calls, f"blocks:\n  many:\n    steps:\n{inside}")

    assert len(picture.nodes) == 65
    assert [frame.label for frame in picture.frames] == ["Block many"]


def test_a_plan_of_five_hundred_steps_that_all_jump_is_drawn():
    steps = "".join(
        f"  - {{ id: step_{number}, kind: shell, run: x, next: {{ failed: step_{min(499, number + 60)} }} }}\n"
        for number in range(500)
    )
    picture = small(steps)

    assert len(picture.nodes) == 500
    assert picture.height > 500 * 46


def test_words_are_cut_to_the_width_of_a_node_and_kept_whole_beside_it():
    title = "A very long title that nobody would ever want to read in a small box of a picture"
    picture = small(f"  - {{ id: one, kind: shell, run: x, title: {title} }}\n")

    node = picture.nodes[0]
    assert node.title == title
    assert node.lines[0].endswith("…")
    assert node.width <= 236


def test_the_states_of_a_run_are_put_beside_the_nodes_and_ways_that_were_taken():
    picture = small(
        "  - { id: try_it, kind: shell, run: x, max_visits: 3 }\n"
        '  - { id: good, kind: condition, if: "${ true }", next: { then: done, else: try_it } }\n'
    )
    states = {
        "try_it": NodeState(status="ok", visits=2, outcomes={"ok": 2}),
        "good": NodeState(status="ok", visits=2, outcomes={"then": 1, "else": 1}),
    }

    told = drawn(picture, states)
    assert [(node.path, state and state.visits) for node, state in told.nodes] == [("try_it", 2), ("good", 2)]
    assert {(one.source, one.target): count for one, count in told.edges} == {
        ("", "try_it"): 1,
        ("try_it", "good"): 2,
        ("good", "try_it"): 1,
        ("good", "good"): 1,
    }
    assert not drawn(picture, None).has_states


def test_the_path_of_a_visit_names_a_place_in_the_plan():
    assert plan_path("deploy[3]/roll_out#2") == "deploy/roll_out"
    assert plan_path("each#2[eu]/inner") == "each/inner"


def test_a_path_is_moved_with_all_of_its_points():
    assert moved("M1 2V5C1 2 3 4 5 6L7 8Q9 9 10 10", 10, 100) == "M11 102V105C11 102 13 104 15 106L17 108Q19 109 20 110"
