"""Fields: parameters of workflows and blocks, and the entries of forms."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workflows.definitions.models.values import Bound, Checked, Flag, Mapping, StrictModel, Text, named, whole, wrong

FIELD_TYPES = ("string", "integer", "number", "boolean", "array", "object", "date", "datetime")


def _field_type(value: object) -> object:
    if not isinstance(value, str) or value not in FIELD_TYPES:
        raise wrong("field_type")
    return value


class FieldModel(StrictModel):
    """One parameter or form field."""

    type: Annotated[Any, Checked(_field_type, {"enum": list(FIELD_TYPES)})] = Field(
        description="What kind of value it takes."
    )
    title: Text = Field(default=None, description="Label. Default: the name.")
    description: Text = Field(default=None, description="Help text.")
    default: Any = Field(default=None, description="Value when it is left out; makes it optional.")
    optional: Flag = Field(default=None, description="May be left out without a default; it is null then.")
    enum: list[Any] = Field(default=None, description="Allowed values. Default: all.")
    labels: list[Any] = Field(default=None, description="Texts for the values of enum. Default: the values.")
    pattern: Text = Field(default=None, description="RE2 expression that the whole text must match.")
    min: Bound = Field(default=None, description="Smallest value; for a date, the earliest.")
    max: Bound = Field(default=None, description="Largest value; for a date, the latest.")
    min_length: Annotated[Any, whole(0)] = Field(default=None, description="Least number of characters or entries.")
    max_length: Annotated[Any, whole(0)] = Field(default=None, description="Largest number of characters or entries.")
    items: Mapping = Field(default=None, description="What the entries of an array look like.")
    properties: Mapping = Field(default=None, description="What the members of an object look like.")
    multiline: Flag = Field(default=None, description="A text field of several lines.")
    example: Any = Field(default=None, description="Placeholder of the field.")
    sensitive: Flag = Field(default=None, description="Hidden in lists and logs.")


Parameters = dict[Annotated[str, named("parameter")], FieldModel]
Form = dict[Annotated[str, named("field")], FieldModel]
