"""The page of a run, ``runs why`` and ``runs why --json`` say the same of why a run does not go on (WEB.5)."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.commands.support import manage
from tests.pages.visitors import visitor
from tests.support.driving import drive
from tests.support.hand import Hand, expire
from tests.support.plans import publish_run, workflow
from tests.support.worlds import publish_in_line

pytestmark = pytest.mark.django_db(transaction=True)

WRITE = workflow('  - { id: work, kind: shell, run: "true", access: write }')
LONG = workflow(f'  - {{ id: ask, kind: question, ask: "{"Well, what now? " * 60}" }}')


def queued(folder: Path) -> int:
    return publish_run(WRITE)


def paused(folder: Path) -> int:
    run = publish_run(LONG)
    drive(run, folder)
    return run


def waiting(folder: Path) -> int:
    run = publish_run(workflow("  - { id: later, kind: wait, for: 90d }"))
    drive(run, folder)
    return run


def left_by_a_dead_worker(folder: Path) -> int:
    run = publish_run(WRITE)
    Hand(run).step()
    expire(run)
    return run


def in_line(folder: Path) -> int:
    publish_in_line(WRITE, "deploy")
    return publish_in_line(WRITE, "deploy").run_id


def over(folder: Path) -> int:
    run = publish_run(workflow("  - { id: stop, kind: end, status: failed, message: too few }"))
    drive(run, folder)
    return run


@pytest.mark.parametrize("make", [queued, paused, waiting, left_by_a_dead_worker, in_line, over])
def test_the_box_of_the_page_is_what_the_command_prints(make, tmp_path: Path) -> None:
    run = make(tmp_path)
    reasons = manage("runs", "why", str(run), "--json").json["reasons"]
    printed = manage("runs", "why", str(run)).lines[1:]
    page = visitor(name="root", is_superuser=True).get(f"/runs/{run}/").content.decode()

    box = re.search(r'<section id="why".*?</section>', page, re.DOTALL)
    assert box is not None
    sentences = [as_text(one) for one in re.findall(r"<strong>(.*?)</strong>", box[0], re.DOTALL)]
    advice = [as_text(one) for one in re.findall(r'<p class="muted">(.*?)</p>', box[0], re.DOTALL)]
    codes = re.findall(r'data-code="(\w+)"', box[0])

    assert [one["code"] for one in reasons] == codes
    assert [one["sentence"] for one in reasons] == sentences
    assert [one["advice"].replace("`", "") for one in reasons if one["advice"]] == advice
    assert [line.strip().replace("`", "") for line in printed if line.startswith("      ")] == advice
    told = [line for line in printed if not line.startswith("      ")]
    assert [line.strip().startswith(one) for line, one in zip(told, sentences, strict=True)] == [True] * len(sentences)


def as_text(piece: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", piece)).strip()
