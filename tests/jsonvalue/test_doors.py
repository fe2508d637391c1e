"""The strict reader and the check of what can be stored: parameters, answers and API bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.jsonvalue import canonical, check_storable, read_json

PARAMETERS = Path(__file__).parents[1] / "data" / "parameters"


def problems_of(name: str) -> list[tuple[str, str, str, str]]:
    value, problems = read_json((PARAMETERS / name).read_text())
    assert problems == []
    found = check_storable(value["payload"], "payload")
    return [(problem.code, problem.path, problem.message, problem.hint) for problem in found]


def test_every_text_and_key_with_nul_or_half_surrogates_is_named() -> None:
    hint = "Remove it; NUL and half surrogates cannot be stored."
    assert problems_of("05_nul_and_controls.json") == [
        ("E607", "payload.nul", '"payload.nul" contains the character U+0000.', hint),
        ("E607", "payload.nul_in_key", 'A key of "payload.nul_in_key" contains the character U+0000.', hint),
        ("E607", "payload.lone_high", '"payload.lone_high" contains the character U+D83D.', hint),
        ("E607", "payload.lone_low", '"payload.lone_low" contains the character U+DE80.', hint),
        ("E607", "payload.swapped", '"payload.swapped" contains the character U+DE80.', hint),
        ("E607", "payload.list[0]", '"payload.list[0]" contains the character U+0000.', hint),
    ]


def test_whole_numbers_that_lose_digits_are_named() -> None:
    numbers = {
        "first_unsafe": "9007199254740993",
        "snowflake": "1234567890123456789",
        "int64_max": "9223372036854775807",
        "int64_over": "9223372036854775808",
        "forty_digits": "1234567890123456789012345678901234567890",
        "negative": "-99999999999999999999",
        "list[1]": "9007199254740993",
    }
    assert problems_of("06_big_integers.json") == [
        (
            "E606",
            f"payload.{name}",
            f'"payload.{name}" is {number}; whole numbers beyond ±9007199254740991 lose digits.',
            f'Pass it as text: "{number}".',
        )
        for name, number in numbers.items()
    ]


def test_numbers_json_cannot_hold_are_named_as_they_were_written() -> None:
    numbers = {
        "too_large": "1e400",
        "too_small": "-1e400",
        "nan": "NaN",
        "infinity": "Infinity",
        "minus_infinity": "-Infinity",
    }
    assert problems_of("07_floats.json") == [
        (
            "E605",
            f"payload.{name}",
            f'"payload.{name}" is {number}, which JSON cannot hold.',
            "Use a finite number or leave it out.",
        )
        for name, number in numbers.items()
    ]


@pytest.mark.parametrize("name", ["01_unicode.json", "03_long_strings.json", "10_thousand_items.json"])
def test_messy_but_storable_parameters_pass(name: str) -> None:
    assert problems_of(name) == []


@pytest.mark.parametrize(
    ("text", "stored"),
    [("1.0", "1"), ("-0.0", "0"), ("1E5", "100000"), ("1e-400", "0"), ("2.50", "2.5"), ("5e-324", "5e-324")],
)
def test_numbers_are_stored_in_their_shortest_form(text: str, stored: str) -> None:
    value, problems = read_json(text)
    assert (canonical(value), problems, check_storable(value, "x")) == (stored, [], [])


@pytest.mark.parametrize(("text", "is_double"), [("1.0", False), ("1e300", True), ("1.5", True), ("-0.0", False)])
def test_numbers_without_a_fraction_are_whole(text: str, is_double: bool) -> None:
    assert isinstance(read_json(text)[0], float) is is_double


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('{"payload": {"a": 1, "b": 2,"a": 3}}', 'key "a" appears twice (line 1, column 29)', "Remove one of them."),
        ('{\n  "a": 1,\n  "a": 2\n}', 'key "a" appears twice (line 3, column 3)', "Remove one of them."),
        ("", "it is empty (line 1, column 1)", "Write a mapping, e.g. {}."),
        (
            '{"a": 1,}',
            'there is a comma before "}" (line 1, column 8)',
            "Remove the comma.",
        ),
        (
            "[1 2]",
            'expected "," or "]", found "2" (line 1, column 4)',
            "Check commas and brackets.",
        ),
        (
            "{'a': 1}",
            'expected a key in double quotes, found "\'" (line 1, column 2)',
            'Write keys as "name".',
        ),
        ('{"a" 1}', 'expected ":" after the key "a", found "1" (line 1, column 6)', 'Write "key": value.'),
        ('{"a":\n True}', "True is not a JSON value (line 2, column 2)", "Write true."),
        ('"a\nb"', "the text contains the control character U+000A (line 1, column 3)", "Write line breaks as \\n and tabs as \\t."),
        ('["a', "this text has no closing quote (line 1, column 2)", "Add the missing quote."),
        ('"\\x"', "the text contains an unknown escape (line 1, column 2)", "Write a backslash as \\\\."),
        ("[1] 2", 'unexpected "2" after the end of the value (line 1, column 5)', "Keep one value per file."),
        ("[01]", 'expected "," or "]", found "1" (line 1, column 3)', "Check commas and brackets."),
        ("['a']", 'expected a value, found "\'" (line 1, column 2)', "JSON texts need double quotes."),
        ("[" * 100_000, "expected a value, found the end of the text (line 1, column 100001)", "Check for a missing value, quote or bracket."),
    ],
)  # fmt: skip
def test_a_mistake_in_the_text_is_one_sentence_with_its_place(text: str, message: str, hint: str) -> None:
    _, problems = read_json(text)
    assert [(problem.code, problem.message, problem.hint) for problem in problems] == [
        ("E609", f"The file is not usable JSON: {message}.", hint)
    ]


def test_every_repeated_key_is_reported_and_the_last_value_counts() -> None:
    value, problems = read_json('{"a": 1, "a": [{"b": 1, "b": 2}], "a": 3}')
    assert value == {"a": 3}
    assert [(problem.line, problem.column) for problem in problems] == [(1, 10), (1, 25), (1, 35)]


@pytest.mark.parametrize("levels", [65, 100_000])
def test_deep_nesting_is_one_problem(levels: int) -> None:
    value, problems = read_json(f'{{"payload": {"[" * levels}{"]" * levels}}}')
    assert problems == []
    found = check_storable(value["payload"], "payload")
    assert [(problem.code, problem.message, problem.hint) for problem in found] == [
        ("E610", f'"payload" is nested {levels} levels deep; the limit is 64.', "Flatten it or pass a file.")
    ]


def test_sixty_four_levels_pass() -> None:
    value, _ = read_json("[" * 64 + "]" * 64)
    assert check_storable(value, "payload") == []


def test_a_number_of_ten_thousand_digits_is_named_shortened() -> None:
    value, problems = read_json("9" * 10_000)
    assert problems == []
    shown = f"{'9' * 50}…{'9' * 10}"
    assert [problem.message for problem in check_storable(value, "n")] == [
        f'"n" is {shown}; whole numbers beyond ±9007199254740991 lose digits.'
    ]


@given(st.text(st.sampled_from('{}[],:"\\ \n\t-+.0123456789eEtruefalsnINy\0\ud800'), max_size=40))
def test_any_text_gives_a_value_or_problems(text: str) -> None:
    value, problems = read_json(text)
    if not problems and not check_storable(value, "x"):
        assert read_json(canonical(value)) == (value, [])


@given(st.recursive(st.none() | st.integers(-9, 9) | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner)))  # fmt: skip
def test_the_slow_reader_agrees_with_the_quick_one(value: Any) -> None:
    """A repeated key in front makes the whole text go through the slow reader."""
    text = canonical(value) if not check_storable(value, "") else "1"
    read, problems = read_json(f'[{{"a": 1, "a": 2}}, {text}]')
    assert len(problems) == 1
    assert read[1] == read_json(text)[0]
