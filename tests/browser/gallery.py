"""A small company's runs, for pictures: made as people and workers make them, with real workers and real scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from tests.browser.crew import Crew, eventually
from tests.support.hand import expire
from workflows.models import Run, Visit
from workflows.operations import answering, runs
from workflows.operations.people import Actor, user_actor
from workflows.operations.workflows import named_definition, publish_file, publish_library

#: Ends its quick sites, and stays with the last one as long as the picture needs.
ROLLOUT = """format: 1
name: roll_out
title: Roll out to every site
owner: platform
tags: [sites]
description: |
  Builds once, checks the archive in parallel, then updates two sites at a time.
params:
  version: { type: string, title: Version, pattern: '\\d+\\.\\d+\\.\\d+', example: 2.4.1 }
  sites: { type: array, items: { type: string }, default: [berlin, london, oslo, paris, rome], title: Sites }
steps:
  - id: build
    kind: shell
    idempotent: true
    run: sleep 0.8; echo "archive $VERSION"
    env: { VERSION: "${ params.version }" }
  - id: check
    kind: parallel
    branches:
      tests: [{ id: run_tests, kind: shell, access: read, run: 'sleep 1.2; echo 412 passed' }]
      licences: [{ id: read_licences, kind: shell, access: read, run: 'sleep 0.4; echo fine' }]
  - id: each_site
    kind: map
    over: ${ params.sites }
    as: site
    key: ${ site }
    concurrency: 2
    do:
      - id: update
        kind: shell
        idempotent: true
        run: |
          case "$SITE" in rome) sleep 900;; oslo) sleep 0.3; test -e tried || { touch tried; exit 7; };; *) sleep 0.9;; esac
          echo "$SITE runs $VERSION"
        env: { SITE: "${ site }", VERSION: "${ params.version }" }
        retry: { attempts: 3, wait: 500ms, errors: [exit_nonzero] }
      - { id: probe, kind: shell, access: read, run: 'sleep 0.2; echo healthy' }
    collect: ${ site }
  - id: verdict
    kind: condition
    if: ${ size(steps.each_site.output) == size(params.sites) }
    next: { then: announce, else: ask_somebody }
  - { id: ask_somebody, kind: approval, ask: Announce it although sites are missing?, next: { rejected: done } }
  - { id: announce, kind: shell, idempotent: true, run: echo told everyone }
output: { sites: "${ steps.each_site.output }" }
"""
INVOICES = """format: 1
name: invoices
title: Send the invoices of a month
owner: accounting
tags: [money]
params: { month: { type: string, title: Month, example: 2026-10 } }
vars: { reminder_days: 14 }
steps:
  - { id: collect, kind: shell, access: read, run: 'echo "[318, 42, 77]"', parse: json }
  - { id: total, kind: assign, set: { reminder_days: "${ vars.reminder_days + 7 }" } }
  - { id: send, kind: shell, run: 'echo "handing 3 invoices to the post"; sleep 900', timeout: 1h }
  - { id: file, kind: shell, idempotent: true, run: echo filed }
output: { sent: "${ size(steps.collect.output) }" }
"""
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "mara": ("operator", "approver", "admin"),
    "jon": ("approver",),
    "li": ("operator",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Numbers of runs: one at work, one that asks, one with an interrupted write, one that has succeeded, a failed
    one."""

    live: int
    asks: int
    interrupted: int
    done: int
    failed: int


def person(name: str) -> Actor:
    return user_actor(get_user_model()._default_manager.get(username=name))


def _start(name: str, by: str, title: str = "", /, **given: Any) -> int:
    wish = runs.Start(definition=named_definition(name), actor=person(by), given=given, title=title, origin="page")
    return runs.start(wish).run_id


def _reaches(run: int, *statuses: str) -> None:
    eventually(lambda: Run.objects.get(pk=run).status in statuses, f"run {run} never became {' or '.join(statuses)}")


def make_people() -> None:
    for name, roles in PEOPLE.items():
        user = get_user_model()._default_manager.create_user(
            username=name, password=None, is_staff=name == "mara", is_superuser=False
        )
        user.groups.set(Group.objects.filter(name__in=roles))


def make_gallery(crew: Crew) -> Gallery:
    """The world of the pictures; takes some seconds of real work."""
    make_people()
    publish_library()
    for text in (ROLLOUT.replace("concurrency: 2\n", "concurrency: 1\n").replace("sleep 0.2; ", ""), ROLLOUT, INVOICES):
        publish_file(text.encode(), created_by="mara")
    invoices = _start("invoices", "li", "October", month="2026-10")
    crew.work()
    eventually(lambda: Visit.objects.filter(run_id=invoices, step="send", status="open").exists(), "nothing was sent")
    crew.kill()
    expire(invoices)

    done = _start("backup", "li")
    failed = _start("release", "mara", "Hotfix", version="1.3.9", unhealthy="us")
    crew.work()
    _reaches(invoices, "blocked")
    _reaches(done, "succeeded")
    _reaches(failed, "paused")
    for name in ("jon", "li"):
        answering.answer(failed, None, answering.Wish(decision="approved"), actor=Actor(name=name, recorded=name))
    _reaches(failed, "failed", "succeeded")
    for title in ("Monday", "Tuesday", "Wednesday"):
        _reaches(_start("backup", "li", title), "succeeded")
    _start("onboarding", "mara", "Ada", name="Ada Lovelace", starts_on="2026-12-07")
    _start("incident", "li", "Slow checkout", service="checkout")
    asks = _start("release", "mara", "The big one", version="1.4.0")
    _reaches(asks, "paused")
    live = _start("roll_out", "mara", "Everywhere", version="2.4.1")
    last = Visit.objects.filter(run_id=live, step="update", status="open")
    eventually(
        lambda: Visit.objects.filter(run_id=live, step="probe", outcome="ok").count() == 4 and last.exists(), "slow"
    )
    return Gallery(live=live, asks=asks, interrupted=invoices, done=done, failed=failed)
