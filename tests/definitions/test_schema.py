from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from tests.definitions.mutations import DATA, mutations, small_files
from workflows.definitions.kinds import KINDS, keys_of
from workflows.definitions.models import STEP_MODELS
from workflows.definitions.schema import workflow_schema
from workflows.definitions.source import read_source
from workflows.definitions.validation import check_document
from workflows.definitions.validation.known import Known
from workflows.definitions.validation.report import Report

SCHEMA = workflow_schema()
OURS = jsonschema_rs.validator_for(SCHEMA)
HANDED_OVER = jsonschema_rs.validator_for(
    json.loads((DATA / "schema" / "workflow-1.schema.json").read_text(encoding="utf-8"))
)
FILES = sorted([*(DATA / "examples").glob("*.yaml"), *(DATA / "cases").glob("*/workflow.yaml")])
PARTS = small_files()


def errors_in(document: dict[str, Any]) -> list[str]:
    report = Report(position=lambda path: (1, 1))
    check_document(document, Known(), report)
    return [problem.code for problem in report.problems if problem.severity == "error"]


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_every_call_makes_a_new_value() -> None:
    workflow_schema()["properties"].clear()

    assert workflow_schema() == SCHEMA


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_the_schema_accepts_each_example(path: Any) -> None:
    assert [error.message for error in OURS.iter_errors(read_source(path.read_bytes()).document)] == []


@pytest.mark.parametrize("part", PARTS)
def test_what_the_handed_over_schema_refuses_stays_refused_by_schema_and_validator(part: str) -> None:
    missed = []
    for change, document in mutations(PARTS[part]):
        is_refused = not HANDED_OVER.is_valid(document)
        if is_refused and OURS.is_valid(document):
            missed.append(f"schema: {change}")
        if (is_refused or not OURS.is_valid(document)) and not errors_in(document):
            missed.append(f"validator: {change}")

    assert missed == []


@pytest.mark.parametrize("part", PARTS)
def test_the_schema_is_stricter_than_the_handed_over_one_only_where_the_format_is(part: str) -> None:
    stricter = {
        change.partition(" ")[0] if "secrets" in change else change
        for change, document in mutations(PARTS[part])
        if HANDED_OVER.is_valid(document) and not OURS.is_valid(document)
    }

    assert stricter == STRICTER.get(part, set())


#: No expressions in retries, reminders and budgets; secrets are names; a lease is a duration; no negative lengths.
STRICTER = {
    "(top)": {
        "('secrets',",
        "('secrets',)",
        "('params', 'version', 'min_length') set to -1",
        "('params', 'version', 'max_length') set to -1",
        "('budget', 'time') set to '${ 1 }'",
    },
    "build": {
        "('steps', 0, 'retry', 0, 'wait') set to '${ 1 }'",
        "('steps', 0, 'retry', 0, 'max_wait') set to '${ 1 }'",
    },
    "list": {"('steps', 0, 'argv') set to []"},
    "sign_off": {"('steps', 0, 'remind') set to '${ 1 }'"},
    "ask_choice": {"('steps', 0, 'remind') set to '${ 1 }'"},
    "label_images": {
        "('steps', 0, 'lease') set to ''",
        "('steps', 0, 'lease') set to 'text'",
        "('steps', 0, 'lease') set to 'Bad Name'",
        "('steps', 0, 'lease') set to '${ 1 }'",
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_models_and_table_of_kinds_have_the_same_keys(kind: str) -> None:
    model = STEP_MODELS[kind]
    fields = {field.alias or name: field for name, field in model.model_fields.items()}

    assert set(fields) == set(keys_of(kind))
    assert {name for name, field in fields.items() if field.is_required()} == {
        name for name, rule in keys_of(kind).items() if rule.required
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described_and_outcomes_are_offered(kind: str) -> None:
    definition = SCHEMA["definitions"][STEP_MODELS[kind].__name__]
    rule = KINDS[kind]

    assert [key for key, value in definition["properties"].items() if not value.get("description")] == []
    offered = definition["properties"]["next"]["anyOf"][1]["properties"]
    assert {*([rule.main] if rule.main else []), *rule.others, *rule.failures, "skipped", "exhausted"} <= set(offered)


def test_every_key_at_the_top_is_described() -> None:
    assert [key for key, value in SCHEMA["properties"].items() if not value.get("description")] == []


def test_nothing_of_the_code_shows_in_the_schema() -> None:
    text = json.dumps(SCHEMA)

    assert '"title": "' not in text.replace('"title": "Workflow, format 1"', "")
    assert "pydantic" not in text
    assert "$defs" not in text
