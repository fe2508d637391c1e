"""Every address of the pages: what it takes, and who may GET and POST it. A new address needs its line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Besides permissions: anybody, anybody who is logged in, whoever may look at runs, whoever may look at workflows.
PUBLIC, SELF, LOOK, LOOK_AT_WORKFLOWS = "public", "self", "view_run", "view_workflow"
LOOK_AT_SCHEDULES = "view_schedule"
LOOK_AT_WORKERS = "view_worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """``about`` names what the address is about: ``asks`` and ``broken`` are runs of the world, ``workflow`` its
    workflow, None neither. ``more`` are the further parts of the address. ``get`` and ``post`` are who may, None that
    the method is not taken; ``query`` and ``data`` are sent along. ``is_missing``: the world has no such thing.
    """

    about: str | None = None
    more: tuple[Any, ...] = ()
    get: str | None = LOOK
    post: str | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    is_missing: bool = False


ADDRESSES: Mapping[str, Address] = {
    "home": Address(get=SELF),
    "home_part": Address(),
    "login": Address(get=PUBLIC, post=PUBLIC, data={"username": "nobody", "password": "x"}),
    "logout": Address(get=None, post=PUBLIC),
    "account": Address(get=SELF, post=SELF),
    "session_end": Address(about=None, more=(1,), get=None, post=SELF),
    "session_end_others": Address(get=None, post=SELF),
    "keys": Address(get=SELF, post=SELF, data={"name": "", "days": "7"}),
    "notification_preferences": Address(get=SELF, post=SELF, data={"about": "everything"}),
    "theme": Address(get=None, post=PUBLIC, data={"theme": "dark"}),
    # ---- workers
    "worker_list": Address(get=LOOK_AT_WORKERS),
    "worker_part": Address(get=LOOK_AT_WORKERS),
    # ---- workflows
    "workflow_list": Address(get=LOOK_AT_WORKFLOWS),
    "workflow_new": Address(
        get=LOOK_AT_WORKFLOWS,
        post="publish_plan",
        data={
            "action": "publish",
            "source": "format: 1\nname: other\nsteps:\n  - { id: a, kind: end, status: succeeded }\n",
        },
    ),
    "workflow": Address(about="workflow", get=LOOK_AT_WORKFLOWS),
    "start": Address(about="workflow", get="start_run", post="start_run"),
    "start_preview": Address(about="workflow", get=None, post="start_run"),
    "workflow_edit": Address(
        about="workflow",
        get=LOOK_AT_WORKFLOWS,
        post="publish_plan",
        data={
            "action": "publish",
            "source": "format: 1\nname: asks\nsteps:\n  - { id: a, kind: end, status: succeeded }\n",
        },
    ),
    "workflow_from_library": Address(about="workflow", get=None, post="publish_plan"),
    "workflow_versions": Address(about="workflow", get=LOOK_AT_WORKFLOWS),
    "workflow_version": Address(about="workflow", more=(1,), get=LOOK_AT_WORKFLOWS),
    "workflow_source": Address(about="workflow", more=(1,), get=LOOK_AT_WORKFLOWS),
    "workflow_compare": Address(about="workflow", get=LOOK_AT_WORKFLOWS, query={"from": 1, "to": 1}),
    "workflow_notifications": Address(about="workflow", get="view_webhook"),
    "webhook_add": Address(
        about="workflow",
        get=None,
        post="manage_webhook",
        data={"url": "https://example.com/", "secret": "hook", "kind": "run_failed"},
    ),
    "webhook_change": Address(about="workflow", more=(1,), get=None, post="manage_webhook", data={"to": "off"}),
    "delivery_replay": Address(about="workflow", more=(1,), get=None, post="replay_delivery"),
    # ---- runs
    "run_list": Address(),
    "bulk_new": Address(
        get="cancel_run",
        post="cancel_run",
        query={"action": "cancel", "scope": "all", "status": "paused"},
        data={"action": "cancel", "scope": "all", "status": "paused", "request_id": "r1"},
    ),
    "bulk_list": Address(),
    "bulk": Address(about="bulk"),
    "bulk_carry_on": Address(about="bulk", get=None, post="cancel_run"),
    "bulk_abort": Address(about="bulk", get=None, post="cancel_run"),
    "inbox": Address(),
    "question": Address(about="asks", more=(1,), post="answer_interrupt", data={"decision": "approved"}),
    "reconcile": Address(
        about="broken", more=(1,), post="reconcile_run", data={"decision": "did_not", "reason": "I looked"}
    ),
    "audit": Address(get="view_auditentry"),
    # ---- schedules
    "schedule_list": Address(get=LOOK_AT_SCHEDULES),
    "schedule": Address(about="schedule", get=LOOK_AT_SCHEDULES),
    "schedule_new": Address(
        get="add_schedule",
        post="add_schedule",
        query={"workflow": "asks"},
        data={"workflow": "asks", "cron": "0 3 * * *", "timezone": "UTC", "if_running": "skip", "catch_up": "last"},
    ),
    "schedule_edit": Address(
        about="schedule",
        get="change_schedule",
        post="change_schedule",
        data={"cron": "0 3 * * *", "timezone": "UTC", "if_running": "skip", "catch_up": "last", "edition": 1},
    ),
    "schedule_action": Address(about="schedule", more=("pause",), get="pause_schedule", post="pause_schedule"),
    # ---- one run
    "run": Address(about="asks"),
    "run_steps": Address(about="asks"),
    "visit": Address(about="asks", more=(1,)),
    "run_events": Address(about="asks"),
    "run_messages": Address(about="asks"),
    "run_state": Address(about="asks"),
    "run_state_at": Address(about="asks", more=(1,)),
    "run_audit": Address(about="asks"),
    "run_part_live": Address(about="asks"),
    "run_part_visit": Address(about="asks", more=(1,)),
    "run_events_json": Address(about="asks"),
    "run_input": Address(about="asks"),
    "run_output": Address(about="asks"),
    "visit_output": Address(about="asks", more=(1,)),
    "attempt_value": Address(about="asks", more=(1, 1, "output"), is_missing=True),
    "fork": Address(about="asks", get="fork_run", post="fork_run", data={"do": "fork", "revision": "1"}),
    "run_action": Address(
        about="asks", more=("cancel",), get="cancel_run", post="cancel_run", data={"reason": "not needed"}
    ),
}
