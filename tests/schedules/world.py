"""Schedules in tests: workflows that have them, moments, and what became of their times."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User

from tests.schedules.times import at
from tests.support.plans import store_plan, workflow
from workflows.models import Run, Schedule, ScheduleFire, Workflow
from workflows.operations import schedules
from workflows.operations.firing import tick
from workflows.operations.people import Actor, user_actor
from workflows.operations.schedules import Wish

#: The moment at which everything here begins.
BEGIN = at("2026-01-31 09:30")
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SHELL = Actor(name="shell:ann", recorded="shell:ann")
STEP = "  - { id: work, kind: shell, run: x }"


def published(*entries: str, name: str = "demo", params: str = "", step: str = STEP, now: datetime = BEGIN) -> None:
    """A version with these schedules, as flow mappings (``cron: "0 * * * *"``)."""
    listed = "".join(f"\n  - {{ {entry} }}" for entry in entries)
    before = (f"params: {params}\n" if params else "") + (f"schedule:{listed}\n" if entries else "")
    store_plan(workflow(step, before=before, name=name), private=False, now=now)


def hourly(**more: str) -> Schedule:
    """The only schedule of ``demo``, due at every full hour."""
    entry = ", ".join(['cron: "0 * * * *"', *(f"{key}: {value}" for key, value in more.items())])
    published(entry)
    return the_schedule()


def the_schedule() -> Schedule:
    return Schedule.objects.current().select_related("workflow__current").get()


def tick_at(text: str) -> int:
    return tick(now=at(text))


def fires(schedule: Schedule | None = None) -> list[tuple[Any, ...]]:
    """(time, status, run or None) of every time, the earliest first."""
    rows = ScheduleFire.objects.order_by("at")
    rows = rows.filter(schedule=schedule) if schedule is not None else rows
    return [(f"{row.at:%H:%M}", row.status, row.run) for row in rows]


def statuses() -> list[str]:
    return [status for _, status, _ in fires()]


def runs() -> list[int]:
    return list(Run.objects.order_by("pk").values_list("pk", flat=True))


def made(cron: str = "0 * * * *", *, actor: Actor = SHELL, workflow_name: str = "demo", **more: Any) -> int:
    """The number of a schedule that a person makes, as if it were ``BEGIN``."""
    if not Workflow.objects.filter(name=workflow_name, current__isnull=False).exists():
        published(name=workflow_name)
    number = schedules.create(workflow_name, Wish(cron=cron, **more), actor=actor)
    return number


def person(name: str, *permissions: str) -> Actor:
    user = User.objects.create_user(name)
    for codename in permissions:
        user.user_permissions.add(Permission.objects.get(codename=codename))
    return user_actor(User.objects.get(pk=user.pk))
