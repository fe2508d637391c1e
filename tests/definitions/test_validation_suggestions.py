from __future__ import annotations

import zoneinfo

import pytest

from workflows.definitions.kinds import KINDS
from workflows.definitions.models.fields import FIELD_TYPES
from workflows.definitions.suggestions import closest, did_you_mean, zone_like
from workflows.definitions.wording import article, as_name, joined, quoted, shown


@pytest.mark.parametrize(
    ("word", "candidates", "meant"),
    [
        ("aproved", ["approved", "rejected"], "approved"),
        ("deplyo", ["deploy"], "deploy"),
        ("gh_token", ["github_token"], "github_token"),
        ("clean_up", ["cleanup"], "cleanup"),
        ("CleanUp", ["cleanup"], "cleanup"),
        ("time-out", ["timeout"], "timeout"),
        ("token", ["cost_usd", "tokens"], "tokens"),
        ("ab", ["a", "b"], None),
        ("something_else", ["deploy", "build"], None),
        ("", ["deploy"], None),
        ("x", [], None),
    ],
)
def test_a_close_spelling_is_suggested(word: str, candidates: list[str], meant: str | None) -> None:
    assert closest(word, candidates) == meant


@pytest.mark.parametrize(
    ("word", "meant"),
    [("script", "shell"), ("foreach", "map"), ("forech", "map"), ("Sleep", "wait"), ("shel", "shell"), ("exit", "end")],
)
def test_words_of_other_tools_lead_to_kinds(word: str, meant: str) -> None:
    assert closest(word, KINDS, "kind") == meant


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("int", "integer"),
        ("str", "string"),
        ("float", "number"),
        ("bool", "boolean"),
        ("list", "array"),
        ("dict", "object"),
    ],
)
def test_types_of_languages_lead_to_types_of_fields(word: str, meant: str) -> None:
    assert did_you_mean(word, FIELD_TYPES, "field type") == f'Did you mean "{meant}"?'


def test_a_synonym_is_suggested_only_where_it_is_possible() -> None:
    assert closest("result", ["outcome"], "step attribute") is None


@pytest.mark.parametrize(
    ("word", "zone"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
        ("PST", "America/Los_Angeles"),
        ("Mars/Olympus", None),
    ],
)
def test_time_zones_are_found_by_spelling_city_and_abbreviation(word: str, zone: str | None) -> None:
    assert zone_like(word, zoneinfo.available_timezones()) == zone


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Nightly Import", "nightly_import"),
        ("fetch-data", "fetch_data"),
        ("2fa", "fa"),
        ("Größe", "groe"),
        ("123", ""),
        ("a" * 70, "a" * 63),
    ],
)
def test_a_name_is_proposed_for_what_was_written(written: str, name: str) -> None:
    assert as_name(written) == name


def test_values_are_shown_as_written_and_cut() -> None:
    assert [shown(value) for value in ("x", 1, True, None, [1], {"a": "b"})] == [
        '"x"', "1", "true", "null", "[1]", '{"a": "b"}',
    ]  # fmt: skip
    assert shown("x" * 100) == f'"{"x" * 80}…"'


def test_words_are_joined_as_people_write_them() -> None:
    assert [joined(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert quoted(["a", "b"], "or") == '"a" or "b"'
    assert [article(word) for word in ("agent", "map", "http", "llm")] == ["an agent", "a map", "an http", "an llm"]
