"""What programs call: one of each operation, with what it is about and which permission it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.hand import Hand
from tests.support.kinds import bad
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player, expire, play
from workflows.api.api import ROUTERS, api
from workflows.api.description import operations_of

ASKS = workflow("  - { id: ask, kind: approval, ask: 'Really?', timeout: 1h }", name="asks")
WAITS = workflow("  - { id: ready, kind: wait, signal: go_on }\n  - { id: last, kind: shell, run: x }", name="waits")
BROKEN = workflow("  - { id: pay, kind: shell, run: make, access: write }", name="broken")
FILE = "format: 1\nname: asks\nsteps:\n  - { id: a, kind: end, status: succeeded }\n"

#: Who needs no permission, and who needs only one to look.
ANYBODY, RUNS, WORKFLOWS = "", "view_run", "view_workflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``about`` names the run or workflow of the world that stands in the path; ``needs`` is a permission."""

    method: str
    path: str
    needs: str
    about: str | None = None
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


def _action(verb: str, needs: str, about: str = "waits", *, status: int = 200, **body: Any) -> Call:
    return Call(method="POST", path=f"/runs/{{}}/{verb}", needs=needs, about=about, body=body, status=status)


#: By the name of the operation. What other nouns have is in their own tests.
CALLS: Mapping[str, Call] = {
    "live": Call(method="GET", path="/health/live", needs=ANYBODY),
    "ready": Call(method="GET", path="/health/ready", needs=ANYBODY),
    # ---- workflows
    "list_workflows": Call(method="GET", path="/workflows", needs=WORKFLOWS),
    "show_workflow": Call(method="GET", path="/workflows/{}", needs=WORKFLOWS, about="workflow"),
    "show_version": Call(method="GET", path="/workflows/{}/versions/1", needs=WORKFLOWS, about="workflow"),
    "validate_workflow": Call(method="POST", path="/workflows/validate", needs=WORKFLOWS, body={"source": FILE}),
    "publish_workflow": Call(
        method="POST", path="/workflows/publish", needs="publish_plan", body={"source": FILE}, status=201
    ),
    # ---- runs
    "list_runs": Call(method="GET", path="/runs", needs=RUNS),
    "start_run": Call(method="POST", path="/runs", needs="start_run", body={"workflow": "asks"}, status=201),
    "show_run": Call(method="GET", path="/runs/{}", needs=RUNS, about="waits"),
    "show_revision": Call(method="GET", path="/runs/{}/revisions/1", needs=RUNS, about="waits"),
    "list_events": Call(method="GET", path="/runs/{}/events", needs=RUNS, about="waits"),
    "export": _action("export", "export_run"),
    # ---- actions
    "cancel_run": _action("cancel", "cancel_run", reason="no need"),
    "pause_run": _action("pause", "hold_run"),
    "resume_run": _action("resume", "reopen_run", "failed"),
    "retry_run": _action("retry", "reopen_run", "failed"),
    "skip_step": _action("skip", "reopen_run", "failed", reason="not needed"),
    "abandon_run": _action("abandon", "abandon_run", reason="wrong run"),
    "signal_run": _action("signal", "start_run", name="go_on", payload={"n": 1}),
    "steer_run": _action("steer", "hold_run", text="be brief"),
    "reconcile_run": _action("reconcile", "reconcile_run", "broken", decision="did_not", reason="I looked"),
    "fork_run": _action("fork", "fork_run", status=201, at=1),
    "preview_fork": _action("fork/preview", "fork_run", at=1),
    # ---- questions
    "list_questions": Call(method="GET", path="/questions", needs=RUNS),
    "show_question": Call(method="GET", path="/questions/{}/1", needs=RUNS, about="asks"),
    "answer_question": Call(
        method="POST",
        path="/questions/{}/1/answer",
        needs="answer_interrupt",
        about="asks",
        body={"decision": "approved"},
    ),
}
#: Routers that other rooms of the tests try.
ELSEWHERE = frozenset({"external", "schedules", "workers", "webhooks", "notifications"})


def operations_here() -> dict[str, Any]:
    """The operations whose calls stand above, by name."""
    kept = [where for _, where in ROUTERS if where.split(".")[2] not in ELSEWHERE]
    modules = {where.rpartition(".")[0] for where in kept}
    found = [one for one in operations_of(api) if one.view_func.__module__ in modules]
    return {one.view_func.__name__: one for one in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    asks: int
    waits: int
    broken: int
    failed: int
    workflow: str = "asks"

    def path(self, call: Call) -> str:
        return call.path.format(getattr(self, call.about)) if call.about else call.path


MISSING = World(asks=777_771, waits=777_772, broken=777_773, failed=777_774, workflow="missing")


def make_world() -> World:
    store_plan(ASKS, private=False)
    asks, waits = publish_run(ASKS), publish_run(WAITS)
    play(asks)
    play(waits)
    broken = publish_run(BROKEN)
    Hand(broken).step()
    expire(broken)
    Hand(broken).step()
    return World(asks=asks, waits=waits, broken=broken, failed=failed_run())


def failed_run() -> int:
    player = Player(publish_run(workflow("  - { id: work, kind: shell, run: x }", name="fails")), {"work": bad()})
    player.play()
    return player.run_id
