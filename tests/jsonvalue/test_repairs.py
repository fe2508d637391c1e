"""Repair of step output (values that cannot be stored become values that can)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.jsonvalue import clean_text, repair, store

ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.text(st.sampled_from("a\0\ud800\udfff"))
VALUES = st.recursive(ANY_TEXT | st.integers(0, 9), lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner))


@pytest.mark.parametrize(
    ("text", "cleaned", "replaced"),
    [
        ("fine ä \U0001f600", "fine ä \U0001f600", False),
        ("a\0b", "a\ufffdb", True),
        ("\ud83d", "\ufffd", True),
        ("\ude80\ud83d", "\ufffd\ufffd", True),
        ("ä".encode(), "ä", False),
        (b"a\xffb\0", "a\ufffdb\ufffd", True),
    ],
)
def test_nul_half_surrogates_and_broken_bytes_are_replaced(text: str | bytes, cleaned: str, replaced: bool) -> None:
    assert clean_text(text) == (cleaned, replaced)


def test_texts_and_keys_are_repaired_at_any_depth() -> None:
    assert repair({"a\0": [{"b": "x\ud800"}], "c": 1}) == ({"a\ufffd": [{"b": "x\ufffd"}], "c": 1}, True)


def test_a_clean_value_is_the_same_object() -> None:
    value = {"a": ["b", 1, None, 1.5]}
    repaired, changed = repair(value)
    assert repaired is value
    assert changed is False


def test_keys_that_become_equal_keep_the_last_value() -> None:
    assert repair({"\0": 1, "\ud800": 2}) == ({"\ufffd": 2}, True)


def test_the_original_is_not_changed() -> None:
    value = ["a\0"]
    assert repair(value) == (["a\ufffd"], True)
    assert value == ["a\0"]


def test_a_value_nested_too_deeply_is_left_for_the_store_to_refuse() -> None:
    value: Any = "\0"
    for _ in range(100_000):
        value = [value]
    repaired, changed = repair(value)
    assert repaired is value
    assert changed is False


@given(VALUES)
def test_what_was_repaired_can_be_stored(value: Any) -> None:
    repaired, changed = repair(value)
    store(repaired)
    assert changed == (repaired is not value)
