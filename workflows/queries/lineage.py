"""Where a run comes from, and what was forked from it (promises FORK 5, 8; REV.4)."""

from __future__ import annotations

import json
from typing import Any

from workflows.models import Run

#: Forks of a run that are named.
MOST_FORKS = 100


def lineage_of(run: Run) -> dict[str, Any]:
    """``fork_of``: origin, cut and what was edited, None for a run that was started; ``forks``: those of this run, the
    oldest first. Two queries at most. An origin that is gone is *pruned*; a fork needs nothing of it."""
    forks = Run.objects.filter(fork_of=run.pk).order_by("pk")
    return {
        "fork_of": None if run.fork_of_id is None else _origin(run),
        "forks": [
            {"run": number, "revision": revision, "status": status}
            for number, revision, status in forks.values_list("pk", "fork_revision", "status")[:MOST_FORKS]
        ],
    }


def _origin(run: Run) -> dict[str, Any]:
    request = json.loads(run.fork_request) if run.fork_request else {}
    return {
        "run": run.fork_of_id,
        "revision": run.fork_revision,
        "visit": request.get("cut", {}).get("visit"),
        "pruned": not Run.objects.filter(pk=run.fork_of_id).exists(),
        "edits": request.get("edits", {}),
        "plan": request.get("plan"),
        "child": request.get("child"),
        "workspace": request.get("workspace", "empty"),
        "reason": request.get("reason") or None,
        "by": request.get("by"),
    }
