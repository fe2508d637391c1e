"""Doors: what every request passes before and after its operation, and the strict reader of bodies."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, NoReturn

import django.db
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser

from workflows.api.problems import of_validation, problem
from workflows.conf import conf
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import check_storable, read_json
from workflows.stores.explaining import explained
from workflows.stores.failures import classify

logger = logging.getLogger(__name__)


class StrictParser(Parser):
    """Bodies are JSON that can be stored exactly: no repeated keys, NUL, lone surrogates, NaN, numbers that lose
    digits (promise JSON.4)."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Raises ``request.not_json`` and ``input.invalid``; ninja wraps what is raised here."""
        try:
            text = request.body.decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal("request.not_json", reason="It is not UTF-8.") from None
        value, problems = read_json(text)
        if problems:
            reason = problems[0].message.removeprefix("The file is not usable JSON: ")
            raise Refusal("request.not_json", reason=reason)
        if wrong := check_storable(value, "body"):
            reason = f"{wrong[0].path}: {wrong[0].message}"
            raise Refusal("input.invalid", reason=reason, problems=tuple(wrong))
        return value


def refusal_of(error: Exception) -> Refusal | None:
    """The refusal that an error comes to; None: it is a mistake of ours."""
    match error:
        case Refusal():
            return error
        case ValidationError():
            return of_validation(error)
        case HttpError(__cause__=Refusal() as cause):
            return cause
        case HttpError():
            return Refusal("request.not_json", reason=str(error))
        case Http404():
            return Refusal("request.no_such_address")
        case RequestDataTooBig():
            return Refusal("request.too_large", limit=conf().api_body_limit)
        case UnreadablePostError() | SuspiciousOperation():
            return Refusal("request.not_json", reason="It cannot be read.")
        case django.db.Error():
            of_store = classify(error).as_refusal()
            return explained(of_store) if of_store is not None else None
    return None


def guarded(view: Callable[..., HttpResponseBase], names: frozenset[str] | None = None) -> Callable[..., Any]:
    """A view of the API with what all of them share. ``names`` are the parameters that its address takes, None any."""

    @functools.wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            _refuse_size(request)
            _refuse_query(request, names)
            response = view(request, *args, **kwargs)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            response = problem(request, refusal)
        if response.status_code == 405 and "Allow" in response.headers:
            allow = response.headers["Allow"]
            response = problem(request, Refusal("request.method", method=request.method, allowed=allow))
            response.headers["Allow"] = allow
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        patch_vary_headers(response, ("Authorization", "Cookie"))
        return response

    answer.csrf_exempt = True  # type: ignore[attr-defined]  # the door of each operation checks it for sessions
    return answer


def refused(request: HttpRequest, error: Exception) -> HttpResponse:
    """The answer to what an operation raised; what is no refusal goes on to Django, which logs it."""
    refusal = refusal_of(error)
    if refusal is None:
        raise error
    if refusal.http_status >= 500:
        logger.warning("%s %s: %s", request.method, request.path, refusal.message)
    return problem(request, refusal)


def nowhere(request: HttpRequest, **_: Any) -> NoReturn:
    """Every address below ``/api/v1/`` that is none."""
    raise Refusal("request.no_such_address")


def _refuse_size(request: HttpRequest) -> None:
    limit = conf().api_body_limit
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isascii() or not length.isdigit():
        raise Refusal("request.not_json", reason="Its length is not known.")
    if len(length) > 15 or int(length) > limit:
        raise Refusal("request.too_large", limit=limit)


def _refuse_query(request: HttpRequest, names: frozenset[str] | None) -> None:
    """A parameter that nobody reads is misspelled, and would be left out silently."""
    for name, values in request.GET.lists():
        if wrong := [*check_storable(name, "query"), *check_storable(values, f"query.{name[:40]}")]:
            raise Refusal("input.invalid", reason=wrong[0].message, problems=tuple(wrong))
        if names is not None and name not in names:
            what = Problem(code="E603", path=f"query.{name[:40]}", message="There is no such parameter.")
            known = f"Parameters: {', '.join(sorted(names))}." if names else "This address takes no parameters."
            reason = f'There is no parameter "{name[:40]}".'
            raise Refusal("input.invalid", reason=reason, advice=known, problems=(what,))
