"""Where a run comes from and what was forked from it, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workflows.management.wording import one_line


def edit_lines(edits: Mapping[str, Any]) -> Iterator[str]:
    """What was edited, by name."""
    if edits.get("params"):
        yield f"  with other parameters: {', '.join(edits['params'])}"
    for scope, variables in edits.get("variables", {}).items():
        yield f"  with other variables{f' of {scope}' if scope else ''}: {', '.join(variables)}"
    if edits.get("outputs"):
        yield f"  with another output of {', '.join(edits['outputs'])}"


def lineage_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Where a run comes from and what was forked from it, for ``runs show``."""
    origin = document.get("fork_of")
    if origin is not None:
        before = f", before v{origin['visit']}" if origin["visit"] else ""
        gone = " (pruned)" if origin["pruned"] else ""
        reason = f": {one_line(origin['reason'], 200)}" if origin["reason"] else ""
        by = f" by {origin['by']}" if origin["by"] else ""
        yield f"  fork of run {origin['run']}{gone} at revision {origin['revision']}{before}{by}{reason}"
        yield from (f"  {line}" for line in edit_lines(origin["edits"]))
        if origin["plan"]:
            yield f"    follows version {origin['plan']['to']} instead of {origin['plan']['from']}"
        if origin["workspace"] == "copied":
            yield "    began with a copy of the workspace"
    for one in document.get("forks", ()):
        yield f"  run {one['run']} ({one['status']}) was forked from it at revision {one['revision']}"
