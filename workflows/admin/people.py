"""People and groups. Nobody makes themselves or others mightier than they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import QuerySet
from django.http import HttpRequest

from workflows.admin.base import LedgerAdmin
from workflows.models import LoginSession
from workflows.operations.access import may
from workflows.operations.people import user_actor
from workflows.operations.sessions import end_all

if TYPE_CHECKING:
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(_UserAdmin):
    """People are made inactive and never deleted: runs and the audit name them. Only superusers touch superusers, and
    give permissions to persons instead of groups."""

    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "groups")
    show_full_result_count = False
    actions = ("end_sessions",)

    @admin.action(description="End all sessions of these people", permissions=["end_session"])
    def end_sessions(self, request: HttpRequest, people: QuerySet[User]) -> None:
        ended = sum(end_all(person, actor=user_actor(request.user)) for person in people)
        self.message_user(request, f"{ended} session{'' if ended == 1 else 's'} ended.")

    def has_end_session_permission(self, request: HttpRequest) -> bool:
        return may(user_actor(request.user), "end_session")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        touches_mightier = obj is not None and obj.is_superuser and not request.user.is_superuser  # type: ignore[union-attr]
        return not touches_mightier and super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        fixed = ("last_login", "date_joined")
        if request.user.is_superuser:  # type: ignore[union-attr]
            return fixed
        return (*fixed, "is_superuser", "user_permissions")

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "groups":
            options["queryset"] = _groups_within(request)
        return super().formfield_for_manytomany(db_field, request, **options)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    """Groups are the roles of people. Who is no superuser gives only permissions that they have themselves."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_within = obj is None or _groups_within(request).filter(pk=obj.pk).exists()
        return is_within and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_within = obj is None or _groups_within(request).filter(pk=obj.pk).exists()
        return is_within and super().has_delete_permission(request, obj)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None = None, **options: Any) -> Any:
        if db_field.name == "permissions" and request is not None:
            options["queryset"] = _permissions_within(request)
        return super().formfield_for_manytomany(db_field, request, **options)


@admin.register(LoginSession)
class LoginSessionAdmin(LedgerAdmin):
    """Where people are logged in; ended with the action on the people."""

    path_to_run = ""
    list_display = ("user", "browser", "address", "began_at", "seen_at")
    search_fields = ("user__username__startswith",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [name for name in super().get_fields(request, obj) if name != "session_key"]


def _permissions_within(request: HttpRequest) -> QuerySet[Permission]:
    """The permissions that a person may give: their own."""
    rows = Permission.objects.select_related("content_type").order_by("content_type__app_label", "codename")
    user: Any = request.user
    if user.is_superuser:
        return rows
    own = {tuple(name.split(".", 1)) for name in user.get_all_permissions()}
    return rows.filter(pk__in=[one.pk for one in rows if (one.content_type.app_label, one.codename) in own])


def _groups_within(request: HttpRequest) -> QuerySet[Group]:
    """The groups that allow nothing beyond what a person may do."""
    user: Any = request.user
    if user.is_superuser:
        return Group.objects.order_by("name")
    beyond = Permission.objects.exclude(pk__in=_permissions_within(request))
    return Group.objects.exclude(permissions__in=beyond).order_by("name")
