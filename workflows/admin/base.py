"""What the tables of the ledger have in common in the admin: they are looked at, by who may, without costly queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Length, Substr
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from workflows.clock import moment
from workflows.models import Run, Workflow

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Any]
else:
    _Admin = admin.ModelAdmin

#: Rows of a list that are counted: counting a table of many millions takes minutes.
MOST_COUNTED = 10_000
#: Characters of a large column that are shown.
MOST_SHOWN = 4_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts no further than the pages that anybody would turn."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list[: MOST_COUNTED + 1]
        return int(rows.count())


class LedgerAdmin(_Admin):
    """A table that nobody changes here. ``large`` columns are left out of lists and shown by their beginning;
    ``path_to_run`` leads to the run whose workflow decides who sees a row, "" where there is none."""

    large: Sequence[str] = ()
    path_to_run = "run"
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    ordering: ClassVar[Any] = ("-pk",)
    actions: Any = ()

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).defer(*self.large)
        return rows if request.user.is_superuser else self.visible(rows, request)  # type: ignore[union-attr]

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        """The rows that a user may see: those of runs of workflows that are open to one of their groups."""
        if not self.path_to_run:
            return rows
        return rows.filter(Q(**{f"{self.path_to_run}__in": Run.objects.visible_to(request.user)}))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """No text of the database holds NUL, and PostgreSQL refuses to look for it."""
        return super().get_search_results(request, queryset, search_term.replace("\0", ""))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        names = [field.name for field in self.model._meta.fields if field.name not in self.large]
        return [*names, *(["beginnings"] if self.large else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self.get_fields(request, obj)

    @admin.display(description="Large columns")
    def beginnings(self, row: Model) -> SafeString:
        """The first characters of each large column; the whole is never read."""
        columns = {f"{name}_begins": Substr(name, 1, MOST_SHOWN) for name in self.large}
        lengths = {f"{name}_length": Length(name) for name in self.large}
        found: dict[str, Any] = (
            self.model._default_manager.filter(pk=row.pk)
            .annotate(**columns, **lengths)
            .values(*columns, *lengths)
            .get()
        )
        return format_html_join(
            "",
            "<h3>{}</h3><pre>{}</pre>{}",
            (
                (
                    name,
                    found[f"{name}_begins"] or "–",
                    _rest(found[f"{name}_length"] or 0, len(found[f"{name}_begins"] or "")),
                )
                for name in self.large
            ),
        )

    # ---- columns of lists

    @admin.display(description="Run", ordering="run")
    def run_link(self, row: Any) -> SafeString:
        """To the page of the run, and to its row here."""
        return link_to_run(row.run_id)


def _rest(length: int, shown: int) -> SafeString:
    return format_html("<p>{} of {} characters</p>", shown, length) if length > shown else SafeString("")


def link_to_run(number: int | None) -> SafeString:
    if number is None:
        return SafeString("–")
    return format_html('<a href="{}">{}</a>', reverse("pages:run", args=[number]), number)


def link_to_workflow(workflow: Workflow) -> SafeString:
    return format_html('<a href="{}">{}</a>', reverse("pages:workflow", args=[workflow.name]), workflow.name)


def millis(value: int | None) -> Any:
    """A moment of a column of milliseconds, as the admin shows moments."""
    return moment(value) if value else None


def cut(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
