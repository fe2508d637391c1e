"""Types of expressions before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.expressions import CelType, TypeProblem, static_type, type_of_field, type_of_value

TYPES = {
    "params.text": CelType.STRING,
    "params.n": CelType.INT,
    "params.rate": CelType.DOUBLE,
    "params.on": CelType.BOOL,
    "params.list": CelType.LIST,
    "params.map": CelType.MAP,
}
CONVERT = "Convert one side, e.g. string(…), int(…) or double(…)."
CONVERT_VALUE = "Convert the value, e.g. string(…), int(…) or double(…)."
CONDITION = 'Both sides must be true or false; compare, e.g. `!= ""`.'


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("params.text", CelType.STRING),
        ("string(params.n)", CelType.STRING),
        ("params.n + 1", CelType.INT),
        ("double(params.n) * 1.5", CelType.DOUBLE),
        ("params.n > 1", CelType.BOOL),
        ("params.on && !params.on", CelType.BOOL),
        ("params.list", CelType.LIST),
        ("params.list + [1]", CelType.LIST),
        ("params.list.map(x, x + 1)", CelType.LIST),
        ('{"a": 1}', CelType.MAP),
        ("null", CelType.NULL),
        ("b'a'", CelType.BYTES),
        ("1u", CelType.UINT),
        ("timestamp(params.text)", CelType.TIMESTAMP),
        ("duration('1s')", CelType.DURATION),
        ("optional.of(1)", CelType.OPTIONAL),
        ("type(1)", CelType.TYPE),
        ("steps.a.output", CelType.DYN),
        ("steps.a.output.x > 1", CelType.BOOL),
        ("params.undeclared", CelType.DYN),
        ("params['n']", CelType.DYN),
        ("get(params.map, 'a', 1)", CelType.DYN),
        # What the evaluation understands is no problem, whatever the checker of the library says.
        ("params.n == null", CelType.BOOL),
        ("params.list != null", CelType.BOOL),
        ("params.n < 1.5", CelType.BOOL),
        ("params.rate == 1", CelType.BOOL),
        ("params.rate in [1, 2]", CelType.BOOL),
        ("params.on ? 1 : 'none'", CelType.DYN),
        ("has(params.n)", CelType.BOOL),
        ("has(params.n) && params.on", CelType.BOOL),
        ("steps.a.output.map(n, n.x + params.n)", CelType.LIST),
        ("params.n >", CelType.DYN),
    ],
)
def test_the_type_of_an_expression(source: str, kind: CelType) -> None:
    assert static_type(source, TYPES) == kind


@pytest.mark.parametrize(
    ("source", "message", "hint", "offset"),
    [
        ('"Try " + 2', '"+" cannot be used with string and int: "Try " + 2', CONVERT, 7),
        ("params.text + params.n", '"+" cannot be used with string and int: params.text + params.n', CONVERT, 12),
        ("params.n * 1.5", '"*" cannot be used with int and double: params.n * 1.5', CONVERT, 9),
        ("params.rate / 2", '"/" cannot be used with double and int: params.rate / 2', CONVERT, 12),
        ("-params.text", '"-" cannot be used with string: -params.text', CONVERT, 0),
        ("params.text == params.n", '"==" cannot be used with string and int: params.text == params.n', CONVERT, 12),
        ('"a" < 1', '"<" cannot be used with string and int: "a" < 1', CONVERT, 4),
        ("1 + (params.text + 2)", '"+" cannot be used with string and int: params.text + 2', CONVERT, 17),
        ("(params.text + 'a') * 2", """"*" cannot be used with string and int: (params.text + 'a') * 2""", CONVERT, 20),
        ("params.on && params.n", '"&&" cannot be used with bool and int: params.on && params.n', CONDITION, 10),
        ("!params.n", '"!" cannot be used with int: !params.n', "Only true or false can be negated.", 0),
        ("params.n ? 1 : 2", '"?:" cannot be used with int, int and int: params.n ? 1 : 2',
         'The part before "?" must be true or false.', 9),
        ("size(params.n)", '"size" cannot be used with int: size(params.n)', CONVERT_VALUE, 4),
        ("params.text.startsWith(1)", '"startsWith" cannot be used with string and int: params.text.startsWith(1)',
         CONVERT_VALUE, 22),
        ("'a' in 1", """"in" cannot be used with string and int: 'a' in 1""", CONVERT_VALUE, 4),
        ("params.list['a']", """"[]" cannot be used with list and string: params.list['a']""", CONVERT_VALUE, 11),
        ("params.text.x", '"." cannot be used with string: params.text.x', "Only mappings have fields.", 11),
        ("params.n.map(x, x)", '"map" cannot be used with int: params.n.map(x, x)', "Only lists and mappings have items.", 6),
        ("params.list.filter(x, 1)", '"filter" cannot be used with int: params.list.filter(x, 1)',
         "The condition must be true or false.", 18),
        ("params.list.all(x, 'a')", """"all" cannot be used with string: params.list.all(x, 'a')""",
         "The condition must be true or false.", 15),
        ("[1].map(x, x + 'a')", """"+" cannot be used with int and string: x + 'a'""", CONVERT, 13),
        ("math.greatest(1, params.text)", '"math.greatest" cannot be used with int and string: math.greatest(1, params.text)',
         CONVERT_VALUE, 13),
        ("sort()", '"sort" cannot be used with no arguments: sort()', "Check the number of arguments.", 4),
        ("size(1, 2)", '"size" cannot be used with 2 arguments: size(1, 2)', "Check the number of arguments.", 4),
        ("timestamp(params.text) + 1", '"+" cannot be used with timestamp and int: timestamp(params.text) + 1', CONVERT, 23),
        ("params.n +\n 'a'", """"+" cannot be used with int and string: params.n +\n 'a'""", CONVERT, 9),
    ],
)  # fmt: skip
def test_types_that_cannot_fit_are_named(source: str, message: str, hint: str, offset: int) -> None:
    assert static_type(source, TYPES) == TypeProblem(code="E409", message=message, hint=hint, offset=offset)


@pytest.mark.parametrize(
    ("kind", "optional", "expected"),
    [
        ("string", False, CelType.STRING),
        ("date", True, CelType.STRING),
        ("datetime", False, CelType.STRING),
        ("integer", True, CelType.INT),
        ("number", False, CelType.DOUBLE),
        ("boolean", False, CelType.BOOL),
        ("array", False, CelType.LIST),
        ("array", True, CelType.DYN),
        ("object", False, CelType.MAP),
        ("object", True, CelType.DYN),
        ("unheard of", False, CelType.DYN),
    ],
)
def test_fields_have_types(kind: str, optional: bool, expected: CelType) -> None:
    assert type_of_field(kind, optional=optional) is expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, "bool"), (1, "int"), (1.5, "double"), ("a", "string"), ([], "list"), ({}, "map"), (None, "dyn")],
)
def test_values_have_types(value: Any, kind: str) -> None:
    assert type_of_value(value) == kind


@pytest.mark.parametrize(
    ("kind", "word", "may_be_condition"),
    [
        (CelType.STRING, "text", False),
        (CelType.INT, "a whole number", False),
        (CelType.LIST, "a list", False),
        (CelType.BOOL, "true or false", True),
        (CelType.DYN, "any value", True),
    ],
)
def test_a_type_has_a_word_for_problem_messages(kind: CelType, word: str, may_be_condition: bool) -> None:
    assert (kind.word, kind.may_be_condition) == (word, may_be_condition)
