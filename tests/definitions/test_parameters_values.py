"""One value against its declaration: types (E602, E611), enum (E604), pattern (E612) and limits (E608, E613)."""

from __future__ import annotations

import pytest

from tests.definitions.fields import (
    ARRAY,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    accepted,
    one,
)

LARGE_HINT = "Put large data into a file and pass its name."


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
