"""How a run stands, read from its rows: what :func:`workflows.queries.why.why` decides from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max

from workflows.clock import database_now_ms, moment
from workflows.conf import KNOWN_ENGINE_VERSIONS, conf
from workflows.engine.paths import visit_path
from workflows.models import Attempt, Event, Interrupt, Lease, Run, Scope, Slot, Visit
from workflows.queries.external import live_offers
from workflows.queries.turns import turn_of
from workflows.queries.waiting import place_in_line
from workflows.queries.why import why
from workflows.queries.why_facts import Because, LeaseFacts, LineFacts, Standing, WaitFacts, WorkFacts
from workflows.statuses import InterruptStatus, RunStatus, ScopePhase, SlotKind, WaitsFor

#: Waiting scopes that are told one by one.
MOST_WAITS = 12
#: Heartbeats that may be missed before a worker counts as silent.
MISSED_BEATS = 2


def why_run(run: Run, user: Any = None, *, now_ms: int | None = None) -> list[Because]:
    """The reasons why a run does not go on. ``user`` None may see every run. A few queries; none for a run that is
    over."""
    return why(standing_of(run, user, now_ms=now_ms))


def standing_of(run: Run, user: Any = None, *, now_ms: int | None = None) -> Standing:
    """How a run stands. Holders of what it waits for are named only if ``user`` may see them."""
    if run.is_final:
        return Standing(
            run=run.pk,
            status=run.status,
            now=run.ended_at or run.created_at,
            created_at=run.created_at,
            changed_at=run.ended_at,
            error_code=json.loads(run.error).get("code", "") if run.error else "",
        )
    at_ms = database_now_ms() if now_ms is None else now_ms
    lease = getattr(run, "lease", None) or Lease(run=run)
    scopes = list(_live(run.pk))
    waiting = [scope for scope in scopes if scope.phase == ScopePhase.WAITING and scope.waits_for != WaitsFor.JOIN]
    is_driven = lease.expires_ms > at_ms
    is_wanted = not is_driven and run.status in (RunStatus.QUEUED, RunStatus.RUNNING)
    is_due = run.wake_at_ms is not None and run.wake_at_ms <= at_ms
    return Standing(
        run=run.pk,
        status=run.status,
        now=moment(at_ms),
        created_at=run.created_at,
        changed_at=_changed_at(run) if is_wanted else None,
        works=any(scope.phase == ScopePhase.EFFECT for scope in scopes),
        wake_at=_moment(run.wake_at_ms),
        lease=lease_facts(lease),
        silent_after=timedelta(milliseconds=conf().heartbeat_ms * MISSED_BEATS),
        held=json.loads(run.held) if run.held else None,
        line=_line(run, user),
        waits=tuple(_waits(run, waiting[:MOST_WAITS], user)),
        further_waits=max(len(waiting) - MOST_WAITS, 0),
        engine_version=run.engine_version,
        known_engines=KNOWN_ENGINE_VERSIONS,
        worker_seen_at=_workers_seen_at(at_ms) if is_wanted or (is_due and not is_driven) else None,
        crashes=run.crashes,
        starts_at=_moment(run.start_at_ms) if run.status == RunStatus.QUEUED and not run.closing else None,
        poison_limit=conf().poison_limit,
    )


def lease_facts(lease: Lease) -> LeaseFacts:
    return LeaseFacts(
        owner=lease.owner,
        epoch=lease.epoch,
        heartbeat_at=_moment(lease.heartbeat_ms or None),
        expires_at=_moment(lease.expires_ms or None),
    )


def _live(run_id: int) -> Iterable[Scope]:
    columns = ("run", "path", "phase", "waits_for", "step", "visit", "wake_at_ms")
    rows: Iterable[Scope] = Scope.objects.filter(run_id=run_id, outcome="").only(*columns).order_by("path")[:1_000]
    return rows


def _changed_at(run: Run) -> datetime:
    """When the run came to stand as it does: the moment of its last event."""
    last = Event.objects.filter(run=run).order_by("-sequence").values_list("at", flat=True).first()
    found: datetime = last or run.created_at
    return found


def _workers_seen_at(now_ms: int) -> datetime | None:
    """The last heartbeat of any worker that holds a lease, also one that has ended."""
    held = Lease.objects.filter(run__in=Run.objects.live(), expires_ms__gt=0)
    return _moment(held.aggregate(last=Max("heartbeat_ms"))["last"])


def _line(run: Run, user: Any) -> LineFacts | None:
    place = place_in_line(run)
    if place is None:
        return None
    mine = Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY).values_list("entered_ms", flat=True).first()
    shown, hidden = _visible(place["holders"], user)
    return LineFacts(
        name=place["key"],
        since=_moment(mine),
        holders=shown,
        hidden_holders=hidden,
        ahead=place["ahead"],
        max=place["max"],
    )


def _waits(run: Run, waiting: Collection[Scope], user: Any) -> Iterable[WaitFacts]:
    numbers = [scope.visit for scope in waiting if scope.visit is not None]
    if not waiting:
        return
    visits = {row.number: row for row in Visit.objects.filter(run=run, number__in=numbers)}
    attempts = _last_attempts(run.pk, numbers)
    causes = {scope.waits_for for scope in waiting}
    told = _events(run.pk, waiting) if causes & {WaitsFor.SIGNAL, WaitsFor.CODE} else {}
    questions = _questions(run, numbers) if WaitsFor.PEOPLE in causes else {}
    children = _children(run.pk, numbers, user) if WaitsFor.CHILD in causes else {}
    works = _works(run.pk, numbers) if WaitsFor.EXTERNAL in causes else {}
    for scope in waiting:
        visit = visits.get(scope.visit) if scope.visit is not None else None
        attempt = attempts.get(scope.visit or 0)
        event = told.get((scope.visit, "" if scope.visit else scope.step), {})
        more: dict[str, Any] = {}
        if scope.waits_for == WaitsFor.PEOPLE and scope.visit in questions:
            more = questions[scope.visit]
        elif scope.waits_for == WaitsFor.CHILD:
            more = children.get(scope.visit or 0, {})
        elif scope.waits_for == WaitsFor.EXTERNAL:
            more = dict(works.get(scope.visit or 0, {}))
        elif scope.waits_for == WaitsFor.SLOT:
            more = _limit(run.pk, scope.path, user)
        elif scope.waits_for == WaitsFor.RETRY and attempt is not None and attempt.error:
            more = {"missing": json.loads(attempt.error).get("code", "")}
        elif scope.waits_for == WaitsFor.CODE:
            more = {"missing": event.get("missing", "")}
        yield WaitFacts(
            cause=scope.waits_for,
            step=visit_path(scope.path, scope.step, visit.round or 1 if visit else 1),
            visit=scope.visit,
            since=more.pop("since", _since(scope.waits_for, visit, attempt)),
            until=more.pop("until", _moment(scope.wake_at_ms)),
            signal=event.get("signal", "") if scope.waits_for == WaitsFor.SIGNAL else "",
            attempt=attempt.number if attempt else 0,
            **more,
        )


def _since(cause: str, visit: Visit | None, attempt: Attempt | None) -> datetime | None:
    """Waits that follow an attempt began with its end, others with their visit."""
    if attempt is not None and cause in (WaitsFor.RETRY, WaitsFor.RECONCILE) and attempt.ended_at is not None:
        ended: datetime = attempt.ended_at
        return ended
    if attempt is not None and cause == WaitsFor.PEOPLE:
        asked: datetime = attempt.started_at
        return asked
    return None if visit is None else visit.started_at


def _last_attempts(run_id: int, numbers: Collection[int]) -> dict[int, Attempt]:
    rows = Attempt.objects.filter(run_id=run_id, visit__in=numbers).order_by("visit", "number")
    return {row.visit: row for row in rows.defer("digest", "input_hash")}


def _events(run_id: int, waiting: Iterable[Scope]) -> dict[tuple[int | None, str], Mapping[str, Any]]:
    """The latest word about what a step waits for: by its visit, or by its name before it has one."""
    numbers = [scope.visit for scope in waiting if scope.visit is not None]
    rows = Event.objects.filter(run_id=run_id, type__in=("step_waiting", "step_parked"))
    if len(numbers) == len(list(waiting)):
        rows = rows.filter(visit__in=numbers)
    found: dict[tuple[int | None, str], Mapping[str, Any]] = {}
    for visit, text in rows.order_by("-sequence").values_list("visit", "payload")[:500]:
        data = json.loads(text)
        found.setdefault((visit, "" if visit else data.get("step", "")), data)
    return found


def _questions(run: Run, numbers: Collection[int]) -> dict[int | None, dict[str, Any]]:
    rows = Interrupt.objects.filter(run=run, visit__in=numbers, status=InterruptStatus.OPEN)
    found: dict[int | None, dict[str, Any]] = {}
    for visit, audience, deadline in rows.values_list("visit", "audience", "deadline_ms"):
        found[visit] = {"people": asked_people(json.loads(audience), run.started_by), "until": _moment(deadline)}
    return found


def asked_people(audience: Mapping[str, Any], started_by: str) -> str:
    """Who may answer, in words; "" for everybody.

    >>> asked_people({"users": ["requester"], "groups": ["owners"]}, "ann")
    'ann or group owners'
    """
    users = [started_by if name == "requester" else name for name in audience.get("users", [])]
    return " or ".join([*dict.fromkeys(users), *(f"group {name}" for name in audience.get("groups", []))])


def _children(run_id: int, numbers: Collection[int], user: Any) -> dict[int, dict[str, Any]]:
    """The latest child run of each visit, with the first cause of its own standing."""
    rows = Run.objects.filter(parent_run_id=run_id, parent_visit__in=numbers)
    if user is not None:
        rows = rows.visible_to(user)
    found = {}
    for visit, child, status, reasons in rows.order_by("pk").values_list("parent_visit", "pk", "status", "reasons"):
        found[visit] = {"child": child, "child_status": status, "child_reason": _first_cause(json.loads(reasons))}
    return found


def _works(run_id: int, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
    """The live offer of each visit: since when somebody has it, and until when, or since when it waits."""
    found: dict[int, dict[str, Any]] = {}
    for visit, offer in live_offers(run_id, numbers).items():
        work = WorkFacts(queue=offer.queue, worker=offer.worker, renewals=offer.renewals, times=offer.number)
        found[visit] = {"work": work, "since": offer.reserved_at or offer.since}
        if offer.is_reserved:
            found[visit]["until"] = offer.until
    return found


_CAUSES: dict[str, str] = {
    WaitsFor.TIMER: "{step} waits for a moment",
    WaitsFor.RETRY: "{step} waits for its next attempt",
    WaitsFor.SIGNAL: "{step} waits for a signal",
    WaitsFor.PEOPLE: "{step} waits for an answer",
    WaitsFor.CHILD: "{step} waits for a child run of its own",
    WaitsFor.SLOT: "{step} waits for a place of its limit",
    WaitsFor.EXTERNAL: "{step} waits for another program",
    WaitsFor.RECONCILE: "{step} has to be reconciled",
    WaitsFor.CODE: "{step} needs code that is missing",
    "held": "somebody holds it",
}


def _first_cause(reasons: list[Mapping[str, Any]]) -> str:
    if not reasons:
        return ""
    cause, step = reasons[0].get("cause", ""), reasons[0].get("step", "")
    rest = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return _CAUSES.get(cause, f'{{step}} waits for "{cause}"').format(step=step) + rest


def _limit(run_id: int, scope: str, user: Any) -> dict[str, Any]:
    """The line in which a scope stands, and when its rate lets it go on."""
    mine = Slot.objects.filter(run_id=run_id, kind=SlotKind.LIMIT, scope=scope).first()
    if mine is None:
        return {"line": None}
    same = Slot.objects.filter(kind=mine.kind, name=mine.name)
    holders = same.filter(number__isnull=False).order_by("given_ms", "id").values_list("run_id", flat=True)
    shown, hidden = _visible(list(dict.fromkeys(holders)), user)
    line = LineFacts(
        name=mine.name,
        since=_moment(mine.entered_ms),
        holders=shown,
        hidden_holders=hidden,
        ahead=same.filter(number=None, pk__lt=mine.pk).count(),
        max=mine.max,
        starts=mine.starts or 0,
        per_ms=mine.per_ms or 0,
    )
    return {"line": line, "until": _moment(turn_of(mine))}


def _visible(runs: list[int], user: Any) -> tuple[tuple[int, ...], int]:
    """The runs that may be named, and how many may not."""
    if user is None or not runs:
        return tuple(runs), 0
    visible = set(Run.objects.visible_to(user).filter(pk__in=runs).values_list("pk", flat=True))
    return tuple(run for run in runs if run in visible), len(runs) - len(visible)


def _moment(unix_ms: int | None) -> datetime | None:
    return None if unix_ms is None else moment(unix_ms)
