"""Addresses of the API, below ``/api/v1/``."""

from __future__ import annotations

from django.urls import path, re_path

from workflows.api.api import api
from workflows.api.docs import docs_page, schema_page
from workflows.api.doors import guarded, nowhere

NOTHING: frozenset[str] = frozenset()

urlpatterns = [
    path("openapi.json", guarded(schema_page, NOTHING)),
    path("docs", guarded(docs_page), name="api_docs"),
    path("", api.urls),
    re_path("", guarded(nowhere)),
]
