"""Problems: every refusal as ``{code, message, hint, data}`` with its HTTP status."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from ninja import Schema
from ninja.errors import ValidationError
from ninja.renderers import BaseRenderer
from pydantic import Field

from workflows.errors import Problem, Refusal
from workflows.jsonvalue import clean_text, item_path, member_path

#: Problems that an answer lists; there may be one for each of a million values.
MOST_PROBLEMS = 100


class ProblemBody(Schema):
    """Why a request was refused. ``data.problems`` says for each value what is wrong with it, where there are some: the
    first hundred, and ``data.problems_left_out`` how many more."""

    code: str = Field(description="Stable; the list is in docs/errors.md.")
    message: str
    hint: str = ""
    data: dict[str, Any] = Field(default_factory=dict)


def problem(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """A refusal as an answer."""
    data = {name: value for name, value in refusal.data.items() if name != "advice"}
    if refusal.problems:
        data["problems"] = [one.as_json() for one in refusal.problems[:MOST_PROBLEMS]]
    if len(refusal.problems) > MOST_PROBLEMS:
        data["problems_left_out"] = len(refusal.problems) - MOST_PROBLEMS
    body = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint, "data": data}
    response = document(body, status=refusal.http_status)
    if refusal.code == "request.unauthenticated":
        response.headers["WWW-Authenticate"] = 'Bearer realm="waypost"'
    if "wait" in refusal.data:
        response.headers["Retry-After"] = str(refusal.data["wait"])
    elif refusal.http_status == 503:
        response.headers["Retry-After"] = "1"
    return response


def document(value: Any, *, status: int = 200) -> HttpResponse:
    """A JSON answer of a value as queries give it."""
    return HttpResponse(_text(value), status=status, content_type="application/json")


class Renderer(BaseRenderer):
    """The answers that ninja makes, in the same form."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:
        return _text(data)


def _text(value: Any) -> str:
    """One line, for terminals too."""
    return clean_text(json.dumps(value, ensure_ascii=False, cls=_Encoder))[0] + "\n"


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, set | frozenset):
            return sorted(o)
        if isinstance(o, Mapping):
            return dict(o)
        try:
            return super().default(o)
        except TypeError:
            return str(o)


def of_validation(error: ValidationError) -> Refusal:
    """What is wrong with parameters and body of a request, value by value."""
    problems = tuple(
        Problem(code="E602", path=_path(one.get("loc", ())), message=_sentence(one)) for one in error.errors
    )
    what = problems[0] if problems else Problem(code="E602", path="(body)", message="Something is wrong.")
    more = f" ({len(problems)} problems)" if len(problems) > 1 else ""
    return Refusal("input.invalid", reason=f"{what.path}: {what.message}{more}", problems=problems)


def _sentence(one: Mapping[str, Any]) -> str:
    text = str(one.get("msg", "")).strip()
    return clean_text(text if text.endswith(".") else f"{text}.")[0]


def _path(parts: Iterable[Any]) -> str:
    """``body.params.region``, ``query.limit``; the name that the code gives to a body is left out."""
    source, *rest = [*parts] or ["body"]
    if source == "body" and rest and rest[0] in ("body", "given"):
        rest = rest[1:]
    path = str(source)
    for part in rest:
        path = item_path(path, part) if isinstance(part, int) else member_path(path, clean_text(str(part))[0])
    return path
