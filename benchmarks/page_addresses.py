"""The addresses that are measured. ``root`` sees everything, from ``ann`` some workflows are hidden."""

from __future__ import annotations

from urllib.parse import quote

from django.contrib import admin
from django.urls import reverse

from benchmarks.page_data import Data
from workflows.models import Run

ROOT, ANN = "root", "ann"
#: Filters and orders of the run list, by what they are.
RUN_LISTS = {
    "all": "",
    "oldest first": "sort=oldest",
    "live": "status=live",
    "ended": "status=ended",
    "one status": "status=blocked",
    "one workflow": "workflow=procedure_1_succeeded",
    "workflow and status": "workflow=procedure_1_failed&status=failed",
    "started by": "by=ci",
    "a text": "text=one+77",
    "a text that is nowhere": "text=zzz",
    "an error": "error=step.failed",
    "an error that is nowhere": "error=zzz",
    "a key that is nowhere": "key=zzz",
    "waits for people": "waits_for=people",
    "stalled": "stalled=1",
    "created in a month": "created_from=2020-01-01&created_to=2020-02-01",
    "ended since": "ended_from=2020-01-01",
    "ended in a month": "ended_from=2020-01-01&ended_to=2020-02-01",
    "far down": "before=20000",
}


def addresses(data: Data) -> dict[str, tuple[str, str]]:
    """By the name of the page: the person and the path."""
    found: dict[str, tuple[str, str]] = {}
    for user in (ROOT, ANN):
        found |= {f"{name} ({user})": (user, path) for name, path in lists(user).items()}
    found |= {name: (ROOT, path) for name, path in (*runs(data), *one_workflow(), *tables())}
    return found


def lists(user: str) -> dict[str, str]:
    inbox, many = reverse("pages:inbox"), reverse("pages:run_list")
    found = {
        "home": reverse("pages:home"),
        "home, a piece": reverse("pages:home_part"),
        "inbox": inbox,
        "inbox, all": f"{inbox}?show=all",
        "workflows": reverse("pages:workflow_list"),
    }
    if user == ROOT:
        found["metrics"] = reverse("metrics")
    return found | {f"runs, {name}": f"{many}?{query}" for name, query in RUN_LISTS.items()}


def runs(data: Data) -> list[tuple[str, str]]:
    """Pages and pieces of the large runs, and of those that need people."""
    revision = Run.objects.get(pk=data.long).revision
    found = []
    for kind in ("long", "large", "eventful", "nested"):
        number = getattr(data, kind)
        for page in ("run", "run_part_live", "run_steps", "run_events", "run_state", "run_audit", "run_events_json"):
            found.append((f"{kind} run, {page}", reverse(f"pages:{page}", args=[number])))
        for page in ("visit", "run_part_visit"):
            found.append((f"{kind} run, {page}", reverse(f"pages:{page}", args=[number, 1])))
    found += [
        ("long run, opened in the middle", f"{reverse('pages:run', args=[data.long])}?open=1:800"),
        ("long run, at half its time", reverse("pages:run_state_at", args=[data.long, revision // 2])),
        ("eventful run, events further down", f"{reverse('pages:run_events', args=[data.eventful])}?after=10000"),
        ("long run, fork", f"{reverse('pages:fork', args=[data.long])}?revision={revision - 1}"),
        ("a question", reverse("pages:question", args=[data.paused, 1])),
        ("an interrupted write", reverse("pages:reconcile", args=[data.blocked, 1])),
        ("a failed run", reverse("pages:run", args=[data.failed])),
        ("bulk, before it is made", f"{reverse('pages:bulk_new')}?action=retry&scope=all&status=failed"),
        ("audit", reverse("pages:audit")),
        ("audit, of a person", f"{reverse('pages:audit')}?actor=person3"),
        ("audit, denied", f"{reverse('pages:audit')}?allowed=no"),
    ]
    return found


def one_workflow() -> list[tuple[str, str]]:
    name = "procedure_1_succeeded"
    pages = ("workflow", "start", "workflow_edit", "workflow_versions")
    return [(f"a workflow, {page}", reverse(f"pages:{page}", args=[name])) for page in pages]


def tables() -> list[tuple[str, str]]:
    """The lists of the admin, and a search in that of the runs."""
    found = [
        (
            f"admin, {model._meta.model_name}",
            reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"),
        )
        for model in admin.site._registry
        if model._meta.app_label == "workflows"
    ]
    path = reverse("admin:workflows_run_changelist")
    return [*found, ("admin, run, a search", f"{path}?q={quote('one 77')}"), ("admin, index", reverse("admin:index"))]
