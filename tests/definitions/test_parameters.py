"""Parameters at the start of a run: E601 to E613 and W601. Checks PUB.2 and PUB.7 as far as they need no database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workflows.definitions.parameters import check_parameters, for_expressions, from_command_line
from workflows.definitions.source import read_source
from workflows.errors import Problem
from workflows.jsonvalue import read_json

DATA = Path(__file__).parent.parent / "data" / "parameters"
LARGE_HINT = "Put large data into a file and pass its name."


def fields_of(**declarations: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **declaration} for name, declaration in declarations.items()]


def one(declaration: dict[str, Any], value: Any, name: str = "x") -> Problem:
    """The only problem of one value."""
    (problem,) = check_parameters(fields_of(**{name: declaration}), {name: value}).problems
    return problem


def accepted(declaration: dict[str, Any], value: Any) -> Any:
    checked = check_parameters(fields_of(x=declaration), {"x": value})
    assert checked.problems == ()
    return checked.values["x"]


STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
ARRAY, OBJECT, DATE, DATETIME = ({"type": name} for name in ("array", "object", "date", "datetime"))


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


# ---- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "value", "must_be", "it_is", "hint"),
    [
        (STRING, 5, "text", "the number 5", 'Pass it as text: "5".'),
        (STRING, True, "text", "true", 'Pass it as text: "true".'),
        (STRING, ["a"], "text", "a list", 'Example: "text".'),
        (STRING, None, "text", "null", 'Example: "text".'),
        ({**STRING, "example": "eu"}, {}, "text", "a mapping", "Example: eu."),
        ({**STRING, "default": "eu"}, None, "text", "null", "Leave it out to get the default."),
        (INTEGER, 1.5, "a whole number", "the number 1.5", "Example: 10."),
        (INTEGER, True, "a whole number", "true", "Example: 10."),
        (INTEGER, "5", "a whole number", 'the text "5"', "Example: 10."),
        (NUMBER, "1.5", "a number", 'the text "1.5"', "Example: 1.5."),
        (NUMBER, False, "a number", "false", "Example: 1.5."),
        (BOOLEAN, "yes", "true or false", 'the text "yes"', "Write true or false."),
        (BOOLEAN, 1, "true or false", "the number 1", "Write true or false."),
        (ARRAY, "a,b", "a list", 'the text "a,b"', 'Example: ["a", "b"].'),
        (ARRAY, {"a": 1}, "a list", "a mapping", 'Example: ["a", "b"].'),
        (OBJECT, [], "a mapping", "a list", 'Example: {"a": 1}.'),
        (DATE, 20260131, "a date such as 2026-01-31", "the number 20260131", "Example: 2026-01-31."),
        (
            DATETIME,
            [],
            "a date and time such as 2026-01-31T09:30:00Z",
            "a list",
            "Example: 2026-01-31T09:30:00Z.",
        ),
    ],
)
def test_a_value_of_another_type_is_refused(declaration, value, must_be, it_is, hint):
    found = one(declaration, value)
    assert (found.code, found.path) == ("E602", "x")
    assert found.message == f'"x" must be {must_be}, but it is {it_is}.'
    assert found.hint == hint


def test_long_text_is_shortened_in_a_message():
    assert one(INTEGER, "y" * 500).message == f'"x" must be a whole number, but it is the text "{"y" * 99}…".'


@pytest.mark.parametrize("value", ["31.12.2026", "2026-02-30", "2026-1-1", "20260131", "2026-01-31T00:00:00Z", ""])
def test_what_is_no_day_is_refused(value):
    found = one(DATE, value)
    assert (found.code, found.hint) == ("E611", "Year, month, day with dashes.")
    assert found.message == f'"x" must be a date such as 2026-01-31, but it is "{value}".'


@pytest.mark.parametrize(
    "value",
    ["2026-01-31", "2026-01-31T10:00:00", "2026-01-31 10:00:00Z", "2026-01-31T25:00:00Z", "2026-01-31T10:00:00+1:00"],
)
def test_what_is_no_moment_with_an_offset_is_refused(value):
    found = one(DATETIME, value)
    assert (found.code, found.hint) == ("E611", "RFC 3339: date, T, time, and Z or an offset.")
    assert found.message == f'"x" must be a date and time such as 2026-01-31T09:30:00Z, but it is "{value}".'


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        (DATE, "2024-02-29"),
        (DATETIME, "2026-01-31T09:30:00Z"),
        (DATETIME, "2026-01-31T09:30:00.123456789+05:30"),
        (STRING, ""),
        (STRING, "é e\u0301 ${ params.x } <b>"),
        (NUMBER, 2),
        (NUMBER, 1.5),
        (BOOLEAN, False),
        (ARRAY, [1, "a", None, [2]]),
        (OBJECT, {"a": None, "ä b": []}),
    ],
)
def test_values_of_the_type_are_kept_as_they_are(declaration, value):
    assert accepted(declaration, value) == value
    assert type(accepted(declaration, value)) is type(value)


def test_a_whole_double_is_a_whole_number():
    assert type(accepted(INTEGER, 10.0)) is int
    assert type(accepted(NUMBER, -0.0)) is int


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "value", "message", "hint"),
    [
        ({**INTEGER, "max": 10}, 11, '"x" must be at most 10, but it is 11.', "Allowed: at most 10."),
        ({**NUMBER, "min": 0.5}, 0.25, '"x" must be at least 0.5, but it is 0.25.', "Allowed: at least 0.5."),
        (
            {**DATE, "min": "2026-01-01", "max": "2026-12-31"},
            "2025-12-31",
            '"x" must be at least 2026-01-01, but it is 2025-12-31.',
            "Allowed: 2026-01-01 to 2026-12-31.",
        ),
        (
            {**DATETIME, "max": "2026-01-01T00:00:00Z"},
            "2026-01-01T00:30:00+00:00",
            '"x" must be at most 2026-01-01T00:00:00Z, but it is 2026-01-01T00:30:00+00:00.',
            "Allowed: at most 2026-01-01T00:00:00Z.",
        ),
        (
            {**STRING, "min_length": 3, "max_length": 20},
            "ab",
            '"x" must have at least 3 characters, but it has 2.',
            "Allowed: 3 to 20 characters.",
        ),
        (
            {**STRING, "max_length": 1},
            "ab",
            '"x" must have at most 1 character, but it has 2.',
            "Allowed: at most 1 character.",
        ),
        (
            {**ARRAY, "min_length": 2},
            [1],
            '"x" must have at least 2 elements, but it has 1.',
            "Allowed: at least 2 elements.",
        ),
    ],
)
def test_values_outside_of_the_limits_are_refused(declaration, value, message, hint):
    found = one(declaration, value)
    assert (found.code, found.message, found.hint) == ("E613", message, hint)


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        ({**INTEGER, "min": 1, "max": 3}, 1),
        ({**INTEGER, "min": 1, "max": 3}, 3),
        ({**STRING, "max_length": 2}, "\U0001f600\U0001f600"),
        ({**DATETIME, "max": "2026-01-01T00:00:00Z"}, "2026-01-01T01:00:00+01:00"),
        ({**STRING, "pattern": "a|ab"}, "ab"),
        ({**INTEGER, "enum": [1, 2, 3]}, 3),
    ],
)
def test_values_at_the_limits_are_accepted(declaration, value):
    assert accepted(declaration, value) == value


@pytest.mark.parametrize("value", ["1.4.0\n", "x1.4.0", "1.4.0 ", ""])
def test_a_pattern_matches_the_whole_value(value):
    found = one({**STRING, "pattern": r"\d+\.\d+\.\d+"}, value)
    assert (found.code, found.hint) == ("E612", "The whole value must match.")


def test_a_hostile_pattern_is_linear():
    assert one({**STRING, "pattern": "(a+)+b"}, "a" * 50_000).code == "E612"


@pytest.mark.parametrize(
    ("allowed", "value", "message", "hint"),
    [
        ([1, 2, 3], 4, '"x" must be one of 1, 2, 3; it is 4.', "Allowed: 1, 2, 3."),
        ([1, 2], 1.5, '"x" must be one of 1, 2; it is 1.5.', "Allowed: 1, 2."),
    ],
)
def test_numbers_outside_of_the_enum_are_refused(allowed, value, message, hint):
    found = one({**NUMBER, "enum": allowed}, value)
    assert (found.code, found.message, found.hint) == ("E604", message, hint)


def test_text_far_from_every_allowed_value_gets_the_list():
    assert one({**STRING, "enum": ["dev", "prod"]}, "elsewhere").hint == "Allowed: dev, prod."


def test_a_list_of_more_than_ten_thousand_elements_is_refused_at_any_depth():
    assert accepted(ARRAY, [0] * 10_000) == [0] * 10_000
    found = one(OBJECT, {"rows": [0] * 10_001})
    assert (found.code, found.path, found.hint) == ("E608", "x.rows", LARGE_HINT)
    assert found.message == '"x.rows" has 10,001 elements; the limit is 10,000.'


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


# ---- credentials -----------------------------------------------------------------------------------------------------


def warned(value: Any, name: str = "x") -> list[str]:
    declared = OBJECT if isinstance(value, dict) else ARRAY if isinstance(value, list) else STRING
    checked = check_parameters(fields_of(**{name: declared}), {name: value})
    assert checked.problems == ()
    return [warning.path for warning in checked.warnings]


def test_a_credential_is_named_by_its_path_and_never_by_its_value():
    checked = check_parameters(fields_of(payload=OBJECT), {"payload": {"api_token": "hunter2"}})
    (found,) = checked.warnings
    assert (found.code, found.path, found.severity) == ("W601", "payload.api_token", "warning")
    assert found.message == '"payload.api_token" looks like a credential. Parameters are stored and shown.'
    assert found.hint == "Declare it under `secrets:` instead."
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    "name",
    ["api_token", "token", "password", "dbPassword", "client_secret", "apiKey", "API_KEY", "private_key", "passphrase"],
)
def test_names_that_promise_a_credential_are_noticed(name):
    assert warned({name: "abc"}) == [f"x.{name}"]


@pytest.mark.parametrize("name", ["max_tokens", "token_count", "secret_name", "key", "keyboard", "passport", "author"])
def test_names_that_only_contain_such_a_word_are_not(name):
    assert warned({name: "abc"}) == []


@pytest.mark.parametrize(
    "value",
    [
        "gh" + "p_" + "a1B2" * 9,
        "AK" + "IA" + "ABCDEFGHIJKLMNOP",
        "xo" + "xb-" + "123456789012-abc",
        "s" + "k-" + "a1b2c3d4" * 5,
        "-----BEGIN " + "RSA PRIVATE KEY-----\nabc",
        "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0In0.abc",
        "postgres://app:" + "hunter2" + "@db.example/app",
    ],
)
def test_values_in_the_shape_of_a_token_are_noticed_anywhere(value):
    assert warned({"list": ["fine", value]}) == ["x.list[1]"]
    assert warned(value, "note") == ["note"]


@pytest.mark.parametrize("value", ["", "https://example.com/a:b@c", "task-force-2026-plan", "mail me: a@b.example"])
def test_ordinary_text_is_not(value):
    assert warned(value, "note") == []


def test_a_value_that_may_be_a_credential_is_not_repeated_in_an_error():
    found = one({**STRING, "enum": ["a", "b"]}, "hunter2", "api_token")
    assert found.message == '"api_token" must be one of a, b; it is something else, not shown here.'
    sensitive = one({**STRING, "pattern": r"\d+", "sensitive": True}, "hunter2")
    assert sensitive.message == r'"x" must match \d+, but it is something else, not shown here.'


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
