"""Forking: a run goes another way from a point of its past, as a new run (docs/forks.md)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from django.utils import timezone

from workflows.conf import conf
from workflows.definitions.parameters import for_expressions
from workflows.definitions.plan import Plan
from workflows.engine.consequences import give_way
from workflows.engine.memory import read_plan
from workflows.engine.workspaces import WorkspaceRefused, Workspaces
from workflows.errors import Problem, Refusal
from workflows.expressions import BadExpression
from workflows.jsonvalue import NotStorable, canonical, text_of
from workflows.ledger import forking as ledger
from workflows.ledger.controlling import send
from workflows.ledger.forking_children import awaited_children
from workflows.ledger.publishing import Concurrency
from workflows.ledger.records import compact
from workflows.ledger.slots import holds_slot
from workflows.models import Plan as PlanRow
from workflows.models import Run
from workflows.operations import forking_cut
from workflows.operations.access import require
from workflows.operations.children import definitions_below, frozen_children
from workflows.operations.forking_cut import Cut, find_cut, tallies_of
from workflows.operations.forking_edits import Edits, checked_edits
from workflows.operations.forking_plan import chosen_plan, refuse_unless_fits
from workflows.operations.people import Actor
from workflows.operations.readiness import frozen_functions, refuse_unless_ready
from workflows.operations.runs import MOST_KEY, MOST_TITLE
from workflows.statuses import ControlKind, RunStatus

ChildChoice = Literal["take", "new", "fork"]
CHILD_CHOICES: tuple[str, ...] = get_args(ChildChoice)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkWish:
    """A wish to fork a run. ``begin_with`` is a visit (``v12``) or a path, ``at`` a revision; neither: the usual point.

    ``params`` replace some of the origin's, ``from_text`` names those that are text yet to be converted. ``variables``
    and ``outputs`` are named as they are shown: ``each[3].n``, ``v4``. ``plan`` is a version or ``current``. A second
    wish with the same ``request_id`` is the same fork.
    """

    run_id: int
    actor: Actor
    begin_with: str | None = None
    at: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    from_text: Collection[str] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    plan: str | None = None
    child: ChildChoice | None = None
    copy_workspace: bool = False
    title: str | None = None
    reason: str = ""
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkResult:
    """``created`` False: the wish was carried out before. ``queued``: it waits in line for a slot of its key."""

    run_id: int
    created: bool
    revision: int
    queued: bool = False
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPreview:
    """What a wish comes to, without carrying it out. ``kept`` and ``left_out`` are visits of the origin; ``repeated``
    ran at the cut and run again, ``doubtful`` ran and have to be reconciled, ``asked_anew`` are open questions."""

    run_id: int
    revision: int
    visit: int | None
    version: int | None
    edits: Mapping[str, Any]
    children: list[int]
    kept: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    repeated: list[str]
    doubtful: list[str]
    asked_anew: list[str]
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """A wish that can be carried out, as far as it can be known before."""

    cut: Cut
    row: PlanRow
    plan: Plan
    is_other_plan: bool
    edits: Edits
    children: list[Run]


def preview(wish: ForkWish) -> ForkPreview:
    """What the fork would keep and do anew. Nothing is written. Raises what ``fork`` raises before it writes."""
    checked = _check(wish)
    cut = checked.cut
    return ForkPreview(
        run_id=wish.run_id,
        revision=cut.revision,
        visit=cut.visit,
        version=checked.row.version,
        edits=checked.edits.record,
        children=[child.pk for child in checked.children],
        kept=forking_cut.kept(cut),
        left_out=forking_cut.left_out(cut),
        repeated=_named(forking_cut.repeated(cut)),
        doubtful=_named(forking_cut.doubtful(cut)),
        asked_anew=_named(forking_cut.asked_anew(cut)),
        warnings=checked.edits.warnings,
    )


def _named(visits: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"v{visit['number']} {forking_cut.path_of(visit)}" for visit in visits]


def fork(wish: ForkWish) -> ForkResult:
    """Fork a run; its origin is not changed.

    Raises ``run.not_found``, ``access.denied``, ``fork.ambiguous``, ``fork.ended``, ``history.no_such_revision``,
    ``fork.plan_mismatch``, ``fork.invalid_edit``, ``params.invalid``, ``attempt.invalid_result``, ``fork.child_open``,
    ``fork.workspace``, and what the ledger refuses: ``lease.held``, ``fork.conflict``, ``run.concurrency_full``.
    """
    require(wish.actor, "fork_run", run=wish.run_id)
    _check_texts(wish)
    request_id = wish.request_id or uuid.uuid4().hex
    asked = _asked(wish)
    existing = ledger.existing_fork(wish.run_id, request_id, asked)
    if existing is not None:
        give_way(existing, sender=wish.actor.recorded)  # whoever asked for it first may have died before
        run = Run.objects.only("status", "concurrency_max", "fork_revision").get(pk=existing)
        queued = run.status == RunStatus.QUEUED and bool(run.concurrency_max) and not holds_slot(existing)
        return ForkResult(run_id=existing, created=False, revision=run.fork_revision, queued=queued)
    checked = _check(wish)
    copy = _staged_workspace(wish)
    try:
        forked = ledger.fork(_for_ledger(wish, checked, request_id, asked, is_copied=copy is not None))
        if copy is not None and forked.created:
            _place_workspace(forked.run_id, copy, wish.actor)
    finally:
        if copy is not None:
            _workspaces().discard(copy)
    if forked.queued:
        give_way(forked.run_id, sender=wish.actor.recorded)
    return ForkResult(
        run_id=forked.run_id,
        created=forked.created,
        revision=checked.cut.revision,
        queued=forked.queued,
        warnings=checked.edits.warnings,
    )


def _check(wish: ForkWish) -> _Checked:
    run = Run.objects.select_related("plan__workflow__current", "workflow").filter(pk=wish.run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=wish.run_id)
    cut = find_cut(run, begin_with=wish.begin_with, at=wish.at)
    row = chosen_plan(cut, wish.plan)
    plan, is_other_plan = read_plan(row), row.hash != run.plan.hash
    if is_other_plan:
        refuse_unless_ready(plan)
    if is_other_plan:
        refuse_unless_fits(cut, row, plan, _with_given(cut, wish.variables))
    edits = checked_edits(
        cut,
        plan,
        params=wish.params,
        from_text=wish.from_text,
        variables=wish.variables,
        outputs=wish.outputs,
        is_other_plan=is_other_plan,
    )
    children = awaited_children(run.pk, cut.revision)
    if children and wish.child is None:
        named = ", ".join(f"run {child.pk} ({child.workflow.name}, {child.status})" for child in children)
        raise Refusal("fork.child_open", run=run.pk, revision=cut.revision, children=named)
    return _Checked(cut=cut, row=row, plan=plan, is_other_plan=is_other_plan, edits=edits, children=children)


def _with_given(cut: Cut, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The variables at the cut, with those of the run itself that are given and may be new in another version."""
    values = {path: dict(own) for path, own in cut.variables.items()}
    values.setdefault("", {}).update((name.removeprefix("vars."), value) for name, value in given.items())
    return values


def _check_texts(wish: ForkWish) -> None:
    for what, text, limit in (("title", wish.title or "", MOST_TITLE), ("request id", wish.request_id or "", MOST_KEY)):
        if len(text) > limit:
            raise Refusal("input.invalid", reason=f"The {what} has {len(text)} characters; the limit is {limit}.")
        if not text.isprintable():
            raise Refusal("input.invalid", reason=f"The {what} contains characters that cannot be shown.")
    if wish.request_id == "":
        raise Refusal("input.invalid", reason="The request id is empty.")


def _asked(wish: ForkWish) -> str:
    """A digest of the request as it was made: the point as it was named, not where it was found."""
    request = {
        "begin_with": wish.begin_with,
        "at": wish.at,
        "params": dict(wish.params),
        "variables": dict(wish.variables),
        "outputs": dict(wish.outputs),
        "plan": wish.plan,
        "child": wish.child,
        "copy_workspace": wish.copy_workspace,
        "title": wish.title,
    }
    try:
        text = canonical(request)
    except NotStorable as error:
        raise Refusal("fork.invalid_edit", reason=error.message) from None
    return sha256(text.encode()).hexdigest()


def _for_ledger(wish: ForkWish, checked: _Checked, request_id: str, asked: str, *, is_copied: bool) -> ledger.Fork:
    cut, edits, run = checked.cut, checked.edits, checked.cut.run
    now = timezone.now()
    record = {
        "cut": {"revision": cut.revision, "visit": cut.visit},
        "edits": edits.record,
        "plan": {"from": run.plan.version, "to": checked.row.version} if checked.is_other_plan else None,
        "child": wish.child if checked.children else None,
        "workspace": "copied" if is_copied else "empty",
        "reason": wish.reason[:2000],
        "by": wish.actor.recorded,
    }
    held = {"by": wish.actor.recorded, "since": now.isoformat(), "reason": _COPYING} if is_copied else None
    return ledger.Fork(
        origin=run.pk,
        revision=cut.revision,
        visit=cut.visit,
        request_id=request_id,
        asked=asked,
        record=record,
        actor=wish.actor.recorded,
        started_by=wish.actor.name,
        commit_id=uuid.uuid4().hex,
        now=now,
        plan_id=checked.row.pk,
        engine_version=conf().engine_version if checked.is_other_plan else run.engine_version,
        title=run.title if wish.title is None else wish.title,
        reason=wish.reason,
        params=edits.params,
        frozen=_frozen(checked.plan, wish.actor) if checked.is_other_plan else None,
        variables=edits.variables,
        outputs=edits.outputs,
        retries=tallies_of(cut, checked.plan),
        child=wish.child or "",
        concurrency=_concurrency(checked, wish.actor),
        held=compact(held) if held else "",
    )


def _frozen(plan: Plan, actor: Actor) -> dict[str, Any]:
    """What is frozen beside another version, as at a start."""
    below = definitions_below(plan, viewer=actor.user)
    plans = [plan, *(definition.plan for definition in below.values())]
    return {"functions": frozen_functions(plans), "children": frozen_children(below)}


def _concurrency(checked: _Checked, actor: Actor) -> Concurrency | None:
    """The evaluated concurrency of the fork. Raises ``input.invalid`` when its key cannot be computed."""
    wanted = checked.plan.concurrency
    if wanted is None or checked.cut.run.parent_run_id is not None:
        return None  # child runs take no slot, and neither do forks of them
    names = {
        "params": for_expressions(checked.plan.params, checked.edits.values),
        "run": {"workflow": checked.plan.name, "started_by": actor.name},
    }
    try:
        key = text_of(wanted.key.evaluate(names))
    except (BadExpression, ValueError) as error:
        raise Refusal("input.invalid", reason=f"The concurrency key cannot be computed: {error}") from None
    return Concurrency(key=key, max=wanted.max, when_full=wanted.when_full)


# ---- the workspace --------------------------------------------------------------------------------------------------

_COPYING = "The workspace of its origin is being copied."


def _workspaces() -> Workspaces:
    return Workspaces(conf().workspace_root)


def _staged_workspace(wish: ForkWish) -> Path | None:
    if not wish.copy_workspace:
        return None
    try:
        return _workspaces().staged_copy(wish.run_id, uuid.uuid4().hex)
    except WorkspaceRefused as error:
        raise Refusal("fork.workspace", run=wish.run_id, reason=str(error)) from None


def _place_workspace(run_id: int, copy: Path, actor: Actor) -> None:
    """Give the fork its workspace, then let it go: it is held until then, so it never works in an empty one."""
    try:
        _workspaces().place(copy, run_id)
    except WorkspaceRefused as error:
        raise Refusal("fork.workspace", run=run_id, reason=f"{error}. The fork is held.") from None
    send(
        run_id=run_id,
        kind=ControlKind.RESUME,
        payload={"reason": "The workspace is there."},
        request_id="workspace",
        sender=actor.recorded,
        now=timezone.now(),
    )
