"""The JSON Schema of a step's output."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

import jsonschema_rs

from workflows.jsonvalue import canonical

SHOWN_MISMATCHES = 3


def schema_mismatch(schema: Mapping[str, Any] | bool | None, value: Any, *, of: str = "step") -> str | None:
    """What is wrong with ``value`` by ``schema``, as one sentence naming the place; None when nothing is.

    ``of`` says in the sentence whose schema it is.

    References to other documents are refused: a result must not depend on what a network answers.
    """
    if schema is None:
        return None
    try:
        validator = _validator(canonical(schema))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"The schema of the {of} cannot be used: {_first_line(error)}."
    errors = [error for _, error in zip(range(SHOWN_MISMATCHES + 1), validator.iter_errors(value), strict=False)]
    if not errors:
        return None
    told = "; ".join(_describe(error) for error in errors[:SHOWN_MISMATCHES])
    more = " (and more)" if len(errors) > SHOWN_MISMATCHES else ""
    return f"The output does not fit the schema of the {of}: {told}{more}."


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(schema, retriever=_refuse)


def _refuse(address: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed ({address})")


def _describe(error: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    place = f"output{path}"
    message = error.message
    return f"{place}: {message if len(message) <= 300 else message[:300] + '…'}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
