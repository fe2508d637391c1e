"""Parameters at the start of a run: E601 to E613 and W601. Checks PUB.2 and PUB.7 as far as they need no database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.definitions.fields import (
    ARRAY,
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    accepted,
    fields_of,
    one,
)
from workflows.definitions.parameters import check_parameters, for_expressions, from_command_line
from workflows.definitions.source import read_source
from workflows.jsonvalue import read_json

DATA = Path(__file__).parent.parent / "data" / "parameters"
LARGE_HINT = "Put large data into a file and pass its name."


# ---- the sentences of the format -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "given", "problem"),
    [
        (
            fields_of(region=STRING),
            {},
            ("E601", "region", 'Parameter "region" is missing.', "Fill it in, or pass `-P region=…`."),
        ),
        (
            fields_of(rows=INTEGER),
            {"rows": "ten"},
            ("E602", "rows", '"rows" must be a whole number, but it is the text "ten".', "Example: 10."),
        ),
        (
            fields_of(region={**STRING, "optional": True}),
            {"regoin": "eu"},
            ("E603", "regoin", 'There is no parameter "regoin".', 'Did you mean "region"?'),
        ),
        (
            fields_of(env={**STRING, "enum": ["dev", "prod"]}),
            {"env": "prd"},
            ("E604", "env", '"env" must be one of dev, prod; it is "prd".', 'Did you mean "prod"?'),
        ),
        (
            fields_of(payload=OBJECT),
            {"payload": {"rate": float("nan")}},
            (
                "E605",
                "payload.rate",
                '"payload.rate" is NaN, which JSON cannot hold.',
                "Use a finite number or leave it out.",
            ),
        ),
        (
            fields_of(payload=OBJECT),
            {"payload": {"id": 9007199254740993}},
            (
                "E606",
                "payload.id",
                '"payload.id" is 9007199254740993; whole numbers beyond ±9007199254740991 lose digits.',
                'Pass it as text: "9007199254740993".',
            ),
        ),
        (
            fields_of(payload=OBJECT),
            {"payload": {"name": "a\0b"}},
            (
                "E607",
                "payload.name",
                '"payload.name" contains the character U+0000.',
                "Remove it; NUL and half surrogates cannot be stored.",
            ),
        ),
        (
            fields_of(day=DATE),
            {"day": "31.12.2026"},
            (
                "E611",
                "day",
                '"day" must be a date such as 2026-01-31, but it is "31.12.2026".',
                "Year, month, day with dashes.",
            ),
        ),
        (
            fields_of(version={**STRING, "pattern": r"\d+\.\d+\.\d+", "example": "1.4.0"}),
            {"version": "v1.4"},
            ("E612", "version", r'"version" must match \d+\.\d+\.\d+, but it is "v1.4".', "Example: 1.4.0."),
        ),
        (
            fields_of(count={**INTEGER, "min": 1, "max": 100}),
            {"count": 0},
            ("E613", "count", '"count" must be at least 1, but it is 0.', "Allowed: 1 to 100."),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_the_sentences_of_the_format(fields, given, problem):
    (found,) = check_parameters(fields, given).problems
    assert (found.code, found.path, found.message, found.hint) == problem


def test_parameters_beyond_a_mebibyte_are_refused_as_a_whole():
    fields = fields_of(a=STRING, b={**STRING, "default": "x" * 300_000})
    assert check_parameters(fields, {"a": "é" * 370_000}).problems == ()
    (found,) = check_parameters(fields, {"a": "é" * 536_064}).problems
    assert (found.code, found.path, found.hint) == ("E608", "(parameters)", LARGE_HINT)
    assert found.message == "The parameters are 1,340 KiB; the limit is 1,024 KiB."


def test_nesting_beyond_64_levels_is_refused_and_never_followed():
    value: Any = 1
    for _ in range(64):
        value = [value]
    assert check_parameters(fields_of(payload=ARRAY), {"payload": value}).problems == ()
    found = one(ARRAY, [value], "payload")
    assert (found.code, found.path, found.hint) == ("E610", "payload", "Flatten it or pass a file.")
    assert found.message == '"payload" is nested 65 levels deep; the limit is 64.'
    for _ in range(100_000):
        value = [value]
    assert one(ARRAY, value, "payload").code == "E610"


def test_json_text_for_a_parameter_is_read_strictly():
    checked = check_parameters(fields_of(payload=OBJECT), {"payload": '{"a":1,"a":2}'}, from_text={"payload"})
    (found,) = checked.problems
    assert (found.code, found.path) == ("E609", "payload")
    assert found.message == '"payload" is not usable JSON: key "a" appears twice (line 1, column 8).'


# ---- nested declarations ---------------------------------------------------------------------------------------------

NESTED = {
    **OBJECT,
    "properties": {
        "size": {**STRING, "enum": ["s", "m"]},
        "count": {**INTEGER, "default": 1},
        "note": {**STRING, "optional": True},
        "tags": {**ARRAY, "items": STRING, "optional": True},
    },
}


def test_members_of_a_mapping_are_checked_and_their_defaults_filled_in():
    assert accepted(NESTED, {"size": "s"}) == {"size": "s", "count": 1}
    assert accepted(NESTED, {"size": "s", "note": None}) == {"size": "s", "count": 1, "note": None}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, ("E601", "x.size", '"x.size" is missing.', 'Add "size" to "x".')),
        ({"size": "m", "cuont": 1}, ("E603", "x.cuont", 'There is no "x.cuont".', 'Did you mean "count"?')),
        (
            {"size": "m", "zz": 1},
            ("E603", "x.zz", 'There is no "x.zz".', 'Members of "x": size, count, note, tags.'),
        ),
        ({"size": "l"}, ("E604", "x.size", '"x.size" must be one of s, m; it is "l".', "Allowed: s, m.")),
        (
            {"size": "m", "tags": ["a", 2]},
            ("E602", "x.tags[1]", '"x.tags[1]" must be text, but it is the number 2.', 'Pass it as text: "2".'),
        ),
    ],
)
def test_problems_of_members_have_their_path(value, problem):
    found = one(NESTED, value)
    assert (found.code, found.path, found.message, found.hint) == problem


def test_all_problems_are_reported_at_once_in_the_order_of_the_declarations():
    fields = fields_of(a=INTEGER, b=STRING, c={**ARRAY, "items": {**INTEGER, "min": 1}})
    found = check_parameters(fields, {"z": 1, "c": [0, "x"], "a": "?"}).problems
    assert [(problem.code, problem.path) for problem in found] == [
        ("E602", "a"),
        ("E601", "b"),
        ("E613", "c[0]"),
        ("E602", "c[1]"),
        ("E603", "z"),
    ]


def test_an_unknown_name_without_a_likeness_gets_the_list_of_parameters():
    assert check_parameters(fields_of(a=BOOLEAN | {"default": True}), {"zzzz": 1}).problems[0].hint == "Parameters: a."
    assert check_parameters([], {"zzzz": 1}).problems[0].hint == "This workflow has no parameters."


# ---- values ----------------------------------------------------------------------------------------------------------


def test_defaults_are_filled_in_and_optional_ones_left_out():
    fields = fields_of(
        b={**INTEGER, "default": 3}, a={**STRING, "optional": True}, c=STRING, d={**ARRAY, "default": []}
    )
    assert list(check_parameters(fields, {"c": "x"}).values.items()) == [("b", 3), ("c", "x"), ("d", [])]
    assert check_parameters(fields, {"c": "x", "a": None}).values == {"b": 3, "c": "x", "d": []}


def test_expressions_see_every_parameter_and_numbers_as_doubles():
    fields = fields_of(
        factor=NUMBER,
        count=INTEGER,
        note={**STRING, "optional": True},
        rates={**ARRAY, "items": NUMBER},
        box={**OBJECT, "properties": {"w": NUMBER, "n": INTEGER}},
    )
    seen = for_expressions(fields, {"factor": 2, "count": 2, "rates": [1, 2.5], "box": {"w": 1, "n": 1, "other": 1}})
    assert json.dumps(seen) == (
        '{"factor": 2.0, "count": 2, "note": null, "rates": [1.0, 2.5], "box": {"w": 1.0, "n": 1, "other": 1}}'
    )


@pytest.mark.parametrize(
    ("declaration", "text", "value"),
    [
        (STRING, "10", "10"),
        (STRING, " x ", " x "),
        (INTEGER, "10", 10),
        (INTEGER, "-3", -3),
        (INTEGER, "1.5", 1.5),
        (INTEGER, "1e3", 1000),
        (INTEGER, "ten", "ten"),
        (INTEGER, "", ""),
        (INTEGER, "1_000", "1_000"),
        (NUMBER, "1.5", 1.5),
        (NUMBER, "2", 2),
        (NUMBER, "nan", "nan"),
        (BOOLEAN, "true", True),
        (BOOLEAN, "false", False),
        (BOOLEAN, "yes", "yes"),
        (ARRAY, '["a", 1]', ["a", 1]),
        (ARRAY, "a,b", "a,b"),
        (ARRAY, "[1,", "[1,"),
        (OBJECT, '{"a": 1}', {"a": 1}),
        (DATE, "2026-01-31", "2026-01-31"),
    ],
)
def test_text_of_the_command_line_is_converted_by_the_declared_type(declaration, text, value):
    found = from_command_line(fields_of(x=declaration), "x", text)
    assert found == value
    assert type(found) is type(value)


def test_text_for_an_undeclared_parameter_stays_text():
    assert from_command_line([], "x", "10") == "10"


def test_values_given_as_text_are_converted_and_then_checked():
    fields = fields_of(rows=INTEGER, hosts=ARRAY, name=STRING)
    given = {"rows": "12", "hosts": '["a"]', "name": "12"}
    assert check_parameters(fields, given, from_text=set(given)).values == {"rows": 12, "hosts": ["a"], "name": "12"}
    assert [problem.code for problem in check_parameters(fields, given).problems] == ["E602", "E602"]
    big = check_parameters(fields, {**given, "rows": "9007199254740993"}, from_text=set(given))
    assert [problem.code for problem in big.problems] == ["E606"]


@pytest.mark.parametrize(
    "written", ["9007199254740993.0", "-9007199254740993.0", "9007199254740993.5", "90071992547409930e-1"]
)
def test_a_large_number_is_not_changed_in_silence(written: str) -> None:
    """PUB.2, DB.4"""
    declared = fields_of(x={"type": "number"})
    from_json, _ = read_json(written)
    for given, from_text in ((written, {"x"}), (from_json, set())):
        found = check_parameters(declared, {"x": given}, from_text=from_text)
        assert [(problem.code, problem.message) for problem in found.problems] == [
            ("E606", f'"x" is {written}; whole numbers beyond ±9007199254740991 lose digits.')
        ]


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e20", 1e20), ("1e23", 1e23), ("1.5e300", 1.5e300), ("0.1234567890123456789", 0.12345678901234568)],
)
def test_a_number_that_a_double_shows_as_it_was_written_is_taken(written: str, value: float) -> None:
    """DB.4"""
    assert check_parameters(fields_of(x={"type": "number"}), {"x": written}, from_text={"x"}).values == {"x": value}


# ---- messy files -----------------------------------------------------------------------------------------------------

EXPECTED = {
    "01_unicode.json": [],
    "03_long_strings.json": [],
    "05_nul_and_controls.json": [
        ("E607", f"payload.{path}") for path in ("nul", "nul_in_key", "lone_high", "lone_low", "swapped", "list[0]")
    ],
    "06_big_integers.json": [
        ("E606", f"payload.{path}")
        for path in ("first_unsafe", "snowflake", "int64_max", "int64_over", "forty_digits", "negative", "list[1]")
    ],
    "07_floats.json": [
        ("E605", f"payload.{path}") for path in ("too_large", "too_small", "nan", "infinity", "minus_infinity")
    ],
    "10_thousand_items.json": [],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_messy_files_are_accepted_or_refused_with_every_path(name):
    declared = read_source((DATA / "probe.yaml").read_bytes()).document["params"]
    given, problems = read_json((DATA / name).read_text(encoding="utf-8"))
    assert problems == []
    found = check_parameters(fields_of(**declared), given).problems
    assert [(problem.code, problem.path) for problem in found] == EXPECTED[name]
