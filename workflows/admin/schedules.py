"""Schedules: made and changed here through the same operations as everywhere; what became of their times to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from workflows.admin.base import LedgerAdmin, cut, link_to_run, link_to_workflow
from workflows.errors import Refusal
from workflows.jsonvalue import read_json
from workflows.models import Schedule, ScheduleFire, Workflow
from workflows.operations import schedules as operation
from workflows.operations.people import user_actor
from workflows.operations.schedules import Wish

if TYPE_CHECKING:
    _Form = forms.ModelForm[Schedule]
else:
    _Form = forms.ModelForm

_OWN = ("workflow", "title", "cron", "timezone", "params", "if_running", "catch_up")
_SHOWN = ("owner", "of_file", "created_at", "next_at", "handled_until", "paused_at", "paused_by")


class ScheduleForm(_Form):
    """What a person may set. Everything is checked by the operation; what it refuses stands beside the fields."""

    class Meta:
        model = Schedule
        fields = _OWN
        widgets = {"cron": forms.TextInput(attrs={"size": 40})}
        help_texts = {"params": "one JSON object", "cron": "minute hour day month weekday"}

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        value, problems = read_json(data["params"] or "{}") if "params" in data else (json.loads(self._stored()), ())
        if problems or not isinstance(value, dict):
            self.add_error("params", problems[0].message if problems else "One JSON object is needed.")
            return data
        names = ("cron", "timezone", "if_running", "catch_up", "title")
        data["wish"] = Wish(params=value, **{name: data[name] for name in names})
        try:
            operation.checked_terms(data.get("workflow") or self.instance.workflow, data["wish"])
        except Refusal as refusal:
            self._tell(refusal)
        return data

    def _stored(self) -> str:
        stored: str = self.initial.get("params") or self.instance.params
        return stored

    def _tell(self, refusal: Refusal) -> None:
        for problem in refusal.problems:
            place = problem.path if problem.path in ("cron", "timezone") else "params"
            self.add_error(place if place in self.fields else None, f"{problem.path}: {problem.message}")
        if not refusal.problems:
            self.add_error(None, refusal.message)


@admin.register(Schedule)
class ScheduleAdmin(LedgerAdmin):
    """Those of files are looked at, those of people are changed and deleted, by verbs of their own transactions."""

    path_to_run = ""
    form = ScheduleForm
    list_display = ("id", "workflow_page", "title", "cron", "timezone", "next_at", "paused_at", "of_file", "owner")
    list_filter = ("of_file", "if_running")
    search_fields = ("=workflow__name", "=id")
    search_help_text = "The name of a workflow or the number of a schedule."
    list_select_related = ("workflow",)
    actions = None

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(workflow__in=Workflow.objects.visible_to(request.user))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(removed_at=None)

    @admin.display(description="Workflow", ordering="workflow__name")
    def workflow_page(self, row: Schedule) -> SafeString:
        return link_to_workflow(row.workflow)

    # ---- who may

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perms(("workflows.add_schedule", "workflows.start_run"))

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        may = request.user.has_perms(("workflows.change_schedule", "workflows.start_run"))
        return may and (obj is None or not obj.of_file)

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return request.user.has_perm("workflows.delete_schedule") and (obj is None or not obj.of_file)

    # ---- the form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is None:
            return [*_OWN]
        shows_values = request.user.has_perm("workflows.view_sensitive")
        return [name for name in (*_OWN, *_SHOWN) if name != "params" or shows_values]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is None:
            return []
        return ["workflow", *_SHOWN] if self.has_change_permission(request, obj) else self.get_fields(request, obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "workflow":
            seen = Workflow.objects.visible_to(request.user).filter(current__isnull=False)
            options["queryset"] = seen.order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **options)

    # ---- changes: Django wraps these views into a transaction, and a verb is one of its own

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        answer: HttpResponse = self._changeform_view(request, *_filled_up(args, options))  # type: ignore[attr-defined]
        return answer

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        answer: HttpResponse = self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]
        return answer

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Nothing goes with a schedule: what became of its times stays."""
        return [str(one) for one in objs], {}, set(), []

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        who, wish = user_actor(request.user), form.cleaned_data["wish"]
        with _denied():
            if change:
                operation.change(obj.pk, wish, edition=obj.edition, actor=who)
            else:
                obj.pk = operation.create(obj.workflow.name, wish, actor=who)

    def delete_model(self, request: HttpRequest, obj: Schedule) -> None:
        with _denied():
            operation.remove(obj.pk, actor=user_actor(request.user), reason="")


@contextmanager
def _denied() -> Iterator[None]:
    """What an operation refuses at the last moment is refused by the admin."""
    try:
        yield
    except Refusal as refusal:
        raise PermissionDenied(refusal.message) from None


def _filled_up(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The arguments of ``changeform_view`` in their order."""
    names = ("object_id", "form_url", "extra_context")
    usual: dict[str, Any] = {"object_id": None, "form_url": "", "extra_context": None}
    given = {**usual, **dict(zip(names, args, strict=False)), **options}
    return given["object_id"], given["form_url"], given["extra_context"]


@admin.register(ScheduleFire)
class ScheduleFireAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("schedule", "at", "status", "run_page", "times", "code", "told")
    list_filter = ("status",)
    search_fields = ("=schedule__id", "=run")
    search_help_text = "The number of a schedule or of a run."

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(schedule__workflow__in=Workflow.objects.visible_to(request.user))

    @admin.display(description="Run")
    def run_page(self, row: ScheduleFire) -> SafeString:
        return link_to_run(row.run)

    @admin.display(description="Message")
    def told(self, row: ScheduleFire) -> str:
        return cut(row.message)
