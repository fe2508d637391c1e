"""Where a fork cuts: the revision that a visit, a path or a number names, and what a run was at it (FORK.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.plan import Plan
from workflows.engine.paths import visit_path
from workflows.engine.retries import next_attempt
from workflows.errors import Refusal
from workflows.jsonvalue import decode
from workflows.ledger.past import Past, Row
from workflows.models import RowVersion, Run, Visit
from workflows.statuses import FINAL_STATUSES, Access, AttemptStatus, RunStatus, ScopePhase, VisitStatus

_NUMBER = re.compile(r"v[0-9]{1,9}", re.ASCII)
_PATH = re.compile(r"(?P<path>.*?)(#(?P<round>[0-9]{1,9}))?", re.ASCII | re.DOTALL)
#: Visits that a refusal lists.
MOST_LISTED = 20
_VISIT = (
    "number", "scope", "step", "round", "kind", "access", "status", "outcome", "error", "output_digest",
    "revision_created", "revision_settled",
)  # fmt: skip
_ATTEMPT = ("status", "error", "dispatch_id", "authorization")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A run as it was at ``revision``. ``visit`` is the one the fork begins with, if it was named.

    ``scopes`` are those that had not ended, by path, with their ``variables``; ``ended`` are the paths of the others.
    """

    run: Run
    revision: int
    visit: int | None
    visits: Mapping[int, Row] = field(repr=False)
    attempts: Mapping[int, list[Row]] = field(repr=False)
    scopes: Mapping[str, Row] = field(repr=False)
    ended: frozenset[str] = field(repr=False)
    variables: Mapping[str, dict[str, Any]] = field(repr=False)

    @property
    def open_visits(self) -> list[Row]:
        return [visit for visit in self.visits.values() if visit["status"] == VisitStatus.OPEN]


def path_of(visit: Mapping[str, Any]) -> str:
    """The path of a visit's row, as it is shown."""
    return visit_path(visit["scope"], visit["step"], visit["round"] or 1)


def find_cut(run: Run, *, begin_with: str | None, at: int | None) -> Cut:
    """The cut that is meant: before the visit ``begin_with`` (``v12`` or a path), or at a revision.

    Without either: before the failed visit of a failed run, before the end of an abandoned one. Raises
    ``fork.ambiguous``, ``history.no_such_revision``, ``fork.ended``.
    """
    if begin_with is not None and at is not None:
        raise Refusal("input.invalid", reason="A fork begins with a visit or at a revision, not with both.")
    visit: int | None = None
    if at is None:
        at, visit = _usual(run) if begin_with is None else _before(find_visit(run, begin_with))
    if not 1 <= at <= run.revision:
        raise Refusal("history.no_such_revision", run=run.pk, revision=at, current=run.revision)
    return _read(run, at, visit)


def _read(run: Run, revision: int, visit: int | None) -> Cut:
    past = Past(run.pk, revision)
    scopes = past.rows("scope")
    status = past.state["status"]
    if status in FINAL_STATUSES or scopes[""]["phase"] == ScopePhase.ENDED:
        raise Refusal("fork.ended", run=run.pk, revision=revision, status=status)
    visits = {row["number"]: row for row in past.visits(_VISIT)}
    attempts: dict[int, list[Row]] = {number: [] for number in visits}
    for attempt in past.attempts(_ATTEMPT, {number: row["kind"] for number, row in visits.items()}):
        attempts[attempt["visit"]].append(attempt)
    live = {path: row for path, row in scopes.items() if row["phase"] != ScopePhase.ENDED}
    variables = past.rows("scopevars")
    return Cut(
        run=run,
        revision=revision,
        visit=visit,
        visits=visits,
        attempts=attempts,
        scopes=live,
        ended=frozenset(set(scopes) - set(live)),
        variables={path: decode(variables[path]["values"]) for path in live if path in variables},
    )


# ---- what a word names ----------------------------------------------------------------------------------------------


def find_visit(run: Run, word: str) -> Visit:
    """The one visit that a word names: ``v12``, a path, or a step that was visited once. Raises ``fork.ambiguous``."""
    found = list(Visit.objects.filter(run=run, number=int(word[1:]))) if _NUMBER.fullmatch(word) else []
    found = found or _visits_at(run, word)
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(f'"{word}" names {len(found)} visits of run {run.pk}.', found)
    raise _ambiguous(f'Run {run.pk} has no visit "{word[:100]}".', _everything(run))


def _everything(run: Run) -> list[Visit]:
    return list(Visit.objects.filter(run=run).order_by("number")[: MOST_LISTED + 1])


def _visits_at(run: Run, word: str) -> list[Visit]:
    """The visits of a path. A path without a round names every round, a step alone the step in any scope."""
    match = _PATH.fullmatch(word.strip("/"))
    assert match is not None
    scope, _, step = match["path"].rpartition("/")
    visits = Visit.objects.filter(run=run, step=step, round__isnull=False).order_by("number")
    if match["round"]:
        visits = visits.filter(round=int(match["round"]))
    here = list(visits.filter(scope=scope))
    return here if here or scope else list(visits)


def _before(visit: Visit) -> tuple[int, int]:
    return visit.revision_before, visit.number


def _usual(run: Run) -> tuple[int, int | None]:
    """Where a fork cuts when nobody says it."""
    if run.status == RunStatus.FAILED:
        number = json.loads(run.error).get("visit") if run.error else None
        failed = Visit.objects.filter(run=run, number=number).first()
        if failed is not None:
            return _before(failed)
    if run.status == RunStatus.ABANDONED:
        return _before_end(run), None
    raise _ambiguous(f"Run {run.pk} is {run.status}: say where its fork begins.", _everything(run))


def _before_end(run: Run) -> int:
    versions = RowVersion.objects.filter(run=run, table="run").order_by("-revision", "-pk")
    for revision, text in versions.values_list("revision", "row"):
        if json.loads(text).get("status") in FINAL_STATUSES:
            return int(revision) - 1
    return int(run.revision)


def _ambiguous(reason: str, visits: list[Visit]) -> Refusal:
    listed = [{"visit": visit.number, "path": _shown(visit)} for visit in visits[:MOST_LISTED]]
    told = ", ".join(f"v{one['visit']} ({one['path']})" for one in listed)
    more = ", …" if len(visits) > MOST_LISTED else ""
    advice = f"Name one with `--from`: {told}{more}; or a revision with `--at`." if told else "It has made no visit."
    return Refusal("fork.ambiguous", reason=reason, advice=advice, visits=listed)


def _shown(visit: Visit) -> str:
    return visit_path(visit.scope, visit.step, visit.round or 1)


# ---- what a fork goes on with ---------------------------------------------------------------------------------------


def tallies_of(cut: Cut, plan: Plan) -> dict[int, str]:
    """The retries that the open visits had used up at the cut, by the policies of the plan the fork will follow."""
    found = {}
    for visit in cut.open_visits:
        counts = ""
        for attempt in cut.attempts[visit["number"]]:
            code = _code(attempt)
            decision = code and next_attempt(
                plan.steps[visit["step"]].retry, code=code, access=visit["access"], counts=counts, seed=""
            )
            counts = decision.counts if decision else counts
        if counts:
            found[visit["number"]] = counts
    return found


def _code(attempt: Row) -> str:
    """What an attempt failed with, as far as a policy may count it."""
    if attempt["status"] == AttemptStatus.INTERRUPTED:
        return "crashed"
    if attempt["status"] != AttemptStatus.FAILED or not attempt["error"]:
        return ""
    return str(json.loads(attempt["error"])["code"])


def doubtful(cut: Cut) -> list[Row]:
    """The writes that ran at the cut: whether they happened is for a person to say, in the fork."""
    running = [visit for visit in cut.open_visits if visit["access"] == Access.WRITE and _runs(cut, visit)]
    return running


def repeated(cut: Cut) -> list[Row]:
    """The reads that ran at the cut and are dispatched anew."""
    return [visit for visit in cut.open_visits if visit["access"] != Access.WRITE and _runs(cut, visit)]


def asked_anew(cut: Cut) -> list[Row]:
    """The questions that were open at the cut."""
    kinds = ("approval", "question")
    return [visit for visit in cut.open_visits if visit["kind"] in kinds]


def _runs(cut: Cut, visit: Row) -> bool:
    return any(attempt["status"] == AttemptStatus.RUNNING for attempt in cut.attempts[visit["number"]])


def left_out(cut: Cut) -> list[dict[str, Any]]:
    """The visits of the origin that the fork does not have: what runs anew, if the flow takes the same way."""
    later = Visit.objects.filter(run=cut.run, revision_created__gt=cut.revision).order_by("number")
    return _numbered(later.values("number", "scope", "step", "round", "outcome"))


def kept(cut: Cut) -> list[dict[str, Any]]:
    """The visits that the fork inherits."""
    return _numbered(cut.visits.values())


def _numbered(visits: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"visit": one["number"], "path": path_of(one), "outcome": one["outcome"] or None} for one in visits]
