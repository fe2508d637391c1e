"""What the clients of ``benchmarks.web_load`` need: runs that wait for people, a key, a session, a workflow."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import django


def main(count: int) -> int:
    django.setup()
    sys.stdout.write(json.dumps(prepare(count)))
    return 0


def prepare(count: int) -> dict[str, Any]:
    from django.contrib.auth import get_user_model
    from django.test import Client

    from benchmarks.page_data import STEPS
    from tests.support.hand import Hand
    from tests.support.plans import publish_run, store_plan, workflow
    from workflows.models import Run
    from workflows.operations import api_keys
    from workflows.operations.people import shell_actor

    user = get_user_model()._default_manager.create_superuser("ada")
    made = api_keys.create(
        owner="ada", name="load", scopes=["read", "start"], actor=shell_actor(), now=datetime.now(UTC)
    )
    store_plan(workflow(STEPS["queued"], name="started"), private=False)
    waiting = workflow(STEPS["paused"], name="waiting")
    store_plan(waiting, private=False)
    runs = []
    for _ in range(max(1, count)):
        run = publish_run(waiting)
        hand = Hand(run, now=datetime.now(UTC))
        while not hand.step().parks:
            pass
        runs.append({"run": run, "cursor": Run.objects.get(pk=run).next_event - 1})
    client = Client()
    client.force_login(user)
    return {"key": made.text, "session": client.cookies["sessionid"].value, "runs": runs}


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
