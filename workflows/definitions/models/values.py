"""Types of single values in a workflow file.

Each type checks one value and says what is wrong by an error type of its own (``duration``, ``choice``, ``range``, …)
with the details that a sentence needs; ``validation.shapes`` makes the sentences. Each also carries its JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, LiteralString

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from workflows.definitions.durations import DurationError, parse_duration, parse_rate

NAME_PATTERN = "^[a-z][a-z0-9_]{0,62}$"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_FIXED_DURATION = r"(?=\d)(\d+d)?(\d+h)?(\d+m(?!s))?(\d+s)?(\d+ms)?"
_DURATION_EXAMPLES = ["30s", "5m", "2h", "7d"]

#: Begins the tag of a union's branch in an error's location; no workflow file can hold this character.
TAG = "\0"


class StrictModel(BaseModel):
    """A mapping whose keys are all known. Values are never converted."""

    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())


def wrong(error_type: LiteralString, **details: Any) -> PydanticCustomError:
    """An error of ``error_type``; its text is never shown."""
    return PydanticCustomError(error_type, error_type, details)


def is_name(value: object) -> bool:
    """Whether ``value`` is a name: lower-case letters, digits and ``_``, a letter first, at most 63 characters."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def holds_expression(value: object) -> bool:
    """Whether ``value`` is text with ``${`` in it."""
    return isinstance(value, str) and "${" in value.replace("$${", "")


def is_whole(value: object) -> bool:
    """Whether ``value`` is a whole number; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def tagged(name: str) -> Tag:
    """The tag of a union's branch."""
    return Tag(TAG + name)


def by_type(*branches: tuple[type, str], otherwise: str) -> Discriminator:
    """Chooses the branch of a union by the type of the value, so that errors are about the form that was meant."""

    def choose(value: object) -> str:
        return next((TAG + name for kind, name in branches if isinstance(value, kind)), TAG + otherwise)

    return Discriminator(choose)


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """Marks an annotated value that ``check`` accepts or raises for; ``schema`` says the same to editors."""

    check: Callable[[Any], Any]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.schema)


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise wrong("text")
    return value


def _fixed_text(value: object) -> object:
    if holds_expression(_text(value)):
        raise wrong("fixed_text")
    return value


def _duration(value: object) -> object:
    if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
        return value
    return _fixed_duration(value, may_be_expression=True)


def _fixed_duration(value: object, *, may_be_expression: bool = False) -> object:
    if holds_expression(value) and not may_be_expression:
        raise wrong("fixed_text")
    try:
        parse_duration(value)
    except DurationError as problem:
        raise wrong("duration", without_unit=problem.without_unit) from None
    return value


def _rate(value: object) -> object:
    try:
        parse_rate(value if isinstance(value, str) else "")
    except ValueError:
        raise wrong("rate") from None
    return value


def _condition(value: object) -> object:
    if not isinstance(value, str | bool):
        raise wrong("condition")
    return value


def _flag(value: object) -> object:
    if holds_expression(value):
        raise wrong("fixed_text")
    if not isinstance(value, bool):
        raise wrong("choice", values=["true", "false"])
    return value


def _format(value: object) -> object:
    if not is_whole(value) or value != 1:
        raise wrong("format")
    return value


def _at_least(value: object) -> object:
    percentage = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%", value) if isinstance(value, str) else None
    if percentage and 0 < float(percentage[1]) <= 100:
        return value
    if isinstance(value, int) and is_whole(value) and value > 0:
        return value
    raise wrong("at_least")


def _bound(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong("range", noun="a number or a date")
    return value


#: Names that an author may take for a place where expressions are evaluated.
_FIXED_ROLES = frozenset({"item", "outcome", "queue"})


def named(role: str) -> Checked:
    """A name whose ``role`` (step, parameter, choice, …) decides how a wrong one is refused."""

    def check(value: object) -> object:
        if role in _FIXED_ROLES and holds_expression(value):
            raise wrong("fixed_text")
        if not is_name(value):
            raise wrong("name", role=role)
        return value

    return Checked(check, {"type": "string", "pattern": NAME_PATTERN})


def one_of(*values: str) -> Checked:
    """One of a closed list of words."""

    def check(value: object) -> object:
        if holds_expression(value):
            raise wrong("fixed_text")
        if not isinstance(value, str) or value not in values:
            raise wrong("choice", values=list(values))
        return value

    return Checked(check, {"enum": list(values)})


def whole(least: int, most: int | None = None) -> Checked:
    """A whole number between ``least`` and ``most``, both included."""
    noun = f"a whole number between {least} and {most}" if most is not None else f"a whole number of at least {least}"

    def check(value: object) -> object:
        if not isinstance(value, int) or not is_whole(value) or value < least or (most is not None and value > most):
            raise wrong("range", noun=noun)
        return value

    schema: dict[str, Any] = {"type": "integer", "minimum": least}
    return Checked(check, schema if most is None else {**schema, "maximum": most})


def number(noun: str, accepts: Callable[[float], bool], **bounds: float) -> Checked:
    """A number that ``accepts`` says yes to: ``noun`` in words, ``bounds`` in JSON Schema."""

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float) or not accepts(value):
            raise wrong("range", noun=noun)
        return value

    return Checked(check, {"type": "number", **bounds})


def _retry_count(value: object) -> object:
    if not isinstance(value, int) or not is_whole(value) or not 0 <= value <= 100:
        raise wrong("range", noun="a whole number between 2 and 100, a policy or a list of policies")
    if value < 2:
        raise wrong("retries_nothing", attempts=value)
    return value


def _code(value: object) -> object:
    if not is_whole(value):
        raise wrong("range", noun="a whole number")
    return value


def _retryable(value: object) -> object:
    if not isinstance(value, str) or value not in RETRYABLE_ERRORS:
        raise wrong("retryable")
    return value


#: Errors that a retry policy may name, in the order in which they are listed to people.
RETRYABLE_ERRORS = (
    "exit_nonzero",
    "timeout",
    "crashed",
    "network",
    "http_status",
    "rate_limited",
    "invalid_output",
    "refused",
    "child_failed",
    "items_failed",
    "task_error",
)

_DURATION_SCHEMA = {
    "type": "string",
    "pattern": rf"^({_FIXED_DURATION}|\$\{{.*\}})$",
    "examples": _DURATION_EXAMPLES,
}
_FIXED_DURATION_SCHEMA = {"type": "string", "pattern": f"^{_FIXED_DURATION}$", "examples": _DURATION_EXAMPLES}

Text = Annotated[Any, Checked(_text, {"type": "string"})]
FixedText = Annotated[Any, Checked(_fixed_text, {"type": "string"})]
Duration = Annotated[Any, Checked(_duration, _DURATION_SCHEMA)]
FixedDuration = Annotated[Any, Checked(_fixed_duration, _FIXED_DURATION_SCHEMA)]
Rate = Annotated[Any, Checked(_rate, {"type": "string", "pattern": r"^\d+/\d+(s|m|h)$", "examples": ["60/1m"]})]
Condition = Annotated[Any, Checked(_condition, {"type": ["string", "boolean"]})]
Flag = Annotated[Any, Checked(_flag, {"type": "boolean"})]
FormatNumber = Annotated[Any, Checked(_format, {"const": 1})]
Bound = Annotated[Any, Checked(_bound, {"type": ["number", "string"]})]
AtLeastValue = Annotated[Any, Checked(_at_least, {"type": ["integer", "string"], "examples": [3, "80%"]})]

AnyValue = Any
Mapping = dict[str, Any]
JsonSchema = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "description": "JSON Schema"})]
Names = dict[Annotated[str, named("variable")], Any]


class SecretReference(StrictModel):
    """The value of a secret, by name."""

    secret: Annotated[Any, named("secret")] = Field(description="Name of a secret listed under `secrets`.")


class Policy(StrictModel):
    """One retry policy."""

    attempts: Annotated[Any, whole(1, 100)] = Field(description="Total attempts, including the first.")
    wait: FixedDuration = Field(default=None, description="Before the second attempt. Default: 1s.")
    factor: Annotated[
        Any, number("a number between 1 and 10", lambda value: 1 <= value <= 10, minimum=1, maximum=10)
    ] = Field(default=None, description="Growth of the wait. Default: 2.")
    max_wait: FixedDuration = Field(default=None, description="Longest wait. Default: 5m.")
    jitter: Annotated[Any, one_of("full", "none")] = Field(
        default=None, description="full: a random part of the wait. Default: full."
    )
    errors: Annotated[
        list[Annotated[str, Checked(_retryable, {"enum": list(RETRYABLE_ERRORS)})]], Field(min_length=1)
    ] = Field(
        default=None,
        description="Only these errors. Default: all that can be retried, without crashed; for a write also without "
        "timeout and network.",
    )


Retry = Annotated[
    Annotated[Any, Checked(_retry_count, {"type": "integer", "minimum": 2, "maximum": 100}), tagged("count")]
    | Annotated[Policy, tagged("policy")]
    | Annotated[list[Policy], Field(min_length=1), tagged("policies")],
    by_type((dict, "policy"), (list, "policies"), otherwise="count"),
]


class Limit(StrictModel):
    """Slots or starts that steps of the whole server share."""

    group: FixedText = Field(description="Steps with the same group share the limit, on the whole server.")
    max: Annotated[Any, whole(1)] = Field(default=None, description="Attempts at the same time.")
    rate: Rate = Field(default=None, description="Starts in a span of time: 60/1m.")


class Budget(StrictModel):
    """Ceilings of costs and work."""

    cost_usd: Annotated[Any, number("a number greater than 0", lambda value: value > 0, exclusiveMinimum=0)] = Field(
        default=None, description="Money for model calls, in US dollars."
    )
    tokens: Annotated[Any, whole(1)] = Field(default=None, description="Tokens of model calls.")
    llm_calls: Annotated[Any, whole(1)] = Field(default=None, description="Model calls.")
    visits: Annotated[Any, whole(1)] = Field(
        default=None, description="Visits of steps, all bodies included. Default: 10000."
    )
    time: FixedDuration = Field(default=None, description="Time workers spent driving the run; waiting is not counted.")
    failures: Annotated[Any, whole(1)] = Field(default=None, description="Failed llm or agent attempts in a row.")


class AtLeast(StrictModel):
    """So many items or branches must succeed."""

    at_least: AtLeastValue = Field(description="A positive number, or a percentage such as 80%.")


Join = Annotated[
    Annotated[Any, one_of("all", "any", "settled"), tagged("rule")] | Annotated[AtLeast, tagged("at_least")],
    by_type((dict, "at_least"), otherwise="rule"),
]

_PeopleList = Annotated[
    Annotated[list[Any], tagged("list")] | Annotated[Text, tagged("text")],
    by_type((list, "list"), otherwise="text"),
]


class People(StrictModel):
    """People by name and by group; ``requester`` is whoever started the run."""

    users: _PeopleList = Field(default=None, description="User names.")
    groups: _PeopleList = Field(default=None, description="Names of groups.")


NamedCodes = dict[
    Annotated[str, named("outcome")],
    Annotated[list[Annotated[int, Checked(_code, {"type": "integer"})]], Field(min_length=1)],
]
