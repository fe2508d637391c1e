"""Workflows as the pages show them: the list with its latest runs, the versions of one, who may see it."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from workflows.models import Plan, Run, Workflow, WorkflowAccess
from workflows.statuses import LIVE_STATUSES, RunStatus

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Runs in the strip of a workflow, the newest at its end.
STRIP = 20
#: Workflows of one page of the list.
PAGE = 50
_KEPT = 2_000
_MOST_SUMMARY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a workflow says of itself in its file. ``summary`` is the first paragraph of its description."""

    owner: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""
    has_schedule: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A run in a strip. ``seconds`` None: it has not begun. ``height`` is 6 to 22, by the time that it took."""

    run: int
    status: str
    title: str
    at: datetime
    seconds: float | None
    height: int = 22

    @property
    def is_live(self) -> bool:
        return self.status in LIVE_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    name: str
    title: str
    version: int
    published_at: datetime
    published_by: str
    about: About
    bars: tuple[Bar, ...] = ()

    @property
    def last(self) -> Bar | None:
        """The newest run."""
        return self.bars[-1] if self.bars else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowPage:
    """``tags`` are all that occur, ``after`` is the name with which the next page begins behind; "" at the end."""

    rows: tuple[WorkflowRow, ...]
    tags: tuple[str, ...]
    total: int
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    version: int
    hash: str
    published_at: datetime
    published_by: str
    is_current: bool = False


@dataclass(slots=True)
class _About:
    """What was read of plans, by hash; a plan never changes."""

    kept: OrderedDict[str, About] = field(default_factory=OrderedDict)

    def of(self, plans: Mapping[int, str]) -> dict[int, About]:
        """By the id of the plan; ``plans`` maps ids to hashes. One query for those that are not known yet."""
        missing = [pk for pk, hash_ in plans.items() if hash_ not in self.kept]
        read = {
            plans[pk]: _read_about(document)
            for pk, document in Plan.objects.filter(pk__in=missing).values_list("pk", "document")
        }
        found = {pk: read.get(hash_) or self.kept.get(hash_) or About() for pk, hash_ in plans.items()}
        self.kept.update(read)
        while len(self.kept) > _KEPT:
            self.kept.popitem(last=False)
        return found


_abouts = _About()


def _read_about(text: str) -> About:
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError:  # a corrupt plan is told where it is run
        return About()
    return about_document(document)


def about_document(document: Mapping[str, Any]) -> About:
    """What a canonical document says of itself."""
    return About(
        owner=str(document.get("owner") or ""),
        tags=tuple(str(tag) for tag in document.get("tags") or ()),
        summary=summary_of(str(document.get("description") or "")),
        has_schedule=bool(document.get("schedule")),
    )


def summary_of(description: str) -> str:
    """The first paragraph of a description, as one line without marks."""
    first = " ".join(description.strip().split("\n\n", 1)[0].split()).replace("**", "").replace("`", "")
    return first if len(first) <= _MOST_SUMMARY else first[: _MOST_SUMMARY - 1].rstrip() + "…"


def workflow_page(
    user: AbstractUser | AnonymousUser, *, text: str = "", tag: str = "", after: str = "", limit: int = PAGE
) -> WorkflowPage:
    """The published workflows that a user may see, by name. At most four queries, whatever their number.

    ``text`` is looked for in name and title, whatever its case.
    """
    rows = list(_published(user).values(*_LISTED))
    abouts = _abouts.of({row["current"]: row["current__hash"] for row in rows})
    tags = sorted({tag for about in abouts.values() for tag in about.tags})
    wanted = [row for row in rows if _fits(row, abouts[row["current"]], text, tag)]
    total = len(wanted)
    rest = [row for row in wanted if row["name"] > after]
    shown = rest[:limit]
    strips = run_strips([row["pk"] for row in shown])
    return WorkflowPage(
        rows=tuple(
            WorkflowRow(
                name=row["name"],
                title=row["title"],
                version=row["current__version"],
                published_at=row["current__created_at"],
                published_by=row["current__created_by"],
                about=abouts[row["current"]],
                bars=strips.get(row["pk"], ()),
            )
            for row in shown
        ),
        tags=tuple(tags),
        total=total,
        after=shown[-1]["name"] if len(rest) > limit else "",
    )


_LISTED = (
    "pk", "name", "title", "current", "current__hash", "current__version", "current__created_at",
    "current__created_by",
)  # fmt: skip


def _published(user: AbstractUser | AnonymousUser) -> QuerySet[Workflow]:
    rows: QuerySet[Workflow] = Workflow.objects.visible_to(user).filter(current__isnull=False).order_by("name")
    return rows


def _fits(row: Mapping[str, Any], about: About, text: str, tag: str) -> bool:
    words = text.casefold().split()
    searched = f"{row['name']} {row['title']} {about.owner}".casefold()
    return all(word in searched for word in words) and (not tag or tag in about.tags)


def run_strips(workflows: Iterable[int], *, length: int = STRIP) -> dict[int, tuple[Bar, ...]]:
    """The newest runs of each workflow, the newest last. Two queries that read no more than they show."""
    ids = list(workflows)
    newest = Run.objects.filter(workflow=OuterRef("pk")).order_by("-pk").values("pk")
    oldest_shown = Workflow.objects.filter(pk__in=ids).annotate(
        newest=Subquery(newest[:1]), first=Subquery(newest[length - 1 : length])
    )
    wanted = Q()
    for pk, last, first in oldest_shown.values_list("pk", "newest", "first"):
        if last is not None:
            wanted |= Q(workflow=pk, pk__gte=first or 0)
    if not wanted:
        return {}
    found: dict[int, list[Run]] = defaultdict(list)
    columns = ("status", "title", "created_at", "started_at", "ended_at", "workflow_id")
    # not ordered by the database: it would walk through all runs in their order instead of using an index for each
    for run in sorted(Run.objects.filter(wanted).order_by().only(*columns), key=lambda run: int(run.pk)):
        found[run.workflow_id].append(run)
    return {pk: _bars(runs[-length:]) for pk, runs in found.items()}


def _bars(runs: list[Run]) -> tuple[Bar, ...]:
    lengths = [(run.ended_at - run.started_at).total_seconds() for run in runs if run.ended_at and run.started_at]
    longest = max(lengths, default=0.0) or 1.0
    bars = []
    for run in runs:
        seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
        bars.append(
            Bar(
                run=run.pk,
                status=run.status,
                title=run.title,
                at=run.created_at,
                seconds=seconds,
                height=22 if seconds is None else 6 + round(16 * (seconds / longest) ** 0.5),
            )
        )
    return tuple(bars)


# ---- one workflow ----------------------------------------------------------------------------------------------------


def versions_of(workflow: Workflow, *, limit: int | None = None) -> list[Version]:
    """The published versions, the newest first. One query."""
    rows = Plan.objects.filter(workflow=workflow, version__isnull=False).order_by("-version")
    return [
        Version(
            version=row["version"],
            hash=row["hash"],
            published_at=row["created_at"],
            published_by=row["created_by"],
            is_current=row["pk"] == workflow.current_id,
        )
        for row in rows.values("pk", "version", "hash", "created_at", "created_by")[:limit]
    ]


def groups_that_see(workflow: Workflow) -> list[str]:
    """Names of the groups that alone may see a workflow; none: everyone who may look at runs."""
    return list(
        WorkflowAccess.objects.filter(workflow=workflow).order_by("group__name").values_list("group__name", flat=True)
    )


def names_in_use(user: AbstractUser | AnonymousUser) -> frozenset[str]:
    """Names of all published workflows, and not only of those that a user sees: what is taken is taken."""
    return frozenset(Workflow.objects.filter(current__isnull=False).values_list("name", flat=True))


def live_count(workflow: Workflow, *, most: int = 1000) -> int:
    """How many runs of a workflow have not ended, counted up to ``most``."""
    return int(Run.objects.filter(workflow=workflow, status__in=LIVE_STATUSES).order_by()[:most].count())


def failed_lately(bars: Iterable[Bar]) -> int:
    return sum(bar.status == RunStatus.FAILED for bar in bars)
