"""Hostile and long expressions: bounded in time and memory, and the process survives."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from workflows.expressions import BadExpression, compile_value
from workflows.expressions.bounds import measure, work_bound
from workflows.expressions.syntax import parse

TOO_LARGE = "with values of this size it could take too much time or memory; use `collect` or a step"
TOO_LONG = "one expression may loop about 9,000 times in all; use `collect` or a step for longer lists"
LIST = list(range(9_000))
TEXT = "x" * 1_000_000


def message_of(source: str, names: dict[str, Any]) -> str:
    with pytest.raises(BadExpression) as failed:
        compile_value(f"${{ {source} }}").evaluate(names)
    return failed.value.message


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("rows.map(a, rows.map(b, rows.map(c, 1)))", {"rows": list(range(100))}),
        ("rows.map(a, a)", {"rows": list(range(10_000))}),
        ("rows.filter(a, true).map(a, a)", {"rows": list(range(6_000))}),
        ("rows.all(a, a >= 0)", {"rows": list(range(10_001))}),
    ],
)
def test_loops_end_at_about_nine_thousand_rounds(source: str, names: dict[str, Any]) -> None:
    assert message_of(source, names) == f'The expression "{source}" failed: {TOO_LONG}.'


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("rows.map(x, rows).size()", {"rows": LIST}),
        ("rows.map(x, size(rows + rows + rows))", {"rows": LIST}),
        ("rows.map(x, text + text)", {"rows": LIST, "text": TEXT}),
        ('rows.map(x, text.replace("x", "yyyy"))', {"rows": LIST[:500], "text": TEXT}),
        ("rows.exists(x, sort(rows) == [])", {"rows": LIST}),
        ('rows.exists(x, text.contains("y"))', {"rows": LIST, "text": TEXT}),
        ("[1].map(y, rows.map(x, x))", {"rows": LIST}),
        ('text.replace("x", text).size()', {"text": TEXT}),
    ],
)
def test_work_that_multiplies_is_refused_before_it_begins(source: str, names: dict[str, Any]) -> None:
    assert message_of(source, names) == f'The expression "{source}" failed: {TOO_LARGE}.'


@pytest.mark.parametrize(
    ("source", "names", "value"),
    [
        ("rows.map(x, x + 1)", {"rows": LIST}, list(range(1, 9_001))),
        ("rows.filter(x, x % 2 == 0).map(x, x * 2).size()", {"rows": LIST[:5_000]}, 2_500),
        ("rows.filter(x, x > limit)", {"rows": LIST[:1_000], "limit": 997}, [998, 999]),
        ("sum(rows.map(x, x)) + size(rows.filter(x, x < 10))", {"rows": LIST[:4_000]}, 7_998_010),
        ("size(rows) > 3 ? rows.map(x, {'n': x})[300] : {}", {"rows": LIST[:400]}, {"n": 300}),
        ("rows.map(x, timestamp('2026-01-01T00:00:00Z')).map(t, t.getFullYear())[299]", {"rows": LIST[:300]}, 2026),
        ("rows.map(x, x > 500, string(x)).join(',')", {"rows": LIST[:503]}, "501,502"),
        ("mapping.map(key, mapping[key]).size()", {"mapping": {f"k{n}": n for n in range(400)}}, 400),
        ("rows.map(x, 1 / x) == [] || true", {"rows": LIST[:400]}, True),
        ("text.split(',').map(x, x.trim()).filter(x, x != '').size()", {"text": "abc, " * 2_000}, 2_000),
        ("quotes.all(q, text.contains(q))", {"quotes": ["x" * 50] * 50, "text": TEXT}, True),
    ],
)
def test_long_loops_give_what_short_ones_give(source: str, names: dict[str, Any], value: Any) -> None:
    assert compile_value(f"${{ {source} }}").evaluate(names) == value


def test_a_long_loop_that_fails_names_the_whole_expression() -> None:
    source = "rows.map(x, 10 / (x - 300)).size()"
    assert message_of(source, {"rows": LIST[:400]}) == f'The expression "{source}" failed: divide by zero.'


def test_a_long_loop_takes_little_memory() -> None:
    program = (
        "import resource\n"
        "from workflows.expressions import compile_value\n"
        "value = compile_value('${ l.map(x, x).filter(x, x >= 0).size() }')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert value.evaluate({'l': list(range(4_900))}) == 4_900\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100_000, "kilobytes"


def test_two_hundred_thousand_nulls_do_not_end_the_process() -> None:
    program = (
        "from workflows.expressions import compile_value\n"
        "value = compile_value({'a': '${ a.filter(x, true) }', 'b': '${ get(b, \"x\") }', 'c': '${ c == null ? c : 1 }'})\n"
        "for _ in range(2_000):\n"
        "    assert value.evaluate({'a': [None] * 100, 'b': None, 'c': None}) == {'a': [None] * 100, 'b': None, 'c': None}\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_regular_expression_cannot_run_away() -> None:
    assert compile_value("${ text.matches('(x+x+)+y') }").evaluate({"text": TEXT}) is False


def test_evaluations_in_several_threads_do_not_disturb_each_other() -> None:
    value = compile_value('${ rows.map(x, x + n).filter(x, x % 2 == 0) } ${ to_json(get(deep, "a")) }')
    wrong: list[Any] = []

    def evaluate(n: int) -> None:
        expected = f"[{','.join(str(x + n) for x in range(30) if (x + n) % 2 == 0)}] [null,{n}]"
        for _ in range(100):
            result = value.evaluate({"rows": list(range(30)), "n": n, "deep": {"a": [None, n]}})
            if result != expected:
                wrong.append((n, result))

    threads = [threading.Thread(target=evaluate, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_bound_grows_with_the_items_and_not_with_their_square() -> None:
    tree = parse("rows.map(x, x.name + '!')")
    bounds = [
        work_bound(tree, {"rows": [{"name": "n" * 32}] * count}, frozenset({(tree.start, tree.end)})).work
        for count in (1_000, 4_000)
    ]
    assert 3.5 < bounds[1] / bounds[0] < 4.5


def test_one_giant_among_many_small_items_is_counted_once() -> None:
    tree = parse("rows.filter(x, x.contains('a'))")
    places = frozenset({(tree.start, tree.end)})
    even = work_bound(tree, {"rows": ["x" * 160] * 1_000}, places).work
    uneven = work_bound(tree, {"rows": ["x"] * 999 + ["x" * 160_000]}, places).work
    assert uneven < 2 * even


def test_sizes_count_values_keys_and_characters() -> None:
    size = measure({"a": ["x" * 160, 1], "b": None})
    assert (size.cells, size.length, size.item) == (1 + 2 + (1 + 11 + 1) + 1, 2, 13)
