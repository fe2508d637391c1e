"""Un-settling: a settled visit is open again, and with it the bodies that it contains (promise ABR.2).

Items that are ok stay as they are; those that failed or were stopped stand again where they ended, at any depth. What
never began is left to the driver, which starts the items that have not started.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from workflows.clock import unix_ms
from workflows.ledger.records import record_version
from workflows.models import Attempt, Fanout, RowVersion, Run, Scope, Visit
from workflows.statuses import AttemptStatus, ScopePhase, VisitStatus, WaitsFor

_VISIT_RESULT = (
    "status",
    "outcome",
    "output_digest",
    "detail_digest",
    "error",
    "exit_code",
    "revision_settled",
    "ended_at",
)
_CONTAINERS = frozenset({"map", "parallel", "block"})


def open_again(run: Run, scope: str, visit: Visit, now: datetime, **more: Any) -> None:
    """Let a scope stand at a visit that ended its list: the visit is open again, with the bodies it contains.

    A refused entry is entered anew. A write of which nobody knows whether it happened is reconciled first (ADM.5). The
    timeout of a container begins anew.
    """
    if visit.status == VisitStatus.REFUSED:
        stand_at(run, scope, visit.step, None, **more)
        return
    unsettle(run, visit)
    waits_for, wake_at_ms = "", None
    if has_bodies(run, visit):
        waits_for, wake_at_ms = str(WaitsFor.JOIN), _timeout_from(now, run, scope, visit)
        for body in Scope.objects.filter(run=run, parent_visit=visit.number).order_by("pk"):
            if body.outcome in ("failed", "cancelled"):
                open_body(run, body, now)
    elif is_uncertain(run, visit.number):
        waits_for = str(WaitsFor.RECONCILE)
    stand_at(run, scope, visit.step, visit.number, waits_for=waits_for, wake_at_ms=wake_at_ms, **more)


def _timeout_from(now: datetime, run: Run, scope: str, visit: Visit) -> int | None:
    """When the timeout of a container ends that begins at ``now``; None without one.

    How long it is was computed when the container was entered, so it is read from what was written then.
    """
    rows = RowVersion.objects.filter(run=run, table="scope", key=scope, revision=visit.revision_created)
    written = (json.loads(text).get("wake_at_ms") for text in rows.order_by("id").values_list("row", flat=True))
    ends_ms = next((moment_ms for moment_ms in written if moment_ms is not None), None)
    return None if ends_ms is None else unix_ms(now) + ends_ms - unix_ms(visit.started_at)


def has_bodies(run: Run, visit: Visit) -> bool:
    """Whether the bodies of a container have begun: a list that was refused as a whole has none."""
    if visit.kind not in _CONTAINERS:
        return False
    if visit.kind == "block":
        return bool(Scope.objects.filter(run=run, parent_visit=visit.number).exists())
    return bool(Fanout.objects.filter(run=run, visit=visit.number).exists())


def open_body(run: Run, body: Scope, now: datetime) -> None:
    """Let an item, a branch or a block stand again where it ended."""
    error = json.loads(body.error) if body.error else {}
    visits = Visit.objects.filter(run=run, scope=body.path)
    last: Visit | None = visits.order_by("-number").first()
    if error.get("visit") is not None:
        open_again(run, body.path, visits.get(number=error["visit"]), now)
    elif error:
        # its variables, or its result, could not be computed: the first stays so, the second is computed again
        if last is not None:
            stand_at(run, body.path, "", None)
    elif last is not None and last.status == VisitStatus.SETTLED and last.outcome in ("failed", "cancelled"):
        open_again(run, body.path, last, now)
    else:
        stand_at(run, body.path, _step_before_its_end(run, body.path), None)


def _step_before_its_end(run: Run, path: str) -> str:
    """The step that a scope would have entered next when it was stopped between two steps."""
    rows = RowVersion.objects.filter(run=run, table="scope", key=path).order_by("-revision", "-id")
    steps = (json.loads(text).get("step") for text in rows.values_list("row", flat=True))
    return next((step for step in steps if step), "")


def is_uncertain(run: Run, visit: int | None) -> bool:
    """Whether the last attempt of a visit was interrupted and nobody has said yet what became of it."""
    last = Attempt.objects.filter(run=run, visit=visit).order_by("-number").first()
    if last is None or last.status != AttemptStatus.INTERRUPTED or last.authorization:
        return False
    return "uncertain" in json.loads(last.marks)


def unsettle(run: Run, visit: Visit) -> None:
    """Open a settled visit again. Its former result stays in history as the version of its settlement's revision."""
    if not visit.reopened and visit.revision_settled is not None:
        former = {name: getattr(visit, name) for name in _VISIT_RESULT}
        record_version(run, "visit", str(visit.number), former, revision=visit.revision_settled)
    changed: dict[str, Any] = {
        "status": str(VisitStatus.OPEN),
        "outcome": "",
        "output_digest": None,
        "detail_digest": None,
        "error": "",
        "exit_code": None,
        "revision_settled": None,
        "ended_at": None,
        "reopened": visit.reopened + 1,
    }
    Visit.objects.filter(run=run, number=visit.number).update(**changed)
    record_version(run, "visit", str(visit.number), changed)


def stand_at(run: Run, scope: str, step: str, visit: int | None, *, waits_for: str = "", **more: Any) -> None:
    """Let a scope go on at a step, in the open transaction; ``step`` "" is the end of its list."""
    changed = {
        "phase": str(ScopePhase.WAITING if waits_for else ScopePhase.READY),
        "step": step,
        "visit": visit,
        "waits_for": str(waits_for),
        "wake_at_ms": None,
        "stopping": "",
        "outcome": "",
        "output_digest": None,
        "error": "",
        **more,
    }
    Scope.objects.filter(run=run, path=scope).update(**changed)
    record_version(run, "scope", scope, changed)
