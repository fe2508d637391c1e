"""What every page of a run has in common: its row, its head, why it does not move, and what this person may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from workflows.clock import moment
from workflows.definitions.compiler import compiled
from workflows.definitions.plan import Plan
from workflows.errors import Refusal
from workflows.pages.run_verbs import Verb, verbs_for
from workflows.queries.graph import graph_of
from workflows.queries.run_graph import graph_states
from workflows.queries.run_page import Head, head_of, now_of, run_for_page
from workflows.queries.timeline import Row, Timeline
from workflows.queries.timeline_rows import Wanted, children_of, opened_from, timeline_of
from workflows.queries.visit_page import find_visit
from workflows.queries.why import needs_somebody
from workflows.queries.why_facts import Because, Target
from workflows.queries.why_rows import why_run

TABS = (
    ("run", "Overview"),
    ("run_steps", "Steps"),
    ("run_events", "Events"),
    ("run_messages", "Messages"),
    ("run_state", "History"),
    ("run_audit", "Audit"),
)
#: What a poll repeats of the query of its page.
_KEPT = ("type", "visit", "step", "show", "items", "from", "after")
#: Who may see outputs and logs of steps that are marked as sensitive.
SEE_SENSITIVE = "workflows.view_sensitive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason with the address of what it is about, and the verb that this person may use on it."""

    because: Because
    href: str = ""
    verb: Verb | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the timeline with its addresses."""

    row: Row
    href: str = ""
    panel: str = ""
    fold: str = ""
    next: str = ""
    previous: str = ""
    children: tuple[tuple[int, str], ...] = ()


class RunView:
    """One run as one person asks for it. Reads what is needed, once. Raises ``run.not_found``."""

    def __init__(self, request: HttpRequest, number: int) -> None:
        self.request = request
        self.run = run_for_page(number, request.user)
        self.now_ms = now_of(self.run)

    @property
    def now(self) -> datetime:
        return moment(self.now_ms)

    @cached_property
    def head(self) -> Head:
        return head_of(self.run, self.request.user)

    @cached_property
    def reasons(self) -> list[Because]:
        return why_run(self.run, self.request.user, now_ms=self.now_ms)

    @cached_property
    def verbs(self) -> list[Verb]:
        return verbs_for(self.request.user, self.head, self.reasons)

    @cached_property
    def plan(self) -> Plan | None:
        """None: it is corrupt or from a newer version; the run can still be looked at (PLAN.2)."""
        try:
            return compiled(self.run.plan.hash, self.run.plan.document)
        except Refusal:
            return None

    def told_reasons(self) -> list[Reason]:
        by_name = {verb.name: verb for verb in self.verbs}
        return [
            Reason(because=because, href=address_of(because.target), verb=by_name.get(because.verb))
            for because in self.reasons
        ]

    @cached_property
    def wanted(self) -> Wanted:
        asked = self.request.GET
        scale = {"time": False, "work": True}.get(asked.get("scale", ""))
        return Wanted(
            opened=opened_from(asked.getlist("open")),
            closed=frozenset(opened_from(asked.getlist("close"))),
            before=number_in(self.request, "before"),
            without_pauses=scale,
        )

    def timeline(self) -> dict[str, Any]:
        found = timeline_of(self.run, self.wanted, now=self.now)
        self._timeline = found.timeline
        earlier = "" if found.earlier is None else self.page_address(before=found.earlier)
        later = self.page_address(before=None) if self.wanted.before is not None else ""
        is_broken = found.timeline.scale.is_broken
        return {
            "timeline": found.timeline,
            "lines": self._lines(found.timeline.rows),
            "earlier": earlier,
            "later": later,
            "other_scale": self.page_address(scale="time" if is_broken else "work"),
        }

    def graph(self) -> dict[str, Any]:
        """The picture of the plan with what the run did; called after the timeline, whose maps it counts."""
        if self.plan is None:
            return {"graph": None}
        rows: Iterable[Row] = self._timeline.rows
        states = graph_states(self.run, rows, lambda visit: reverse("pages:visit", args=[self.run.pk, visit]))
        return {"graph": graph_of(self.plan), "states": states}

    def page_address(self, **changes: Any) -> str:
        """The address of the overview with other choices than now."""
        return reverse("pages:run", args=[self.run.pk]) + self.choices(**changes)

    def choices(self, **changes: Any) -> str:
        """What is opened, closed and scaled, as the query of an address."""
        wanted = self.wanted
        scale = {True: "work", False: "time", None: ""}[wanted.without_pauses]
        values: dict[str, Any] = {
            "open": [f"{visit}:{first}" if first else str(visit) for visit, first in wanted.opened.items()],
            "close": sorted(wanted.closed),
            "before": wanted.before,
            "scale": scale,
        } | changes
        given = {name: value for name, value in values.items() if value not in (None, "", [])}
        return f"?{urlencode(given, doseq=True)}" if given else ""

    def hides_values_of(self, visit: int) -> bool:
        """Whether output and logs of a visit are kept from this person, since its step is marked as sensitive."""
        if self.plan is None or self.request.user.has_perm(SEE_SENSITIVE):
            return False
        step = self.plan.steps.get(find_visit(self.run.pk, visit).step)
        return step is not None and step.sensitive

    _timeline: Timeline

    def _lines(self, rows: Iterable[Row]) -> list[Line]:
        calls = [row.visit for row in rows if row.kind == "workflow" and row.visit is not None]
        children = children_of(self.run.pk, calls, self.request.user)
        lines = [self._line(row) for row in rows]
        return [replace(line, children=tuple(children.get(line.row.visit or 0, ()))) for line in lines]

    def _line(self, row: Row) -> Line:
        if row.visit is None:
            return Line(row=row)
        address = reverse("pages:visit", args=[self.run.pk, row.visit])
        panel = reverse("pages:run_part_visit", args=[self.run.pk, row.visit])
        if row.fold is None or not row.fold.counts.total:
            return Line(row=row, href=address, panel=panel)
        following, previous = row.fold.next, row.fold.previous
        return Line(
            row=row,
            href=address,
            panel=panel,
            fold=self._folded(row, not row.fold.is_open),
            next="" if following is None else self._opened_at(row.visit, following),
            previous="" if previous is None else self._opened_at(row.visit, previous),
        )

    def _folded(self, row: Row, is_open: bool) -> str:
        assert row.fold is not None
        assert row.visit is not None
        others = {visit: first for visit, first in self.wanted.opened.items() if visit != row.visit}
        closed = self.wanted.closed - {row.visit}
        if row.fold.is_large:
            others |= {row.visit: 0} if is_open else {}
        elif not is_open:
            closed |= {row.visit}
        return self.page_address(open=_opened(others), close=sorted(closed)) + f"#row-{row.key}"

    def _opened_at(self, visit: int, first: int) -> str:
        return self.page_address(open=_opened({**self.wanted.opened, visit: first})) + f"#row-v{visit}"


def context_of(view: RunView, tab: str) -> dict[str, Any]:
    """What the templates of all tabs need."""
    reasons = view.told_reasons()
    at_reasons = {reason.verb.name for reason in reasons if reason.verb is not None}
    return {
        "head": view.head,
        "reasons": reasons,
        "is_stuck": needs_somebody([reason.because for reason in reasons]),
        "verbs": [verb for verb in view.verbs if not verb.is_rare and verb.name not in at_reasons],
        "rare_verbs": [verb for verb in view.verbs if verb.is_rare],
        "tab": tab,
        "tabs": [(name, words, reverse(f"pages:{name}", args=[view.run.pk])) for name, words in TABS if _has(name)],
        "token": token_of(view),
        "poll": poll_address(view),
        "start_again": address("start", view.head.workflow, query=f"?from_run={view.run.pk}"),
        "compare": _compare(view.head),
        "plan_is_corrupt": view.plan is None,
    }


def token_of(view: RunView) -> str:
    """An ETag of what a page of this run shows to this person: it changes with every revision, with its driver, and
    while the run is live every few seconds, since bars grow and ages pass."""
    run, lease = view.run, getattr(view.run, "lease", None)
    parts = [run.revision, run.lease_epoch, run.status, view.request.user.pk]
    if not run.is_final:
        is_driven = lease is not None and lease.expires_ms > view.now_ms
        parts += [int(is_driven), view.now_ms // (5_000 if is_driven else 15_000)]
    return '"' + ".".join(str(part) for part in parts) + '"'


def poll_address(view: RunView) -> str:
    """Where a live page asks for what has changed; "" for a run that is over."""
    if view.run.is_final:
        return ""
    asked = view.request.GET
    kept = {name: asked.getlist(name) for name in _KEPT if asked.getlist(name)}
    return reverse("pages:run_part_live", args=[view.run.pk]) + view.choices(**kept)


def number_in(request: HttpRequest, name: str) -> int | None:
    """A number from the query; anything else counts as not given."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def address_of(target: Target | None) -> str:
    """The page of what a reason is about."""
    if target is None:
        return ""
    match target.kind:
        case "run":
            return address("run", target.run)
        case "question" | "reconcile" | "visit":
            return address(target.kind, target.run, target.visit)
    return ""


def address(name: str, *args: Any, query: str = "") -> str:
    """An address of these pages, "" where there is no such page."""
    try:
        return reverse(f"pages:{name}", args=args) + query
    except NoReverseMatch:
        return ""


def fork_address(run: int, query: str = "") -> str:
    """Where a fork of a run is asked for."""
    return address("fork", run, query=query)


def _has(name: str) -> bool:
    return bool(address(name, 1)) or bool(address(name))


def _compare(head: Head) -> str:
    if head.newer_version is None:
        return ""
    return address("workflow_compare", head.workflow, query=f"?from={head.version}&to={head.newer_version}")


def _opened(opened: dict[int, int]) -> list[str]:
    return [f"{visit}:{first}" if first else str(visit) for visit, first in opened.items()]
