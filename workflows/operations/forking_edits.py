"""What is edited when a run is forked: parameters, variables and outputs, checked like originals (FORK.5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.parameters import check_parameters
from workflows.definitions.plan import Plan
from workflows.definitions.suggestions import closest
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import NotStorable, Stored, check_storable, decode, store
from workflows.ledger.past import Row
from workflows.models import Payload
from workflows.operations.forking_cut import Cut, find_visit
from workflows.operations.reconciling import checked_output
from workflows.statuses import VisitStatus

#: ``n``, ``vars.n``, ``each[3].n``, ``each[3]/vars.n``.
_VARIABLE = re.compile(r"(?:(?P<scope>.+?)[/.])?(?:vars\.)?(?P<name>[a-z][a-z0-9_]*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Checked edits. ``params`` None: as they were. ``record`` is what the lineage shows: names, and the digests of
    the new values. ``warnings``: W601."""

    values: Mapping[str, Any] = field(repr=False)
    params: Stored | None = None
    variables: Mapping[str, Stored] = field(default_factory=dict)
    outputs: Mapping[int, Stored | None] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()


def checked_edits(
    cut: Cut,
    plan: Plan,
    *,
    params: Mapping[str, Any],
    from_text: Collection[str],
    variables: Mapping[str, Any],
    outputs: Mapping[str, Any],
    is_other_plan: bool,
) -> Edits:
    """Check everything that is edited. Raises ``params.invalid``, ``fork.invalid_edit``, ``attempt.invalid_result``,
    ``fork.ambiguous``."""
    stored = decode(Payload.objects.values_list("text", flat=True).get(digest=cut.run.params_digest))
    checked = check_parameters(plan.params, {**stored, **params}, from_text=from_text)
    if (params or is_other_plan) and checked.problems:
        raise Refusal("params.invalid", count=len(checked.problems), problems=checked.problems)
    new_params = store(checked.values) if params or is_other_plan else None
    if new_params is not None and new_params.digest == cut.run.params_digest:
        new_params = None
    changed, named = _variables(cut, plan, variables)
    given = _outputs(cut, plan, outputs)
    record: dict[str, Any] = {}
    if new_params is not None:
        record["params"] = {name: _digest(checked.values.get(name)) for name in _differing(stored, checked.values)}
    if named:
        record["variables"] = named
    if given:
        record["outputs"] = {f"v{number}": output.digest if output else None for number, output in given.items()}
    return Edits(
        values=checked.values if new_params is not None else stored,
        params=new_params,
        variables=changed,
        outputs=given,
        record=record,
        warnings=checked.warnings if params else (),
    )


def _differing(former: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*former, *values} if _digest(former.get(name)) != _digest(values.get(name)))


def _digest(value: Any) -> str | None:
    return None if value is None else store(value).digest


def _variables(cut: Cut, plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Stored], dict[str, dict[str, Any]]]:
    """The new variables of each scope that is edited, whole; and the digests of what was given."""
    if not given:
        return {}, {}
    values = {path: dict(own) for path, own in cut.variables.items()}
    named: dict[str, dict[str, Any]] = {}
    for word, value in given.items():
        path, name = _place(cut, word)
        _refuse_unstorable(word, value)
        if name not in values.get(path, {}) and not (path == "" and name in plan.main.vars and cut.visits):
            raise _unknown_variable(cut, word, path, name)
        values[path][name] = value
        named.setdefault(path, {})[name] = _digest(value)
    try:
        return {path: store(values[path]) for path in named}, named
    except NotStorable as error:
        raise Refusal("fork.invalid_edit", reason=f"The variables cannot be stored: {error.message}") from None


def _place(cut: Cut, word: str) -> tuple[str, str]:
    match = _VARIABLE.fullmatch(word)
    if match is None:
        raise Refusal("fork.invalid_edit", reason=f'"{word[:100]}" does not name a variable.', advice=_SPELLING)
    path = match["scope"] or ""
    if path in cut.ended:
        reason = f'The scope "{path}" had ended at revision {cut.revision}: its variables are not used any more.'
        raise Refusal("fork.invalid_edit", reason=reason)
    if path not in cut.scopes:
        live = ", ".join(one or "the run itself" for one in list(cut.scopes)[:10])
        reason = f'There is no scope "{path}" at revision {cut.revision}.'
        raise Refusal("fork.invalid_edit", reason=reason, advice=f"Scopes that had not ended: {live}.")
    return path, match["name"]


_SPELLING = "Write `--var NAME:=JSON`, and for the variable of an item `--var each[3].NAME:=JSON`."


def _unknown_variable(cut: Cut, word: str, path: str, name: str) -> Refusal:
    known = sorted(cut.variables.get(path, {}))
    if not known and path == "" and not cut.visits:
        reason = f"The run has not begun at revision {cut.revision}: its variables get their initial values later."
        return Refusal("fork.invalid_edit", reason=reason, advice="Fork at a later revision.")
    meant = closest(name, known)
    advice = f'Did you mean "{meant}"?' if meant else f"Variables there: {', '.join(known) or 'none'}."
    return Refusal("fork.invalid_edit", reason=f'There is no variable "{word}" at the cut.', advice=advice)


def _refuse_unstorable(word: str, value: Any) -> None:
    problems = check_storable(value, word)
    if problems:
        raise Refusal("fork.invalid_edit", reason=problems[0].message)


def _outputs(cut: Cut, plan: Plan, given: Mapping[str, Any]) -> dict[int, Stored | None]:
    outputs = {}
    for word, value in given.items():
        visit = _settled_visit(cut, word)
        step = plan.steps[visit["step"]]
        outputs[visit["number"]] = checked_output(step, visit["number"], visit["outcome"], value)
    return outputs


def _settled_visit(cut: Cut, word: str) -> Row:
    """The visit whose output is edited: settled at the cut, in a scope that goes on."""
    found = find_visit(cut.run, word)
    name = f"v{found.number}"
    visit = cut.visits.get(found.number)
    if visit is None or visit["status"] == VisitStatus.OPEN:
        state = "was not there" if visit is None else "was still open"
        reason = f"{name} {state} at revision {cut.revision}, so it has no output to edit."
        raise Refusal("fork.invalid_edit", reason=reason)
    if visit["status"] == VisitStatus.REFUSED:
        raise Refusal("fork.invalid_edit", reason=f"{name} was refused; it has no output.")
    if visit["scope"] in cut.ended:
        reason = f'The scope "{visit["scope"]}" of {name} had ended: nothing reads its output any more.'
        advice = "Edit the output of the step that contains it."
        raise Refusal("fork.invalid_edit", reason=reason, advice=advice)
    return visit
