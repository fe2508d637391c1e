"""Pruning: finished runs that are old enough go, with everything that only they needed (promise REV.4)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from workflows.conf import conf
from workflows.definitions.durations import write_duration
from workflows.engine.workspaces import Workspaces
from workflows.errors import Refusal
from workflows.ledger import pruning
from workflows.ledger.naming import referenced
from workflows.ledger.pruning import Kept, why_kept
from workflows.models import Payload, Plan, Run, Workflow
from workflows.operations.access import require
from workflows.operations.people import Actor
from workflows.operations.reasons import checked_reason
from workflows.statuses import FINAL_STATUSES

#: Runs that are read together, payloads that are dropped together.
_RUNS_AT_ONCE = 200
_PAYLOADS_AT_ONCE = 5_000
#: Runs of one family that are removed in one transaction.
_FAMILY_AT_ONCE = 1_000
#: A private version younger than this may belong to a start that has not published its run yet.
_PLAN_AGE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which runs may go: those that ended longer ago than ``older_than_ms``, but for the newest ``keep`` of each
    workflow. At least one of the two is given. ``workflow`` and ``statuses`` leave other runs alone.

    Child runs go and stay with their parents; they count for no workflow of their own.
    """

    older_than_ms: int | None = None
    keep: int | None = None
    workflow: str | None = None
    statuses: tuple[str, ...] = ()

    def in_words(self) -> str:
        parts = []
        if self.older_than_ms is not None:
            parts.append(f"older than {write_duration(self.older_than_ms)}")
        if self.keep is not None:
            parts.append(f"beyond the newest {self.keep}")
        if self.workflow is not None:
            parts.append(f"of {self.workflow}")
        if self.statuses:
            parts.append(f"that {' or '.join(self.statuses)}")
        return " ".join(parts)


@dataclass(slots=True)
class Pruned:
    """What went, or would go: runs with their child runs by workflow, payloads, private plans; and what stayed, by
    reason. ``payloads`` and ``plans`` are only known once they are gone."""

    runs: int = 0
    children: int = 0
    by_workflow: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    payloads: int = 0
    plans: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """A run with all its child runs at any depth; children come before their parents."""

    root: int
    workflow: str
    members: tuple[int, ...]
    kept: Kept | None


def survey(retention: Retention, *, actor: Actor, now: datetime | None = None) -> Pruned:
    """What would go and what would stay. Changes nothing. Raises ``input.invalid``, ``workflow.not_found``."""
    found = Pruned()
    _check(retention, actor)
    _count_kept(found, retention, now or timezone.now())
    for family in _families(retention, now or timezone.now()):
        _count(found, family, family.kept)
    return found


def prune(
    retention: Retention,
    *,
    actor: Actor,
    now: datetime | None = None,
    progress: Callable[[Pruned], None] = lambda pruned: None,
) -> Pruned:
    """Remove what the retention lets go: each run with its child runs in a short transaction; then the payloads and
    private plans that nothing refers to any more. ``progress`` is told after each family.

    What keeps a run is asked again under its lock. A crash in between leaves whole runs; payloads it leaves behind go
    with ``drop_leftovers``. Raises ``input.invalid``, ``workflow.not_found``, ``store.contended``.
    """
    pruned, moment = Pruned(), now or timezone.now()
    _check(retention, actor)
    _count_kept(pruned, retention, moment)
    digests: set[str] = set()
    wish = pruning.Pruning(
        before=_before(retention, moment), actor=actor.recorded, reason=retention.in_words(), now=moment
    )
    for family in _families(retention, moment):
        kept = family.kept or _prune_family(family, wish, digests)
        _count(pruned, family, kept)
        progress(pruned)
        if len(digests) >= _PAYLOADS_AT_ONCE:
            pruned.payloads += _drop_payloads(digests)
            digests.clear()
    pruned.payloads += _drop_payloads(digests)
    pruned.plans = drop_plans(now=moment)
    return pruned


def _check(retention: Retention, actor: Actor) -> None:
    require(actor, "delete_run", workflow=retention.workflow, action="run.prune")
    if retention.older_than_ms is None and retention.keep is None:
        raise Refusal(
            "input.invalid",
            reason="It needs a rule: an age, or how many runs of each workflow stay.",
            advice="For example `--older-than 90d`, or `--keep 100`.",
        )
    if retention.workflow is not None and not Workflow.objects.filter(name=retention.workflow).exists():
        raise Refusal("workflow.not_found", name=retention.workflow)
    live = sorted(set(retention.statuses) - FINAL_STATUSES)
    if live:
        raise Refusal("input.invalid", reason=f"Runs that are {live[0]} have not ended, so they are never pruned.")


def _before(retention: Retention, now: datetime) -> datetime | None:
    age = retention.older_than_ms
    return None if age is None else now - timedelta(milliseconds=age)


def _roots(retention: Retention) -> Any:
    """Runs without parents that the filters are about."""
    runs = Run.objects.filter(parent_run=None)
    if retention.workflow is not None:
        runs = runs.filter(workflow__name=retention.workflow)
    return runs


def _finished(retention: Retention) -> Any:
    return _roots(retention).filter(status__in=retention.statuses or sorted(FINAL_STATUSES))


def _workflows(retention: Retention) -> list[tuple[int, str]]:
    found = Workflow.objects.order_by("name")
    if retention.workflow is not None:
        found = found.filter(name=retention.workflow)
    return list(found.values_list("pk", "name"))


def _beyond_newest(retention: Retention, workflow: int) -> Any:
    """The finished runs of a workflow but for the newest that stay."""
    runs = _finished(retention).filter(workflow_id=workflow).order_by("-pk")
    if not retention.keep:
        return runs
    oldest_kept = list(runs.values_list("pk", flat=True)[retention.keep - 1 : retention.keep])
    return runs.filter(pk__lt=oldest_kept[0]) if oldest_kept else runs.none()


def _count_kept(found: Pruned, retention: Retention, now: datetime) -> None:
    """What the rules themselves keep, in a few queries for each workflow."""
    before = _before(retention, now)
    found.kept["live"] += _roots(retention).live().count()
    for workflow, _ in _workflows(retention):
        finished = _finished(retention).filter(workflow_id=workflow).count()
        beyond = _beyond_newest(retention, workflow)
        candidates = beyond.count()
        found.kept["newest"] += finished - candidates
        if before is not None:
            found.kept["recent"] += candidates - beyond.filter(ended_at__lt=before).count()


def _families(retention: Retention, now: datetime) -> Iterator[_Family]:
    before = _before(retention, now)
    for workflow, name in _workflows(retention):
        runs = _beyond_newest(retention, workflow)
        if before is not None:
            runs = runs.filter(ended_at__lt=before)
        last = None
        while page := list((runs if last is None else runs.filter(pk__lt=last))[:_RUNS_AT_ONCE]):
            for run in page:
                yield _family(run, name, before)
            last = page[-1].pk


def _family(root: Run, workflow: str, before: datetime | None) -> _Family:
    levels = [[root]]
    while children := list(Run.objects.filter(parent_run__in=levels[-1]).order_by("pk")):
        levels.append(children)
    members = [run for level in reversed(levels) for run in level]
    numbers = tuple(run.pk for run in members)
    kept = why_kept(members[::-1], before=before, family=numbers)
    return _Family(root=root.pk, workflow=workflow, members=numbers, kept=kept)


def _count(found: Pruned, family: _Family, kept: Kept | None) -> None:
    if kept is None:
        found.runs += 1
        found.children += len(family.members) - 1
        found.by_workflow[family.workflow] += 1
    else:
        found.kept[kept.reason if kept.run == family.root or kept.reason == "fork" else f"child_{kept.reason}"] += 1


def _prune_family(family: _Family, wish: pruning.Pruning, digests: set[str]) -> Kept | None:
    for start in range(0, len(family.members), _FAMILY_AT_ONCE):
        part = family.members[start : start + _FAMILY_AT_ONCE]
        answer = pruning.prune_runs(root=family.root, runs=part, family=family.members, wish=wish)
        if isinstance(answer, Kept):
            return answer
        digests |= answer
        for number in part:
            _remove_workspace(number)
    return None


def _remove_workspace(run_id: int) -> None:
    """The run's directory goes with it. What cannot be removed stays: it harms nobody, and says so by being there."""
    path = Workspaces(conf().workspace_root).root / f"run-{run_id}"
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)


def _drop_payloads(digests: set[str]) -> int:
    dropped = 0
    names = sorted(digests)
    for start in range(0, len(names), _PAYLOADS_AT_ONCE):
        part = names[start : start + _PAYLOADS_AT_ONCE]
        # looked at first without a lock: most of what is named by others is found here
        unused = set(part) - referenced(part)
        if unused:
            dropped += pruning.drop_payloads(digests=unused)
    return dropped


def drop_leftovers(*, actor: Actor) -> int:
    """Remove all payloads that nothing refers to, as a prune that was cut short leaves them; how many."""
    require(actor, "delete_run", action="run.prune")
    dropped, last = 0, ""
    while page := list(
        Payload.objects.filter(digest__gt=last).order_by("digest").values_list("digest", flat=True)[:_PAYLOADS_AT_ONCE]
    ):
        dropped += _drop_payloads(set(page))
        last = page[-1]
    return dropped


def drop_plans(*, now: datetime) -> int:
    """Remove the private versions that no run uses; how many."""
    unused = Plan.objects.filter(version=None, runs=None, created_at__lt=now - _PLAN_AGE).order_by("pk")
    candidates = list(unused.values_list("pk", flat=True))
    if not candidates:
        return 0
    frozen = pruning.frozen_plans(candidates)
    return sum(pruning.drop_plan(plan_id=plan) for plan in candidates if plan not in frozen)


def keep(run_id: int, *, actor: Actor, reason: str) -> bool:
    """Put a run on audit hold: neither it nor its relatives are pruned. False when it is on hold already.

    A reason is needed. Raises ``run.not_found``, ``access.denied``, ``input.invalid``.
    """
    require(actor, "keep_run", run=run_id)
    told = checked_reason(reason, needed_for="An audit hold")
    return pruning.hold_for_audit(run_id=run_id, actor=actor.recorded, reason=told, now=timezone.now())


def stop_keeping(run_id: int, *, actor: Actor, reason: str = "") -> bool:
    """End the audit hold of a run; False when there is none. Raises ``run.not_found``, ``access.denied``."""
    require(actor, "keep_run", run=run_id)
    told = checked_reason(reason)
    return pruning.release_from_audit(run_id=run_id, actor=actor.recorded, reason=told, now=timezone.now())
