"""The description of the API, as it is committed, as it is served, and as a page on which it can be tried."""

from __future__ import annotations

import json
from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url

from workflows.api.api import api
from workflows.api.callers import identify
from workflows.api.description import PREFIX
from workflows.api.problems import document


@cache
def schema_text() -> str:
    """The description as it is committed."""
    schema = api.get_openapi_schema(path_prefix=PREFIX)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def schema_page(request: HttpRequest) -> HttpResponse:
    """The description, for people who are logged in and for keys."""
    identify(request)
    return document(json.loads(schema_text()))


def docs_page(request: HttpRequest) -> HttpResponse:
    """The description as a page on which requests can be tried, for people who are logged in."""
    if not request.user.is_authenticated:
        return redirect(f"{resolve_url(settings.LOGIN_URL)}?next={request.path}")
    return render(request, "api/docs.html", {"swagger": {"url": f"{PREFIX}openapi.json", "deepLinking": True}})
