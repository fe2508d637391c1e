"""Every status of the product, once, with the moves that are allowed between them.

Pure: no model imports this module's users. Database constraints and the pages take their lists from here.
"""

from __future__ import annotations

from django.db.models import TextChoices


class RunStatus(TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    BLOCKED = "blocked"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class VisitStatus(TextChoices):
    OPEN = "open"
    SETTLED = "settled"
    REFUSED = "refused"


class AttemptStatus(TextChoices):
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class ScopePhase(TextChoices):
    READY = "ready"
    EFFECT = "effect"
    WAITING = "waiting"
    ENDED = "ended"


class ScopeKind(TextChoices):
    ROOT = "root"
    BLOCK = "block"
    ITEM = "item"
    BRANCH = "branch"


class Section(TextChoices):
    MAIN = "main"
    ON_FAILURE = "on_failure"
    FINALLY = "finally"


class WaitsFor(TextChoices):
    """What a scope in phase *waiting* waits for; the causes of a run's ``reasons``."""

    TIMER = "timer"
    RETRY = "retry"
    SIGNAL = "signal"
    PEOPLE = "people"
    CHILD = "child"
    SLOT = "slot"
    EXTERNAL = "external"
    JOIN = "join"
    RECONCILE = "reconcile"
    CODE = "code"


class Access(TextChoices):
    READ = "read"
    WRITE = "write"


class ControlKind(TextChoices):
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    STEER = "steer"
    SIGNAL = "signal"
    SKIP = "skip"
    RAISE_LIMIT = "raise_limit"


class InterruptKind(TextChoices):
    APPROVAL = "approval"
    QUESTION = "question"


class InterruptStatus(TextChoices):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CLOSED = "closed"


class OfferStatus(TextChoices):
    """An offer of work to other programs. ``LAPSED``: it was reserved, not renewed in time, and is offered again."""

    OPEN = "open"
    RESERVED = "reserved"
    FINISHED = "finished"
    LAPSED = "lapsed"
    WITHDRAWN = "withdrawn"


class DeliveryStatus(TextChoices):
    """A notification on its way to one receiver. ``DROPPED``: there is nothing to tell them any more."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"
    DROPPED = "dropped"


class About(TextChoices):
    """Which runs a person wants to hear of."""

    EVERYTHING = "everything"
    MINE = "mine"
    CHOSEN = "chosen"


class SlotKind(TextChoices):
    CONCURRENCY = "concurrency"
    LIMIT = "limit"


class WorkerKind(TextChoices):
    """What started a process that drives runs."""

    RUN_WORKER = "run_worker"
    RUN_WORKFLOW = "run_workflow"
    CELERY = "celery"


class IfRunning(TextChoices):
    """What a schedule does while a run that it started goes on."""

    SKIP = "skip"
    QUEUE = "queue"
    CANCEL = "cancel"


class CatchUp(TextChoices):
    """Which of the times that passed without a worker a schedule makes up for."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class FireStatus(TextChoices):
    """What became of a time of a schedule."""

    DUE = "due"  # claimed, and not yet decided
    WAITING = "waiting"  # for the end of an earlier run
    STARTED = "started"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


class Stopping(TextChoices):
    """Why the bodies of a container end before their time."""

    FAILED = "failed"  # join all: nothing new starts, what runs goes on
    SUCCEEDED = "succeeded"  # join any: the rest is cancelled
    TIMED_OUT = "timed_out"
    OVER_BUDGET = "over_budget"  # nothing new starts
    CANCELLED = "cancelled"


LIVE_STATUSES = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.PAUSED, RunStatus.BLOCKED})
FINAL_STATUSES = frozenset(set(RunStatus) - LIVE_STATUSES)
#: A failed or abandoned run can be reopened; succeeded and cancelled are final for ever.
REOPENABLE_STATUSES = frozenset({RunStatus.FAILED, RunStatus.ABANDONED, RunStatus.BLOCKED})
#: Causes of waiting that pass by themselves, that an operator must end, that people must end.
WAITING_CAUSES = frozenset(
    {WaitsFor.TIMER, WaitsFor.RETRY, WaitsFor.SIGNAL, WaitsFor.CHILD, WaitsFor.SLOT, WaitsFor.EXTERNAL}
)
BLOCKING_CAUSES = frozenset({WaitsFor.RECONCILE, WaitsFor.CODE})

RUN_MOVES: dict[RunStatus, frozenset[RunStatus]] = {
    **{
        status: frozenset(set(RunStatus) - {status, RunStatus.QUEUED})
        for status in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.PAUSED, RunStatus.BLOCKED)
    },
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.FAILED: frozenset({RunStatus.QUEUED}),
    RunStatus.ABANDONED: frozenset({RunStatus.QUEUED}),
}

ATTEMPT_MOVES: dict[AttemptStatus, frozenset[AttemptStatus]] = {
    AttemptStatus.RUNNING: frozenset(
        {AttemptStatus.SUCCEEDED, AttemptStatus.FAILED, AttemptStatus.CANCELLED, AttemptStatus.INTERRUPTED}
    ),
    AttemptStatus.PAUSED: frozenset({AttemptStatus.SUCCEEDED, AttemptStatus.FAILED, AttemptStatus.CANCELLED}),
    AttemptStatus.SUCCEEDED: frozenset(),
    AttemptStatus.FAILED: frozenset(),
    AttemptStatus.CANCELLED: frozenset(),
    AttemptStatus.INTERRUPTED: frozenset({AttemptStatus.SUCCEEDED, AttemptStatus.FAILED}),
}

FIRE_MOVES: dict[FireStatus, frozenset[FireStatus]] = {
    FireStatus.DUE: frozenset({FireStatus.WAITING, FireStatus.STARTED, FireStatus.SKIPPED, FireStatus.REFUSED}),
    FireStatus.WAITING: frozenset({FireStatus.STARTED, FireStatus.SKIPPED, FireStatus.REFUSED}),
    FireStatus.STARTED: frozenset(),
    # a start that took longer than its turn: the run is there, whatever was said meanwhile
    FireStatus.SKIPPED: frozenset({FireStatus.STARTED}),
    FireStatus.REFUSED: frozenset({FireStatus.STARTED}),
    FireStatus.MISSED: frozenset(),
}
