"""What a run waits for, in more words than its reasons: signals by name, child runs, holders of places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from workflows.clock import moment
from workflows.models import Event, Lease, Run, Scope, Slot
from workflows.queries.external import live_offers
from workflows.queries.turns import turn_of
from workflows.statuses import BLOCKING_CAUSES, LIVE_STATUSES, RunStatus, ScopePhase, SlotKind, WaitsFor

#: The cause of a run whose moment to start has not come; it has no reason of its own.
LATER = "later"


def told_reasons(run: Run) -> list[dict[str, Any]]:
    """The causes of a run's status, each with what it is about.

    A signal has ``signal``, its name; a child run ``child`` and ``child_status``; a place of a limit ``group`` and
    ``holders``, the runs that have one, and ``until_ms`` when a rate says when it goes on; external
    work ``queue`` and ``worker``, the program that has it, or null. A run whose moment to start
    has not come, or in line for its concurrency key, gets a reason of its own: ``{cause: "later", until_ms}``,
    ``{cause: "concurrency", key, max, holders, ahead}``.
    """
    reasons: list[dict[str, Any]] = json.loads(run.reasons)
    signals = _signals(run.pk, _visits(reasons, WaitsFor.SIGNAL))
    children = _children(run.pk, _visits(reasons, WaitsFor.CHILD))
    works = live_offers(run.pk, _visits(reasons, WaitsFor.EXTERNAL))
    told = []
    for reason in reasons:
        visit = reason.get("visit")
        more: dict[str, Any] = {}
        if reason["cause"] == WaitsFor.SIGNAL and visit in signals:
            more = {"signal": signals[visit]}
        elif reason["cause"] == WaitsFor.CHILD and visit in children:
            more = children[visit]
        elif reason["cause"] == WaitsFor.EXTERNAL and visit in works:
            more = {"queue": works[visit].queue, "worker": works[visit].worker or None}
        elif reason["cause"] == WaitsFor.SLOT:
            more = _limit(run.pk, reason.get("scope", ""))
        told.append({**reason, **more})
    line = place_in_line(run)
    if starts_later(run):
        return [{"cause": LATER, "until_ms": run.start_at_ms}, *told]
    return [{"cause": "concurrency", **line}, *told] if line is not None else told


def starts_later(run: Run) -> bool:
    """Whether the moment of a run has not come, by the clock of this host: for words only."""
    waits = run.start_at_ms is not None and run.status == RunStatus.QUEUED and not run.closing
    return waits and moment(run.start_at_ms) > timezone.now()


def place_in_line(run: Run) -> dict[str, Any] | None:
    """``{key, max, holders, ahead}`` of a run that needs a concurrency slot and has none; ``ahead`` counts the runs
    that stand before it."""
    if run.concurrency_max == 0 or run.closing or run.status not in (RunStatus.QUEUED, RunStatus.BLOCKED):
        return None
    slots = Slot.objects.filter(kind=SlotKind.CONCURRENCY, name=run.concurrency_key)
    mine = slots.filter(run=run).first()
    if mine is None or mine.number is not None:
        return None
    return {
        "key": run.concurrency_key,
        "max": mine.max,
        "holders": _holders(slots),
        "ahead": slots.filter(number=None, pk__lt=mine.pk).count(),
    }


def tree_of(run_id: int) -> list[int]:
    """The run and its live child runs at any depth, in the order in which they began."""
    found, level = [run_id], [run_id]
    while level:
        children = Run.objects.filter(parent_run__in=level, root_run__isnull=False, status__in=sorted(LIVE_STATUSES))
        level = list(children.order_by("pk").values_list("pk", flat=True))
        found.extend(level)
    return sorted(found)


def status_of_tree(root_id: int) -> str:
    """Where a run stands together with its child runs: one that only waits for child runs which wait for an operator
    or for people is ``blocked`` or ``paused`` like them."""
    found: set[str] = set()
    root_status = ""
    for run in Run.objects.filter(pk__in=tree_of(root_id)):
        root_status = run.status if run.pk == root_id else root_status
        causes = {reason["cause"] for reason in json.loads(run.reasons)}
        if run.status == RunStatus.WAITING and not causes - BLOCKING_CAUSES - {WaitsFor.CHILD, WaitsFor.PEOPLE}:
            found |= {RunStatus.BLOCKED} if causes & BLOCKING_CAUSES else set()
            found |= {RunStatus.PAUSED} if WaitsFor.PEOPLE in causes else set()
        else:
            found.add(run.status)
    if root_status == RunStatus.WAITING and found and found <= {RunStatus.BLOCKED, RunStatus.PAUSED}:
        return RunStatus.BLOCKED if RunStatus.BLOCKED in found else RunStatus.PAUSED
    return root_status


def signals_awaited(run_id: int) -> dict[int, str]:
    """The names of the signals that a run waits for at this moment, by the visit that waits."""
    waiting = Scope.objects.filter(run_id=run_id, phase=ScopePhase.WAITING, waits_for=WaitsFor.SIGNAL)
    return _signals(run_id, [visit for visit in waiting.values_list("visit", flat=True) if visit is not None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """Who drives a run until when. Nobody: ``worker`` None; then ``was_handed_back`` unless its worker died."""

    worker: str | None
    until_ms: int
    was_handed_back: bool


def driven_by(run_id: int) -> Driven:
    lease = Lease.objects.filter(run_id=run_id).first()
    if lease is None:
        return Driven(worker=None, until_ms=0, was_handed_back=True)
    is_live = Lease.objects.is_live(run_id)
    return Driven(
        worker=lease.owner if is_live else None, until_ms=lease.expires_ms, was_handed_back=lease.expires_ms == 0
    )


def held_by(run_id: int) -> dict[str, Any] | None:
    """Who holds a run, since when and why: ``{by, since, reason}``."""
    held = Run.objects.values_list("held", flat=True).get(pk=run_id)
    return json.loads(held) if held else None


def places_of(run_id: int) -> list[dict[str, Any]]:
    """The slots of a run and its places in line, with the runs that hold one."""
    rows = list(Slot.objects.filter(run_id=run_id).order_by("id"))
    return [
        {
            "kind": row.kind,
            "name": row.name,
            "scope": row.scope,
            "number": row.number,
            "max": row.max,
            "holders": _holders(Slot.objects.filter(kind=row.kind, name=row.name)),
        }
        for row in rows
    ]


def _visits(reasons: Iterable[Mapping[str, Any]], cause: WaitsFor) -> list[int]:
    return [reason["visit"] for reason in reasons if reason["cause"] == cause and "visit" in reason]


def _signals(run_id: int, visits: list[int]) -> dict[int, str]:
    if not visits:
        return {}
    rows = Event.objects.filter(run_id=run_id, visit__in=visits, type="step_waiting").order_by("sequence")
    found = {visit: json.loads(payload).get("signal") for visit, payload in rows.values_list("visit", "payload")}
    return {visit: name for visit, name in found.items() if name is not None}


def _children(run_id: int, visits: list[int]) -> dict[int, dict[str, Any]]:
    """The latest child run of each visit."""
    if not visits:
        return {}
    rows = Run.objects.filter(parent_run_id=run_id, parent_visit__in=visits).order_by("pk")
    columns = rows.values_list("parent_visit", "pk", "status")
    return {visit: {"child": child, "child_status": status} for visit, child, status in columns}


def _limit(run_id: int, scope: str) -> dict[str, Any]:
    slot = Slot.objects.filter(run_id=run_id, kind=SlotKind.LIMIT, scope=scope).first()
    if slot is None:
        return {}
    told = {"group": slot.name, "holders": _holders(Slot.objects.filter(kind=slot.kind, name=slot.name))}
    turn_ms = turn_of(slot)
    return told if turn_ms is None else {**told, "until_ms": turn_ms}


def _holders(slots: Any) -> list[int]:
    given = slots.filter(number__isnull=False).order_by("given_ms", "id")
    return list(dict.fromkeys(given.values_list("run_id", flat=True)))
