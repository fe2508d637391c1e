"""The JSON Schema of the format, made from the models of the definition file. Editors complete and check by it."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from workflows.definitions.kinds import EXHAUSTED, KINDS, SKIPPED
from workflows.definitions.models import STEP_MODELS, WorkflowModel
from workflows.definitions.models.values import NAME_PATTERN, TAG

_DRAFT = "http://json-schema.org/draft-07/schema#"
_REFERENCE = "#/definitions/{model}"


def workflow_schema() -> dict[str, Any]:
    """The schema of a workflow file, draft 7 (what editors know best), a new value on each call.

    It refuses what can be refused without reading expressions and routes; the validator finds the rest.
    """
    made = WorkflowModel.model_json_schema(
        by_alias=True, ref_template=_REFERENCE, schema_generator=_Generator, mode="validation"
    )
    definitions = made.pop("$defs")
    for kind, model in STEP_MODELS.items():
        _complete_step(definitions[model.__name__], kind)
    return {
        "$schema": _DRAFT,
        "title": "Workflow, format 1",
        "description": "A workflow file of Waypost.",
        **{key: _for_draft_7(value) for key, value in made.items() if key not in ("title", "description")},
        "definitions": {name: _for_draft_7(definition) for name, definition in sorted(definitions.items())},
    }


def _complete_step(definition: dict[str, Any], kind: str) -> None:
    """Name the kind and its usual outcomes, so that editors can offer them."""
    rule = KINDS[kind]
    main = [rule.main] if rule.main else []
    properties = definition["properties"]
    properties["kind"] = {"const": kind, "description": f"{rule.does[:1].upper()}{rule.does[1:]}."}
    routes = properties["next"]["anyOf"][1]
    names = [*main, *rule.others, *rule.failures, SKIPPED, EXHAUSTED]
    if kind == "wait":
        names.insert(1, "received")
        names.insert(2, "expired")
    routes["properties"] = dict.fromkeys(names, routes["additionalProperties"])


class _Generator(GenerateJsonSchema):
    """Leaves out what says nothing to an author, and picks the keys of a step by its kind."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def get_title_from_name(self, name: str) -> str:
        return ""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        made: JsonSchemaValue = {"type": "object"}
        if "keys_schema" in schema:
            names = self.generate_inner(schema["keys_schema"])
            if "pattern" in names:
                made["propertyNames"] = {"pattern": names["pattern"]}
        values = self.generate_inner(schema["values_schema"]) if "values_schema" in schema else {}
        if values:
            made["additionalProperties"] = values
        self.update_with_validations(made, schema, self.ValidationsMapping.object)
        return made

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        choices = {str(tag).removeprefix(TAG): choice for tag, choice in schema["choices"].items()}
        if set(choices) != set(STEP_MODELS):
            return {"anyOf": [self.generate_inner(choice) for choice in choices.values()]}
        return {
            "type": "object",
            "required": ["id", "kind"],
            "properties": {
                "id": {"type": "string", "pattern": NAME_PATTERN},
                "kind": {"enum": list(choices), "enumDescriptions": [KINDS[kind].does for kind in choices]},
            },
            "allOf": [
                {
                    "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                    "then": self.generate_inner(choice),
                }
                for kind, choice in choices.items()
            ],
        }


def _for_draft_7(value: Any) -> Any:
    """Draft 7 ignores what stands beside ``$ref``, so a description goes beside an ``allOf``."""
    if isinstance(value, list):
        return [_for_draft_7(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _for_draft_7(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    if "$ref" in plain and len(plain) > 1:
        return {"allOf": [{"$ref": plain.pop("$ref")}], **plain}
    return plain
