"""Schedule and ScheduleFire: when a workflow is started by itself, and what became of each time (promises SCH)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from workflows.models.guard import GuardedManager, GuardedQuerySet, require_ledger_transaction
from workflows.models.workflow import Workflow
from workflows.statuses import CatchUp, FireStatus, IfRunning


class ScheduleQuerySet(GuardedQuerySet):
    def current(self) -> ScheduleQuerySet:
        """Schedules that were not removed."""
        return self.filter(removed_at=None)

    def visible_to(self, user: Any) -> ScheduleQuerySet:
        """Schedules of the workflows that a user may see; whether they may look at all is ``view_schedule``."""
        return self.filter(workflow__in=Workflow.objects.visible_to(user))

    def due(self, now: datetime) -> ScheduleQuerySet:
        """Schedules whose next time has come, the longest waiting first."""
        return self.current().filter(paused_at=None, next_at__lte=now).order_by("next_at", "pk")


class ScheduleManager(models.Manager.from_queryset(ScheduleQuerySet)):  # type: ignore[misc]
    """The swaps of a schedule. Every one is a guarded statement inside a ledger transaction."""

    def advance(self, *, schedule: Schedule, handled_until: datetime, next_at: datetime | None) -> bool:
        """Deal with the times until ``handled_until``; False when somebody else did, or the schedule was changed.

        Guarded by the edition and the next time the decision came from, and by its not being paused or removed.
        """
        require_ledger_transaction()
        mine = self.current().filter(pk=schedule.pk, edition=schedule.edition, next_at=schedule.next_at, paused_at=None)
        return bool(mine.update(handled_until=handled_until, next_at=next_at))

    def change(self, *, schedule: Schedule, **columns: Any) -> bool:
        """Change what a schedule is; False when it was changed or removed since it was read (its edition)."""
        require_ledger_transaction()
        mine = self.current().filter(pk=schedule.pk, edition=schedule.edition)
        return bool(mine.update(edition=schedule.edition + 1, **columns))


class Schedule(models.Model):
    """One timetable of a workflow.

    ``of_file``: it stands in the current version of the workflow's file, at ``position`` (from 0), and follows it;
    otherwise a person made it. ``owner`` is that person, or who published the file, and starts the runs;
    ``owner_is_user`` says that their permissions are asked each time. ``params`` is canonical JSON.

    All times until ``handled_until`` are dealt with, so the next one is the first after it: ``next_at``, None when
    none ever comes. ``edition`` counts the changes by people and files.
    """

    workflow = models.ForeignKey("workflows.Workflow", on_delete=models.PROTECT, related_name="schedules")
    of_file = models.BooleanField(default=False)
    position = models.PositiveIntegerField(default=0)
    title = models.CharField(max_length=200, default="", blank=True)
    cron = models.TextField()
    timezone = models.CharField(max_length=100, default="UTC")
    params = models.TextField(default="{}")
    if_running = models.CharField(max_length=10, choices=IfRunning.choices, default=IfRunning.SKIP)
    catch_up = models.CharField(max_length=10, choices=CatchUp.choices, default=CatchUp.LAST)
    owner = models.CharField(max_length=200)
    owner_is_user = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    edition = models.PositiveIntegerField(default=1)
    handled_until = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=200, default="", blank=True)
    paused_reason = models.TextField(default="", blank=True)
    removed_at = models.DateTimeField(null=True)
    removed_by = models.CharField(max_length=200, default="", blank=True)

    objects = ScheduleManager()

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["next_at"], name="schedule_due", condition=Q(removed_at=None, paused_at=None)),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(if_running__in=IfRunning.values), name="schedule_if_running"),
            models.CheckConstraint(condition=Q(catch_up__in=CatchUp.values), name="schedule_catch_up"),
        ]
        permissions = [("pause_schedule", "Can pause and resume schedules")]

    def __str__(self) -> str:
        return f"schedule {self.pk}"


class ScheduleFire(models.Model):
    """What became of one time of a schedule, or of many that passed without a worker (``missed``, ``times`` of them
    since ``first_at``).

    ``run`` is the run that was started, or because of which it was skipped. ``made_up``: one of the missed times that
    ``catch_up: all`` makes up for, one after the other. ``by`` names a person who started it at once. While somebody
    carries it out, it is theirs until ``taken_until``, under ``token``.
    """

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="fires")
    at = models.DateTimeField()
    first_at = models.DateTimeField(null=True)
    times = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=10, choices=FireStatus.choices)
    made_up = models.BooleanField(default=False)
    run = models.PositiveBigIntegerField(null=True)
    code = models.CharField(max_length=63, default="", blank=True)
    message = models.TextField(default="", blank=True)
    by = models.CharField(max_length=200, default="", blank=True)
    reason = models.TextField(default="", blank=True)
    request_id = models.CharField(max_length=64, default="", blank=True)
    recorded_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    taken_until = models.DateTimeField(null=True)
    token = models.CharField(max_length=64, default="", blank=True)

    objects = GuardedManager()

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "at"], name="schedule_fires_once"),
            models.UniqueConstraint(
                fields=["schedule", "request_id"], name="schedule_request_once", condition=~Q(request_id="")
            ),
            models.CheckConstraint(condition=Q(status__in=FireStatus.values), name="schedule_fire_status"),
        ]
        indexes = [
            models.Index(fields=["schedule"], name="schedule_fire_open", condition=Q(settled_at=None)),
            models.Index(fields=["run"], name="schedule_fire_run"),
        ]

    def __str__(self) -> str:
        return f"{self.at} of schedule {self.schedule_id}"
