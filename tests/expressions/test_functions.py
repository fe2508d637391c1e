"""The functions of CEL, its extensions, and our own."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.expressions import BadExpression, compile_value

NAMES: dict[str, Any] = {
    "item": {"a": {"b": [{"c": 1}, {"c": None}]}, "odd key": 2, "none": None, "list": [3, 1, 2]},
    "words": ["b", "a", "b"],
    "mixed": [1, "1", 1.0, True, [1], [1], {"a": 1}, {"a": 1}, None, None],
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('get(item, "a.b[0].c")', 1),
        ('get(item, "a.b[0].c", 9)', 1),
        ('get(item, "a.b[1].c", 9)', 9),
        ('get(item, "a.b[2].c", 9)', 9),
        ('get(item, "a.b.c", 9)', 9),
        ('get(item, "x.y.z")', None),
        ('get(item, "none.x", "fallback")', "fallback"),
        ('get(item, "[\\"odd key\\"]", 0)', 2),
        ("get(item, 'odd key', 0)", 2),
        ('get(item, words[0], "no " + words[0])', "no b"),
        ('get(null, "a", [])', []),
        ('get(words, "[1]")', "a"),
        ("sum(item.list)", 6),
        ("sum([])", 0),
        ("sum([1, 2.5])", 3.5),
        ("sum([0.1, 0.2, 0.3])", 0.6),
        ("unique(words)", ["b", "a"]),
        ("unique(mixed)", [1, "1", True, [1], {"a": 1}, None]),
        ("sort(item.list)", [1, 2, 3]),
        ("sort(words)", ["a", "b", "b"]),
        ("sort([2, 1.5])", [1.5, 2]),
        ("keys(item)", ["a", "list", "none", "odd key"]),
        ('to_json({"b": [1, 2.0, null], "a": "ä"})', '{"a":"ä","b":[1,2,null]}'),
        ('from_json("{\\"a\\": [1, 2.5, null]}")', {"a": [1, 2.5, None]}),
        ("from_json(to_json(item)) == item", True),
        ("size(words)", 3),
        ("'%d of %s'.format([2, 'x'])", "2 of x"),
        ("'a-b'.split('-').join('+')", "a+b"),
        ("'abc'.substring(1).upperAscii()", "BC"),
        ("math.greatest(item.list)", 3),
        ("math.round(2.5)", 3.0),
        ("optional.of(1).orValue(2)", 1),
        ("item.?nothing.orValue('x')", "x"),
        ("words.exists(w, w == 'a') && !words.all(w, w == 'a')", True),
        ("words.exists_one(w, w == 'a')", True),
        ("'2026-01-31'.matches('^[0-9-]+$')", True),
        ("timestamp('2026-01-31T12:00:00+02:00')", "2026-01-31T10:00:00Z"),
        ("timestamp('2026-01-31T12:00:00.5Z') + duration('1h')", "2026-01-31T13:00:00.500000Z"),
        ("duration('90m')", "5400s"),
        ("duration('-1500ms')", "-1.5s"),
        ("string(1.0) + string(3) + string(true)", "13true"),
        ("double(3) * 1.5", 4.5),
        ("7 / 2", 3),
        ("1 == 1.0 && 1 < 1.5", True),
    ],
)
def test_a_function_gives(source: str, value: Any) -> None:
    result = compile_value(f"${{ {source} }}").evaluate(NAMES)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('get(item, "a..b")', 'get: "a..b" is not a path such as "a.b[0].c"'),
        ('get(item, "a[x]")', 'get: "a[x]" is not a path such as "a.b[0].c"'),
        ("sum(words)", "sum needs a list of numbers, but it holds text"),
        ("sum([1, true])", "sum needs a list of numbers, but it holds true or false"),
        ("sum(item.none)", '"sum" cannot be used with null'),
        ("sort(mixed)", "sort needs a list of numbers or a list of texts, but it holds "
         "a list and a mapping and a number and null and text and true or false"),
        ('sort([1, "a"])', "sort needs a list of numbers or a list of texts, but it holds a number and text"),
        ("keys(words)", '"keys" cannot be used with list'),
        ('from_json("{")', 'from_json: expected a key in double quotes, found the end of the text (line 1, column 2)'),
        ('from_json("[NaN]")', 'from_json: "[0]" is NaN, which JSON cannot hold'),
        ("to_json({1: 2})", "the value has the key 1, which is not text"),
        ("nothing(1)", '"nothing" cannot be used with int'),
    ],
)  # fmt: skip
def test_a_function_that_fails_says_why(source: str, reason: str) -> None:
    with pytest.raises(BadExpression) as failed:
        compile_value(f"${{ {source} }}").evaluate(NAMES)
    assert failed.value.message == f'The expression "{source}" failed: {reason}.'


def test_an_error_of_a_function_can_be_made_up_for() -> None:
    assert compile_value("${ sum(words) == 0 || true }").evaluate(NAMES) is True


def test_the_integer_overflow_of_sum_is_an_error() -> None:
    with pytest.raises(BadExpression, match="sum: integer overflow"):
        compile_value("${ sum([9223372036854775807, 1]) }").evaluate({})
