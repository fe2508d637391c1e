"""W601: parameters that look like credentials. Checks PUB.7 as far as it needs no database."""

from __future__ import annotations

from typing import Any

import pytest

from tests.definitions.fields import (
    ARRAY,
    OBJECT,
    STRING,
    fields_of,
    one,
)
from workflows.definitions.parameters import check_parameters


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
