"""Run: one execution of one plan with frozen parameters."""

from __future__ import annotations

from typing import Any

from django.db import connections, models
from django.db.models import Exists, F, OuterRef, Q

from workflows.clock import DatabaseNow
from workflows.errors import Refusal
from workflows.models.columns import digest_column, millis_column
from workflows.models.error_code import ErrorCode
from workflows.models.guard import GuardedQuerySet, require_ledger_transaction
from workflows.models.lease import Lease
from workflows.models.slot import Slot
from workflows.models.workflow import Workflow
from workflows.statuses import LIVE_STATUSES, RunStatus, SlotKind

#: Columns of the run's state: each revision that changes one of them leaves a RowVersion. The rest are counters,
#: scheduling hints, or frozen at publication.
STATE_COLUMNS = ("status", "reasons", "held", "closing", "output_digest", "error", "started_at", "ended_at")


class RunQuerySet(GuardedQuerySet):
    def live(self) -> RunQuerySet:
        """Runs that have not ended."""
        return self.filter(status__in=LIVE_STATUSES)

    def visible_to(self, user: Any) -> RunQuerySet:
        """Runs of the workflows that a user may see; whether they may look at all is a permission (``view_run``)."""
        return self.filter(workflow__in=Workflow.objects.visible_to(user))

    def runnable(self, now: Any = None) -> RunQuerySet:
        """Runs a worker may take: queued, running without a live lease, parked and woken, or of a dead owner."""
        moment = DatabaseNow() if now is None else now
        leases = Lease.objects.filter(run_id=OuterRef("pk"))
        leased = Exists(leases.filter(expires_ms__gt=moment))
        orphaned = Exists(leases.filter(expires_ms__gt=0, expires_ms__lte=moment))
        wanted = Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]) | Q(wake_at_ms__lte=moment) | orphaned
        return self.live().filter(wanted, ~leased).exclude(self.lacks_slot()).exclude(self.starts_later(moment))

    @staticmethod
    def starts_later(now: Any = None) -> Q:
        """Runs whose moment has not come. One that is being ended waits for no moment."""
        return Q(start_at_ms__gt=DatabaseNow() if now is None else now, closing="")

    @staticmethod
    def lacks_slot() -> Q:
        """Runs that need a concurrency slot and have none: they wait in line. One that is being ended needs none."""
        held = Slot.objects.filter(run_id=OuterRef("pk"), kind=SlotKind.CONCURRENCY, number__isnull=False)
        return Q(~Exists(held), concurrency_max__gt=0, closing="")


class RunManager(models.Manager.from_queryset(RunQuerySet)):  # type: ignore[misc]
    """The swaps of a run. Every one is a guarded statement inside a ledger transaction."""

    def lock(self, run_id: int) -> Run:
        """The run's row, locked until the transaction ends. Raises ``run.not_found``."""
        require_ledger_transaction()
        rows = self.filter(pk=run_id)
        if connections[self.db].features.has_select_for_update:
            rows = rows.select_for_update()
        run: Run | None = rows.first()
        if run is None:
            raise Refusal("run.not_found", run=run_id)
        return run

    def fence(self, *, run_id: int, epoch: int, expected: int, now: Any = None, **columns: Any) -> None:
        """Lock, fence and number in one statement: the only way a driver changes a run.

        Guarded by the fencing token on the locked row, by a lease of that epoch that has not expired, and by the
        revision the decision came from. Raises ``lease.lost`` or ``run.conflict`` with the reason; the latter means
        that somebody else committed a change, so the caller reads it and decides again.
        """
        require_ledger_transaction()
        lease = Lease.objects.filter(run_id=run_id, epoch=epoch, expires_ms__gt=DatabaseNow() if now is None else now)
        changed = self.filter(Exists(lease), pk=run_id, lease_epoch=epoch, revision=expected).update(**columns)
        if not changed:
            raise self.why_fenced_off(run_id=run_id, epoch=epoch, now=now)

    def why_fenced_off(self, *, run_id: int, epoch: int, now: Any = None) -> Refusal:
        """Read once: the exact reason why the fence let nothing through."""
        run = self.filter(pk=run_id).values("lease_epoch", "revision", "status").first()
        if run is None:
            return Refusal("run.not_found", run=run_id)
        if run["lease_epoch"] != epoch:
            return Refusal(
                "lease.lost",
                run=run_id,
                reason=f"epoch {run['lease_epoch']} took over from epoch {epoch}",
                epoch=run["lease_epoch"],
            )
        if run["status"] not in LIVE_STATUSES:  # somebody abandoned it, and its lease with it
            return Refusal("run.terminal", run=run_id, status=run["status"])
        if not Lease.objects.filter(
            run_id=run_id, epoch=epoch, expires_ms__gt=DatabaseNow() if now is None else now
        ).exists():
            return Refusal("lease.lost", run=run_id, reason=f"the lease of epoch {epoch} has ended", epoch=epoch)
        return Refusal("run.conflict", run=run_id, revision=run["revision"])

    def change(self, run: Run, *, revisions: int = 1, events: int = 1, **columns: Any) -> None:
        """Change a locked run without its lease (controls, operators) and hand out revision and event numbers.

        ``run`` is the row as read under the lock; its attributes follow. The guard is the revision that was read.
        """
        columns |= {"revision": run.revision + revisions, "next_event": run.next_event + events}
        if not self.filter(pk=run.pk, revision=run.revision).update(**columns):
            raise Refusal("run.conflict", run=run.pk, revision=run.revision)
        for name, value in columns.items():
            setattr(run, name, value)


class Run(models.Model):
    """The state of an execution, its counters, and what was frozen at its start.

    ``reasons`` lists all causes of its status; ``closing`` {status, error} is set once the main steps have ended;
    ``start_at_ms``: it starts then and not before, and stands in no line until then;
    ``frozen`` is what decides the run and is not in the file (declared access of functions, server defaults);
    ``last_commit`` is the random id of the driver's last transaction, by which a lost COMMIT reply is resolved.
    """

    workflow = models.ForeignKey("workflows.Workflow", on_delete=models.PROTECT, related_name="runs")
    plan = models.ForeignKey("workflows.Plan", on_delete=models.PROTECT, related_name="runs")
    title = models.TextField(default="", blank=True)
    params_digest = digest_column()
    frozen = models.TextField(default="{}")
    engine_version = models.PositiveIntegerField(default=1)
    priority = models.IntegerField(default=0)
    started_by = models.CharField(max_length=200)
    origin = models.CharField(max_length=12, default="cli")
    idempotency_key = models.CharField(max_length=200, null=True)
    root_run = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    parent_run = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="children", db_constraint=False
    )
    parent_visit = models.PositiveIntegerField(null=True)
    depth = models.PositiveSmallIntegerField(default=0, help_text="levels of child runs above it")
    concurrency_key = models.TextField(default="", blank=True)
    concurrency_max = models.PositiveIntegerField(default=0, help_text="0: takes no slot")
    invocation_key = models.CharField(max_length=64, null=True)
    # stays when the origin is pruned: the lineage says so
    fork_of = models.ForeignKey(
        "self", null=True, on_delete=models.DO_NOTHING, related_name="forks", db_constraint=False
    )
    fork_revision = models.PositiveBigIntegerField(null=True)
    fork_request = models.TextField(default="", blank=True, help_text="JSON: the cut and what was edited")
    request_id = models.CharField(max_length=200, null=True)

    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    reasons = models.TextField(default="[]")
    held = models.TextField(default="", blank=True)
    closing = models.TextField(default="", blank=True)
    output_digest = digest_column(null=True)
    error = models.TextField(default="", blank=True)
    start_at_ms = millis_column(null=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    revision = models.PositiveBigIntegerField(default=1)
    next_event = models.PositiveBigIntegerField(default=2)
    visits = models.PositiveIntegerField(default=0)
    wake_at_ms = millis_column(null=True)
    lease_epoch = models.PositiveBigIntegerField(default=0)
    last_commit = models.CharField(max_length=32, default="", blank=True)
    controls_accepted = models.PositiveIntegerField(default=0)
    controls_seen = models.PositiveIntegerField(default=0)
    crashes = models.PositiveIntegerField(default=0)
    crashed_at_visits = models.PositiveIntegerField(null=True)
    active_ms = millis_column(default=0)
    workspace = models.CharField(max_length=200, default="", blank=True)
    audit_hold = models.TextField(default="", blank=True, help_text="JSON: who keeps it from being pruned, since, why")

    objects = RunManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["workflow", "idempotency_key"], name="run_key_once"),
            models.UniqueConstraint(fields=["parent_run", "invocation_key"], name="run_invocation_once"),
            models.UniqueConstraint(fields=["fork_of", "request_id"], name="run_fork_request_once"),
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="run_status_known"),
        ]
        indexes = [
            models.Index(
                fields=["-priority", "wake_at_ms", "id"],
                name="run_live",
                condition=Q(status__in=sorted(LIVE_STATUSES)),
            ),
            # where workers look for runs (operations.picking); without statuses as a condition, which SQLite does not
            # find again when they are parameters
            models.Index(fields=["workflow", "status", "-priority", "id"], name="run_ready"),
            models.Index(fields=["workflow", "wake_at_ms"], name="run_woken", condition=Q(wake_at_ms__isnull=False)),
            models.Index(fields=["status", "-id"], name="run_by_status"),
            models.Index(fields=["workflow", "-id"], name="run_by_workflow"),
            models.Index(fields=["workflow", "status"], name="run_counted"),
            models.Index(fields=["started_by", "-id"], name="run_by_starter"),
            models.Index(fields=["concurrency_key", "-id"], name="run_by_key"),
            models.Index(fields=["created_at"], name="run_by_creation"),
            models.Index(fields=["started_at"], name="run_by_start"),
            models.Index(fields=["ended_at"], name="run_by_end"),
            models.Index(ErrorCode(F("error")), F("id").desc(), name="run_by_error", condition=~Q(error="")),
        ]
        permissions = [
            ("start_run", "Can start runs and send signals"),
            ("cancel_run", "Can cancel runs"),
            ("hold_run", "Can pause runs, lift holds and steer"),
            ("reopen_run", "Can reopen and retry runs and skip steps"),
            ("reconcile_run", "Can say what became of interrupted writes"),
            ("abandon_run", "Can abandon runs"),
            ("fork_run", "Can fork runs"),
            ("export_run", "Can export runs"),
            ("exceed_limit", "Can start runs beside a full concurrency key"),
            ("keep_run", "Can put runs on audit hold"),
            ("view_sensitive", "Can see values of steps that are marked as sensitive"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_final(self) -> bool:
        return self.status not in LIVE_STATUSES
