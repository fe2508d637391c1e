"""Secrets: where they are read and how they are kept out of what is stored (docs/format.md, Secrets)."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.engine.secrets import AttemptSecrets, Masker, SecretMissing, missing_secrets, read_secret

HINT = "Set WAYPOST_SECRET_DEPLOY_KEY for the workers."


def test_a_value_comes_from_the_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYPOST_SECRET_DEPLOY_KEY", " with spaces\n")

    assert read_secret("deploy_key") == " with spaces\n"


def test_the_settings_come_first_and_may_be_callables(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setenv("WAYPOST_SECRET_DEPLOY_KEY", "of the environment")
    values = iter(["first", "second"])
    settings.WAYPOST_SECRETS = {"deploy_key": lambda: next(values), "plain": "text"}

    assert [read_secret("deploy_key"), read_secret("deploy_key"), read_secret("plain")] == ["first", "second", "text"]


def _fails() -> str:
    raise RuntimeError("vault said: hunter2")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "has no value on this server"),
        ("", "has no value on this server"),
        (7, "is not text but int"),
        ("a\0b", "contains the character U+0000, which no process or header can hold"),
        (_fails, "could not be read (RuntimeError)"),
        (lambda: None, "has no value on this server"),
    ],
)
def test_a_value_that_cannot_be_used_is_missing(settings: Any, value: Any, reason: str) -> None:
    settings.WAYPOST_SECRETS = {"deploy_key": value}

    with pytest.raises(SecretMissing) as caught:
        read_secret("deploy_key")

    assert str(caught.value) == f'Secret "deploy_key" {reason}. {HINT}'
    assert caught.value.name == "deploy_key"
    assert caught.value.__cause__ is None
    assert missing_secrets(["deploy_key"]) == ["deploy_key"]


def test_missing_secrets_are_listed_in_order(settings: Any) -> None:
    settings.WAYPOST_SECRETS = {"b": "x"}

    assert missing_secrets(["c", "b", "a"]) == ["c", "a"]


@pytest.mark.parametrize(
    ("values", "text", "masked"),
    [
        (["hunter2"], "login hunter2, hunter2!", "login ***, ***!"),
        (["hunter2", "hunter2-long"], "hunter2-long", "***"),
        (["abc"], "abc", "abc"),
        (["first line of it\nsecond line of it\nx"], "got second line of it", "got ***"),
        ([], "nothing", "nothing"),
        (["pässwörd"], "pässwörd", "***"),
    ],
)
def test_texts_are_masked(values: list[str], text: str, masked: str) -> None:
    assert Masker(values).text(text) == masked


def test_values_are_masked_at_every_depth() -> None:
    value = {"hunter2": ["hunter2", 1, None, {"k": "x hunter2"}]}

    assert Masker(["hunter2"]).value(value) == {"***": ["***", 1, None, {"k": "x ***"}]}


def test_a_cut_leaves_no_part_of_a_secret() -> None:
    masker = Masker(["hunter2-long"])

    assert masker.cut_end("password: hunter2-lo") == "password: ***"
    assert masker.cut_start("r2-long is it") == "*** is it"
    assert masker.cut_end("password: none") == "password: none"


def test_an_attempt_reads_a_secret_once_and_masks_what_it_read() -> None:
    values = iter(["first", "second"])
    secrets = AttemptSecrets(lambda name: next(values))
    assert secrets.masker().text("first") == "first"

    assert [secrets.read("a"), secrets.read("a")] == ["first", "first"]
    assert secrets.masker().text("first") == "***"
