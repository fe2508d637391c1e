"""The description of the API (OpenAPI): what ninja makes of the operations, and what holds for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from workflows.api.callers import SAFE, Needs
from workflows.api.problems import ProblemBody

PREFIX = "/api/v1/"
#: What any operation may answer, and in which case.
PROBLEMS = {
    400: "The request cannot be read.",
    401: "Nobody is logged in, and there is no key that is good.",
    403: "The person or the key may not do this.",
    404: "There is no such thing, or it may not be seen.",
    405: "The address does not take this method.",
    409: "It does not fit to how things are now.",
    413: "The body is too large.",
    422: "Something that was given is wrong; `data.problems` says what.",
    429: "The key has used its requests of this minute; `Retry-After` says when to come again.",
    500: "What is stored is damaged.",
    503: "The database is busy or behind; try again.",
}
_SECURITY = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key: `Authorization: Bearer wp_…`."},
    "session": {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
}


def described(api: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """The description with its problems, keys and scopes. The same code gives the same text."""
    found: dict[str, Any] = json.loads(json.dumps(schema))
    doors = {operation.view_func.__name__: _door(operation) for operation in operations_of(api)}
    for methods in found["paths"].values():
        for method, operation in methods.items():
            _complete(operation, method.upper(), doors[operation["operationId"]])
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    body = ProblemBody.model_json_schema()
    schemas["ProblemBody"] = body
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    components["responses"] = {
        f"Problem{status}": {"description": text, "content": content} for status, text in PROBLEMS.items()
    }
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = _SECURITY
    found["paths"] = dict(sorted(found["paths"].items()))
    return found


def operations_of(api: Any) -> Iterator[Any]:
    """Every operation of the API, as ninja keeps it."""
    for router in api._get_bound_routers():
        for view in router.path_operations.values():
            yield from view.operations


def _door(operation: Any) -> Needs | None:
    return next((door for door in operation.auth_callbacks if isinstance(door, Needs)), None)


def _complete(operation: dict[str, Any], method: str, door: Needs | None) -> None:
    if door is not None:
        scope = door.scope or ("read" if method in SAFE else "operate")
        operation["security"] = [{"key": []}, {"session": []}]
        operation["x-scope"] = scope
        operation["description"] = f"{operation.get('description', '').strip()}\n\nScope of a key: `{scope}`.".strip()
    for status in PROBLEMS:
        is_possible = (status != 409 or method not in SAFE) and (door is not None or status in (400, 405, 413, 422))
        if is_possible:
            operation["responses"].setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
