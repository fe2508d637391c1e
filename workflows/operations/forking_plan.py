"""Whether another version of a workflow fits what a run has done up to a cut (promise FORK.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workflows.definitions.compiler import compiled
from workflows.definitions.plan import Body, Plan
from workflows.errors import Refusal
from workflows.ledger.past import Row
from workflows.models import Plan as PlanRow
from workflows.operations.forking_cut import Cut
from workflows.statuses import VisitStatus

_SECTIONS = {"main": "the main steps", "on_failure": "`on_failure`", "finally": "`finally`"}


def chosen_plan(cut: Cut, word: str | None) -> PlanRow:
    """The row of the version that a fork follows: ``current``, a number, or by default that of its origin.

    Raises ``input.invalid`` for a version that does not exist.
    """
    own: PlanRow = cut.run.plan
    if word is None:
        return own
    if word == "current":
        current: PlanRow | None = own.workflow.current
        if current is None:
            raise Refusal("input.invalid", reason=f"{own.workflow.name} has no published version.")
        return current
    found: PlanRow | None = None
    if word.isascii() and word.isdigit() and len(word) < 10:
        found = PlanRow.objects.select_related("workflow").filter(workflow=own.workflow, version=int(word)).first()
    if found is None:
        raise Refusal("input.invalid", reason=f'{own.workflow.name} has no version "{word}".')
    return found


def refuse_unless_fits(cut: Cut, row: PlanRow, plan: Plan, variables: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a version in which something that was done, or is to be done next, is something else.

    ``variables`` are those of the live scopes with the edits of the fork. Raises ``fork.plan_mismatch``, which names
    the first step that does not fit and what differs.
    """
    before = compiled(cut.run.plan.hash, cut.run.plan.document)
    for step, difference in differences(cut, before, plan, variables):
        version = row.version or row.hash[:12]
        raise Refusal("fork.plan_mismatch", run=cut.run.pk, version=version, step=f'"{step}"', difference=difference)


def differences(
    cut: Cut, before: Plan, after: Plan, variables: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """(step, what differs) in the order of the visits, then of the scopes that go on."""
    seen: set[tuple[str, bool]] = set()
    for visit in cut.visits.values():
        is_open = visit["status"] == VisitStatus.OPEN
        if (visit["step"], is_open) not in seen:
            seen.add((visit["step"], is_open))
            yield from _of_visit(visit, before, after)
    for path, scope in cut.scopes.items():
        yield from _of_scope(cut, scope, before, after, variables.get(path, {}))


def _of_visit(visit: Row, before: Plan, after: Plan) -> Iterator[tuple[str, str]]:
    name = visit["step"]
    if name not in after.steps:
        yield name, "was visited and is not in it"
        return
    old, new = before.steps[name], after.steps[name]
    if new.kind != old.kind:
        yield name, f"is of kind {new.kind}; it was of kind {old.kind} when it was visited"
    elif _place(new.body) != _place(old.body):
        yield name, f"stands in {_place(new.body)}; it stood in {_place(old.body)} when it was visited"
    elif visit["status"] == VisitStatus.OPEN and list(new.bodies) != list(old.bodies):
        yield name, f"has the branches {', '.join(new.bodies)}; it runs {', '.join(old.bodies)}"
    elif visit["status"] == VisitStatus.OPEN and [_place(one) for one in new.bodies.values()] != [
        _place(one) for one in old.bodies.values()
    ]:
        yield name, "uses another block than the one that runs"


def _of_scope(
    cut: Cut, scope: Row, before: Plan, after: Plan, variables: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    name = scope["step"]
    if name and name not in after.steps:
        yield name, "comes next and is not in it"
        return
    if name and _place(after.steps[name].body) != _place(before.steps[name].body):
        yield name, f"comes next and stands in {_place(after.steps[name].body)} now"
        return
    body = _body_of(cut, scope, after)
    missing = [variable for variable in (body.vars if body is not None else ()) if variable not in variables]
    if missing and (scope["path"] or cut.visits):
        place = name or (body.first if body is not None else "")
        yield place, f"needs the variable {missing[0]}, which has no value at the cut; give one with `--var`"


def _body_of(cut: Cut, scope: Row, plan: Plan) -> Body | None:
    if scope["parent_visit"] is None:
        return plan.section(scope["section"])
    owner = plan.steps.get(cut.visits[scope["parent_visit"]]["step"])
    if owner is None:
        return None
    return owner.bodies.get(scope["key"] if scope["kind"] == "branch" else "do")


def _place(body: Body) -> str:
    if body.kind == "section":
        return _SECTIONS.get(body.name, body.name)
    return f'{"block" if body.kind == "block" else "the body of"} "{body.owner}"' + (
        f" ({body.name})" if body.kind == "branch" else ""
    )
