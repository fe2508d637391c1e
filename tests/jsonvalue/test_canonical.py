"""Canonical text, digests and the stored form (PLAN.1)."""

from __future__ import annotations

from collections import OrderedDict
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from workflows.jsonvalue import NotStorable, Stored, canonical, decode, digest, store, text_of

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


class Colour(StrEnum):
    RED = "red"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1.0, "a": -0.0}, '{"a":0,"b":1}'),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"\U0001f600":1,"\ufb33":2}'),
        ([1e21, 1e-7, 1e20, 1e16, 0.1, 5e-324], "[1e+21,1e-7,100000000000000000000,10000000000000000,0.1,5e-324]"),
        ({"10": 1, "9": 2, "a": 3}, '{"10":1,"9":2,"a":3}'),
        ('tab\t quote" \\ \u001b \u007f \u0085 ä', '"tab\\t quote\\" \\\\ \\u001b \u007f \u0085 ä"'),
        (OrderedDict(b=[], a={}), '{"a":{},"b":[]}'),
        ({"c": Colour.RED}, '{"c":"red"}'),
        (9_007_199_254_740_991, "9007199254740991"),
    ],
)
def test_a_value_has_one_text(value: Any, text: str) -> None:
    assert canonical(value) == text


def test_the_digest_is_sha_256_of_the_text() -> None:
    assert (
        digest(canonical({"b": 1.0, "a": -0.0})) == "f4c1d8bd90d7ccd720aa5a69a67185fb9caf4f35926a4eacf53a86d0e70bdf88"
    )


@given(VALUES)
def test_the_text_is_that_of_the_reference_library_and_reads_back_to_itself(value: Any) -> None:
    text = canonical(value)
    assert text == rfc8785.dumps(value).decode()
    assert canonical(decode(text)) == text
    assert decode(text) == value


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        (float("nan"), "", "The value is NaN, which JSON cannot hold."),
        ({"a": [1, float("-inf")]}, "a[1]", '"a[1]" is -Infinity, which JSON cannot hold.'),
        ({"a": 2**53}, "a", '"a" is 9007199254740992; whole numbers beyond ±9007199254740991 lose digits.'),
        ({"a b": "x\0"}, '["a b"]', '"["a b"]" contains the character U+0000.'),
        ({"a": {"k\ud800": 1}}, "a", 'A key of "a" contains the character U+D800.'),
        ({"a": (1, 2)}, "a", '"a" is of the Python type tuple, which is not JSON.'),
        ({"a": {1, 2}}, "a", '"a" is of the Python type set, which is not JSON.'),
        ([Decimal(1)], "[0]", '"[0]" is of the Python type Decimal, which is not JSON.'),
        ({"a": b"x"}, "a", '"a" is of the Python type bytes, which is not JSON.'),
        ({"a": {1: 2}}, "a", '"a" has the key 1, which is not text.'),
        (nested(65), "", "The value is nested 65 levels deep; the limit is 64."),
        (nested(100_000), "", "The value is nested 100000 levels deep; the limit is 64."),
    ],
)
def test_what_is_not_json_is_refused_with_its_path(value: Any, path: str, message: str) -> None:
    with pytest.raises(NotStorable) as refused:
        store(value)
    assert (refused.value.code, refused.value.path, refused.value.message) == ("invalid_output", path, message)


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotStorable, match=r"^The value holds itself\.$"):
        store(endless)


def test_sixty_four_levels_can_be_stored() -> None:
    assert store(nested(64)).text == "[" * 64 + "1" + "]" * 64


def test_size_is_in_bytes_and_the_limit_is_the_last_allowed_size() -> None:
    assert store("ä", limit=4) == Stored(text='"ä"', digest=digest('"ä"'), size=4)
    with pytest.raises(NotStorable) as refused:
        store("ä" * 600, limit=1_000)
    assert refused.value.code == "output_too_large"
    assert refused.value.message == "The value is 1,202 bytes as JSON; the limit is 1,000 bytes."


def test_a_stored_value_is_decoded_anew_each_time() -> None:
    stored = store({"a": [1]})
    stored.value()["a"].append(2)
    assert stored.value() == {"a": [1]}


def test_large_doubles_stay_doubles_when_decoded() -> None:
    value = decode(canonical([1e20, 9_007_199_254_740_991, "12345678901234567890"]))
    assert value == [1e20, 9_007_199_254_740_991, "12345678901234567890"]
    assert type(value[0]) is float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        (True, "true"),
        (0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e21, "1e+21"),
        ([1, "ä", None], '[1,"ä",null]'),
        ({"b": 1, "a": [True]}, '{"a":[true],"b":1}'),
    ],
)
def test_values_become_text_by_one_rule(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_null_has_no_text() -> None:
    with pytest.raises(ValueError, match=r"^null has no text$"):
        text_of(None)
