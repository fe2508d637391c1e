"""What two versions have different, line by line and in words."""

from __future__ import annotations

from tests.support.plans import workflow
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.queries.plan_differences import MOST_LINES, line_differences, plan_changes


def document(steps: str, **more: str):
    return freeze(read_source(workflow(steps, **more)).document).document


def changes(old, new) -> list[tuple[str, str, str, str]]:
    return [(one.what, one.where, one.before, one.after) for one in plan_changes(old, new)]


def test_equal_plans_have_no_differences() -> None:
    one = document("  - { id: a, kind: shell, run: x }")

    assert changes(one, document("  - {kind: shell, run: x, id: a} # the same")) == []


def test_steps_are_found_again_by_their_ids_wherever_they_stand() -> None:
    old = document("  - { id: a, kind: shell, run: x }\n  - { id: b, kind: shell, run: y, timeout: 5m }")
    new = document(
        "  - { id: b, kind: shell, run: y, timeout: 15m }\n  - { id: a, kind: shell, run: x }\n"
        "  - { id: c, kind: wait, for: 1s }"
    )

    assert changes(old, new) == [
        ("changed", "steps.b.timeout", "5m", "15m"),
        ("added", "steps.c", "", "a wait step"),
        ("moved", "steps", "a, b", "b, a"),
    ]


def test_parameters_and_bodies_are_told_by_name() -> None:
    old = document(
        "  - { id: m, kind: map, over: [1], do: [{ id: a, kind: shell, run: x }, { id: b, kind: shell, run: y }] }",
        before="params: { n: { type: integer, max: 3 }, gone: { type: string } }",
    )
    new = document(
        "  - { id: m, kind: map, over: [1, 2], do: [{ id: a, kind: shell, run: x }] }",
        before="params: { n: { type: integer, max: 5 } }",
    )

    assert changes(old, new) == [
        ("changed", "params.n.max", "3", "5"),
        ("removed", "params.gone", '{"name": "gone", "type": "string"}', ""),
        ("removed", "steps.m.do.b", "a shell step", ""),
        ("changed", "steps.m.over", "[1]", "[1, 2]"),
    ]


def test_true_and_one_are_different() -> None:
    assert [one.where for one in plan_changes({"x": True}, {"x": 1})] == ["x"]


def test_long_and_many_lined_values_are_cut() -> None:
    (change,) = plan_changes({"run": "a" * 500}, {"run": "first\nsecond"})

    assert len(change.before) == 160
    assert change.after == "first …"


def test_lines_are_marked_and_numbered_with_the_lines_around_them() -> None:
    old = "\n".join(f"line {number}" for number in range(1, 21))
    new = old.replace("line 10\n", "line ten\nand more\n")

    told = [(one.mark, one.old, one.new, one.text) for one in line_differences(old, new) or []]

    assert told == [
        ("…", None, None, "6 lines"),
        (" ", 7, 7, "line 7"),
        (" ", 8, 8, "line 8"),
        (" ", 9, 9, "line 9"),
        ("−", 10, None, "line 10"),
        ("+", None, 10, "line ten"),
        ("+", None, 11, "and more"),
        (" ", 11, 12, "line 11"),
        (" ", 12, 13, "line 12"),
        (" ", 13, 14, "line 13"),
        ("…", None, None, "7 lines"),
    ]
    assert line_differences(old, old) == []


def test_files_that_are_too_long_are_not_compared_line_by_line() -> None:
    assert line_differences("x\n" * MOST_LINES, "y") is None
