"""Who is told of a fact: people who can do something about it and want to hear of it (promises NOTE).

* a question: who may answer it and has not;
* a reminder: the same, as it is then;
* a blocked or failed run: operators, and whoever started it.

Nobody is told of a run that they may not see. Asked when a fact is found, and again for each message that is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q

from workflows.ledger.notifying import Fact
from workflows.models import Event, Interrupt, NotificationPreference, Run, Vote, Workflow, WorkflowAccess
from workflows.models.event import TOLD_TYPES
from workflows.operations.answering import named
from workflows.statuses import About, InterruptStatus, RunStatus

ASKING = frozenset({"question_asked", "question_reminded"})
_BACKEND = "django.contrib.auth.backends.ModelBackend"
_APP = "workflows"
#: What makes an operator.
OPERATE = "reopen_run"
#: People that are told of one fact at most.
MOST_PEOPLE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What one person wants to hear of by e-mail."""

    by_email: bool = True
    kinds: frozenset[str] = frozenset(TOLD_TYPES)
    about: str = About.EVERYTHING
    workflows: frozenset[str] = frozenset()

    def wants(self, *, kind: str, workflow: str, is_mine: bool) -> bool:
        if not self.by_email or kind not in self.kinds:
            return False
        if self.about == About.MINE:
            return is_mine
        return self.about == About.EVERYTHING or workflow in self.workflows


USUAL = Preference()


def preferences_of(people: Iterable[str]) -> dict[str, Preference]:
    """The preferences of those who have said what they want."""
    rows = NotificationPreference.objects.filter(person__in=list(people))
    return {
        row.person: Preference(
            by_email=row.by_email,
            kinds=frozenset(json.loads(row.kinds)),
            about=row.about,
            workflows=frozenset(json.loads(row.workflows)),
        )
        for row in rows
    }


def people_for(fact: Fact, run: Run, *, only: str | None = None) -> list[str]:
    """The names of everybody who gets an e-mail about a fact, now. ``only``: nobody but this person is looked at."""
    if stale(fact, run):
        return []
    question = question_of(fact)
    if fact.kind in ASKING:
        assert question is not None
        found = _who_may_answer(run, question)
    else:
        found = _who_may("view_run", run).filter(
            Q(username=run.started_by) | Q(pk__in=_with_permission(OPERATE).values("pk"))
        )
    if only is not None:
        found = found.filter(username=only)
    names = list(found.order_by("username").values_list("username", flat=True))
    wishes = preferences_of(names)
    chosen = [
        name
        for name in names
        if _may_by_name(name, question, run)
        and wishes.get(name, USUAL).wants(kind=fact.kind, workflow=fact.workflow, is_mine=is_mine(name, run, question))
    ]
    return chosen[:MOST_PEOPLE]


def is_receiver(name: str, fact: Fact, run: Run) -> bool:
    """Whether a person is still to be told, now: active, may see the run, can do something about it, wants to."""
    return name in people_for(fact, run, only=name)


def stale(fact: Fact, run: Run) -> str:
    """Why there is nothing to be done about a fact any more, in words; empty while there is."""
    if fact.kind in ASKING:
        question = question_of(fact)
        is_open = question is not None and question.status == InterruptStatus.OPEN
        return "" if is_open else "the question is not open any more"
    wanted = RunStatus.BLOCKED if fact.kind == "run_blocked" else RunStatus.FAILED
    if run.status != wanted:
        return f"the run is {run.status} by now"
    later = Event.objects.filter(run_id=run.pk, type=fact.kind, sequence__gt=fact.event)
    return "it happened again since" if later.exists() else ""


def question_of(fact: Fact) -> Interrupt | None:
    if fact.kind not in ASKING:
        return None
    found: Interrupt | None = Interrupt.objects.filter(run_id=fact.run, visit=fact.visit, attempt=fact.attempt).first()
    return found


def is_mine(name: str, run: Run, question: Interrupt | None) -> bool:
    """Whether a person started the run, or is asked by name."""
    if name == run.started_by:
        return True
    return question is not None and name in named(json.loads(question.audience).get("users", []), run)


def _who_may_answer(run: Run, question: Interrupt) -> Any:
    audience = json.loads(question.audience)
    people = _who_may("answer_interrupt", run)
    if audience:
        users = named(audience.get("users", []), run)
        people = people.filter(Q(username__in=users) | Q(pk__in=_members(audience.get("groups", [])).values("pk")))
    voted = Vote.objects.filter(
        run_id=run.pk, visit=question.visit, attempt=question.attempt, voter=OuterRef("username")
    )
    return people.filter(~Exists(voted))


def _may_by_name(name: str, question: Interrupt | None, run: Run) -> bool:
    return question is None or name not in named(json.loads(question.not_by), run)


def _who_may(permission: str, run: Run) -> Any:
    """Active people with an address who have a permission, may look at runs, and see the workflow of this one."""
    people = _with_permission(permission).exclude(email="")
    people = people.filter(pk__in=_with_permission("view_run").values("pk"))
    groups = WorkflowAccess.objects.filter(workflow_id=run.workflow_id).values_list("group_id", flat=True)
    if Workflow.objects.filter(pk=run.workflow_id, access__isnull=False).exists():
        inside = get_user_model()._default_manager.filter(groups__in=list(groups)).values("pk")
        people = people.filter(Q(is_superuser=True) | Q(pk__in=inside))
    return people


def _with_permission(permission: str) -> Any:
    manager: Any = get_user_model()._default_manager
    return manager.with_perm(f"{_APP}.{permission}", is_active=True, include_superusers=True, backend=_BACKEND)


def _members(groups: list[str]) -> Any:
    return get_user_model()._default_manager.filter(groups__name__in=groups)
