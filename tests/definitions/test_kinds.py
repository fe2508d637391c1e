from __future__ import annotations

import json
from pathlib import Path

import pytest

from workflows.definitions.kinds import (
    COMMON_KEYS,
    KINDS,
    default_access,
    default_route,
    keys_of,
    kinds_with_key,
    outcomes_of,
    spelled_out,
    workspace_use,
)

SCHEMA = json.loads((Path(__file__).parent.parent / "data" / "schema" / "workflow-1.schema.json").read_text())[
    "definitions"
]

MAY_HAVE = ("May be an expression.", "May hold expressions.")


def test_there_are_eighteen_kinds_in_the_order_of_the_format():
    assert list(KINDS) == SCHEMA["step"]["properties"]["kind"]["enum"]
    assert len(KINDS) == 18


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_required_keys_are_those_of_the_published_schema(kind):
    described = SCHEMA[f"step_{kind}"]
    assert set(keys_of(kind)) == set(described["properties"])
    required = {name for name, rule in keys_of(kind).items() if rule.required}
    assert required == set(described["required"])
    assert {choice for option in described.get("oneOf", ()) for choice in option["required"]} == set(KINDS[kind].one_of)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_take_expressions_where_the_published_schema_says_so(kind):
    described = SCHEMA[f"step_{kind}"]["properties"]
    for name, rule in keys_of(kind).items():
        if name not in COMMON_KEYS and rule.type not in ("fields", "choice"):
            assert rule.expressions == described[name].get("description", "").endswith(MAY_HAVE), name


@pytest.mark.parametrize("kind", KINDS)
def test_allowed_words_are_those_of_the_published_schema(kind):
    described = SCHEMA[f"step_{kind}"]["properties"]
    for name, rule in keys_of(kind).items():
        if rule.values:
            assert list(rule.values) == described[name]["enum"], name


@pytest.mark.parametrize(
    ("step", "outcomes"),
    [
        ({"kind": "shell", "exits": {"tag_exists": [10]}}, ["ok", "tag_exists", "failed", "timed_out"]),
        ({"kind": "shell", "only_if": True, "max_visits": 2}, ["ok", "failed", "timed_out", "skipped", "exhausted"]),
        ({"kind": "http", "statuses": {"conflict": [409]}}, ["ok", "conflict", "failed", "timed_out"]),
        ({"kind": "llm"}, ["ok", "refused", "over_budget", "failed", "timed_out"]),
        ({"kind": "agent"}, ["ok", "blocked", "over_budget", "failed", "timed_out"]),
        ({"kind": "verify"}, ["passed", "not_passed", "failed", "timed_out"]),
        ({"kind": "assign"}, ["ok", "failed"]),
        ({"kind": "condition", "if": "x"}, ["then", "else", "failed"]),
        (
            {"kind": "condition", "cases": [{"when": "x", "outcome": "large"}, {"when": "y", "outcome": "small"}]},
            ["large", "small", "else", "failed"],
        ),
        ({"kind": "approval"}, ["approved", "rejected", "expired", "failed"]),
        ({"kind": "question"}, ["answered", "expired", "failed"]),
        ({"kind": "question", "choices": ["go", "stop"]}, ["go", "stop", "expired", "failed"]),
        ({"kind": "question", "choices": {"go": "Go"}}, ["go", "expired", "failed"]),
        ({"kind": "question", "choices": [{"name": "go", "label": "Go"}]}, ["go", "expired", "failed"]),
        ({"kind": "wait", "for": "1s"}, ["elapsed", "failed"]),
        ({"kind": "wait", "signal": "paid"}, ["received", "expired", "failed"]),
        ({"kind": "map"}, ["ok", "empty", "over_budget", "failed", "timed_out"]),
        ({"kind": "parallel"}, ["ok", "over_budget", "failed", "timed_out"]),
        ({"kind": "block"}, ["ok", "failed", "timed_out"]),
        ({"kind": "workflow"}, ["ok", "failed", "timed_out"]),
        ({"kind": "external", "outcomes": ["unusable"]}, ["ok", "unusable", "failed", "timed_out"]),
        ({"kind": "langgraph"}, ["ok", "over_budget", "failed", "timed_out"]),
        ({"kind": "end"}, []),
    ],
)
def test_outcomes_of_a_step_follow_its_kind_and_its_keys(step, outcomes):
    assert list(outcomes_of(step).all) == outcomes


def test_outcomes_that_a_task_function_declares_must_be_routed():
    outcomes = outcomes_of({"kind": "task"}, declared=["declined"])
    assert outcomes.all == ("ok", "declined", "failed", "timed_out")
    assert outcomes.named == ("declined",)
    assert default_route("declined", {}, outcomes) is None


@pytest.mark.parametrize("broken", [{"exits": [1]}, {"exits": None}, {"exits": "x"}, {"exits": {}}])
def test_outcomes_of_a_step_that_is_not_right_yet_are_the_usual_ones(broken):
    assert outcomes_of({"kind": "shell", **broken}).main == "ok"


@pytest.mark.parametrize(
    ("outcome", "written", "target"),
    [
        ("ok", {}, "continue"),
        ("skipped", {"ok": "b"}, "b"),
        ("skipped", {}, "continue"),
        ("empty", {"ok": "done"}, "done"),
        ("timed_out", {"failed": "b"}, "b"),
        ("timed_out", {}, "fail"),
        ("over_budget", {"ok": "b"}, "fail"),
        ("exhausted", {}, "fail"),
        ("failed", {}, "fail"),
    ],
)
def test_outcomes_that_are_not_listed_go_where_the_format_says(outcome, written, target):
    outcomes = outcomes_of({"kind": "map", "only_if": True, "max_visits": 1})
    assert default_route(outcome, written, outcomes) == target


@pytest.mark.parametrize(
    ("step", "access", "workspace"),
    [
        ({"kind": "shell"}, "write", "shared"),
        ({"kind": "shell", "workspace": "none"}, "write", "none"),
        ({"kind": "task"}, "write", "none"),
        ({"kind": "http"}, "read", "none"),
        ({"kind": "http", "method": "HEAD"}, "read", "none"),
        ({"kind": "http", "method": "DELETE"}, "write", "none"),
        ({"kind": "llm"}, "read", "none"),
        ({"kind": "verify"}, "read", "read"),
        ({"kind": "agent"}, "read", "read"),
        ({"kind": "agent", "access": "write"}, "read", "write"),
    ],
)
def test_access_and_workspace_default_by_kind(step, access, workspace):
    assert default_access(step) == access
    assert workspace_use(step) == workspace


def test_the_kinds_that_have_a_key_are_found():
    assert kinds_with_key("over") == ("map",)
    assert kinds_with_key("ask") == ("approval", "question")


@pytest.mark.parametrize(("name", "label"), [("roll_out", "Roll out"), ("a", "A"), ("x2_y", "X2 y")])
def test_names_are_spelled_out(name, label):
    assert spelled_out(name) == label
