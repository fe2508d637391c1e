"""The API itself: one instance, its routers, and its description."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from ninja import NinjaAPI

from workflows.api.callers import Needs
from workflows.api.description import described
from workflows.api.doors import StrictParser, guarded, refused
from workflows.api.problems import Renderer

#: Prefix, and where the router is. A new noun is one line here.
ROUTERS = (
    ("/health", "workflows.api.health.router"),
    ("/workflows", "workflows.api.workflows.router"),
    ("/runs", "workflows.api.runs.router"),
    ("/runs", "workflows.api.run_actions.router"),
    ("/runs", "workflows.api.run_changes.router"),
    ("/runs", "workflows.api.events.router"),
    ("/questions", "workflows.api.questions.router"),
    ("/external", "workflows.api.external.router"),
    ("/schedules", "workflows.api.schedules.router"),
    ("/workers", "workflows.api.workers.router"),
)


class WaypostAPI(NinjaAPI):
    """Ninja, with every view behind ``doors.guarded`` and a description that names every refusal."""

    def _get_urls(self) -> list[Any]:
        patterns = super()._get_urls()
        names: dict[str, frozenset[str]] = {}
        for router in self._get_bound_routers():
            for path, view in router.path_operations.items():
                key = f"{router.prefix.strip('/')}{path}".rstrip("/")
                names[_plain(key)] = _query_names(view.operations)
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                known = names.get(_plain(str(pattern.pattern)).rstrip("/"))
                pattern.callback = guarded(pattern.callback, known)
        return patterns

    def get_openapi_schema(self, **options: Any) -> Any:
        return described(self, super().get_openapi_schema(**options))

    def get_openapi_operation_id(self, operation: Any) -> str:
        """Names of functions are unique over all routers, and are what clients call operations."""
        return str(operation.view_func.__name__)

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        return refused(request, exc)


def _plain(path: str) -> str:
    return path.replace("<", "{").replace(">", "}").lstrip("/")


def _query_names(operations: Iterable[Any]) -> frozenset[str]:
    found: set[str] = set()
    for operation in operations:
        for model in operation.models:
            if model.__ninja_param_source__ == "query":
                found |= {*model.__ninja_flatten_map__}
    return frozenset(found)


def make_api() -> WaypostAPI:
    """The API with all its routers."""
    made = WaypostAPI(
        title="Waypost",
        version="1",
        description="Durable workflow runs: start, follow, answer, steer. docs/api.md tells how.",
        urls_namespace="api",
        auth=Needs(),
        parser=StrictParser(),
        renderer=Renderer(),
        openapi_url="/openapi.json",
        docs_url="",
    )
    for prefix, router in ROUTERS:
        made.add_router(prefix, router)
    return made


api = make_api()
