"""The page of a run and its tabs: every status, live pieces, sizes, hostile texts, who sees what."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages.visitors import LOOK, visitor
from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player
from tests.support.rows import all_rows
from tests.support.scenarios import SCENARIOS
from tests.support.worlds import publish_parent
from workflows.ledger.advance import advance
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Event, Run, Visit, WorkflowAccess

pytestmark = pytest.mark.django_db(transaction=True)

TABS = ("", "steps/", "events/", "messages/", "at/", "at/1/", "audit/")
HOSTILE = "<script>alert(1)</script>\u202e'\"&<svg onload=x>"
WORK = workflow("  - { id: work, kind: shell, run: make }")


def text_of(response: Any) -> str:
    return html.unescape(response.content.decode())


def played(steps: str, **scripts: Any) -> int:
    player = Player(publish_run(workflow(steps)), scripts)
    player.play()
    return player.run_id


def poll_of(text: str) -> tuple[str, str]:
    """Address and token of the poll in a page, which a browser would send."""
    found = re.search(r'<div id="poll"[^>]*hx-get="([^"]*)"[^>]*hx-headers=\'([^\']*)\'', text)
    assert found is not None
    return found[1], json.loads(found[2])["If-None-Match"]


# ---- every status ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_tab_and_every_step_of_every_kind_of_run_opens(name: str) -> None:
    """WEB.4: a page never fails, whatever became of the run."""
    run_id = SCENARIOS[name](advance)
    client = visitor(*LOOK)
    status = Run.objects.get(pk=run_id).status
    for tab in TABS:
        response = client.get(f"/runs/{run_id}/{tab}", follow=True)
        assert response.status_code == 200, tab
        assert f"<span>{status}</span>" in response.content.decode()
    for number in Visit.objects.filter(run_id=run_id).values_list("number", flat=True)[:12]:
        assert client.get(f"/runs/{run_id}/visits/{number}/").status_code == 200
        part = client.get(f"/runs/{run_id}/parts/visits/{number}/", headers={"HX-Request": "true"})
        assert part.status_code == 200
        assert b"<html" not in part.content


def test_looking_never_changes_anything() -> None:
    """INT.6: GET and HEAD, however often."""
    run_id = SCENARIOS["asked"](advance)
    client = visitor(*LOOK, "cancel_run", "fork_run", "hold_run", "reopen_run", "start_run", "abandon_run")
    before = all_rows()
    for path in (*TABS, "parts/live/", "actions/cancel/", "actions/skip/", "actions/signal/", "fork/", "input/"):
        client.get(f"/runs/{run_id}/{path}")
        client.head(f"/runs/{run_id}/{path}")
    assert all_rows() == before


@ledger_transaction
def as_newer_version(run_id: int) -> None:
    Event.objects.filter(run_id=run_id, type="run_started").update(type="stars_aligned", payload='{"sign":"virgo"}')
    Visit.objects.filter(run_id=run_id).update(kind="séance", outcome="foretold")


def test_what_a_newer_version_wrote_is_shown_raw() -> None:
    """WEB.4: unknown kinds, outcomes and events are told as they are."""
    run_id = played("  - { id: work, kind: shell, run: x }")
    as_newer_version(run_id)
    client = visitor(*LOOK)
    assert "stars aligned" in text_of(client.get(f"/runs/{run_id}/events/"))
    assert "virgo" in text_of(client.get(f"/runs/{run_id}/events/"))
    assert "foretold" in text_of(client.get(f"/runs/{run_id}/"))
    assert "séance" in text_of(client.get(f"/runs/{run_id}/visits/1/"))


# ---- the head --------------------------------------------------------------------------------------------------------


def test_the_head_names_version_starter_and_a_newer_version_with_its_difference() -> None:
    """PLAN.3: editing the file never changes a run; the page says that a newer version exists."""
    first = store_plan(WORK, private=False)
    run_id = publish_run(WORK, plan_id=first.plan_id)
    client = visitor(*LOOK)
    assert "is newer" not in text_of(client.get(f"/runs/{run_id}/"))
    store_plan(WORK.replace("make", "make all"), private=False)
    text = text_of(client.get(f"/runs/{run_id}/"))
    assert "version 1" in text
    assert "version 2 is newer" in text
    assert "/workflows/demo/compare/?from=1&to=2" in text
    assert "ann" in text


def test_parents_children_and_forks_are_linked() -> None:
    """FORK.8: lineage is on the page."""
    kid = workflow("  - { id: ask_it, kind: approval, ask: Go? }", name="kid")
    parent = Player(publish_parent(workflow("  - { id: call, kind: workflow, ref: kid }", name="parent"), kid))
    parent.play()
    child = Run.objects.get(parent_run_id=parent.run_id).pk
    client = visitor(*LOOK)
    assert f'href="/runs/{child}/"' in text_of(client.get(f"/runs/{parent.run_id}/"))
    assert f'part of <a href="/runs/{parent.run_id}/">' in text_of(client.get(f"/runs/{child}/"))
    assert f"run {child}" in text_of(client.get(f"/runs/{parent.run_id}/visits/1/"))
    row = text_of(client.get(f"/runs/{parent.run_id}/")).split('id="row-v1"')[1].split("</li>")[0]
    assert f'href="/runs/{child}/"' in row


def test_the_box_says_why_and_what_to_do() -> None:
    """WEB.5: the page says which, since when, and what to do."""
    run_id = played("  - { id: ready, kind: wait, signal: go_on }")
    text = text_of(visitor(*LOOK).get(f"/runs/{run_id}/"))
    assert "Why is this run not moving?" in text
    assert 'ready waits for the signal "go_on".' in text
    assert f"python manage.py runs signal {run_id} go_on" in text
    assert "Why is" not in text_of(
        visitor(*LOOK, name="bea").get(f"/runs/{played('  - { id: a, kind: shell, run: x }')}/")
    )


# ---- live ------------------------------------------------------------------------------------------------------------


def test_a_live_page_polls_and_is_told_only_what_changed() -> None:
    """One poll, 304 while nothing changed, and no poll for a run that is over."""
    run_id = publish_run(WORK)
    hand = Hand(run_id)
    hand.step()
    client = visitor(*LOOK)
    address, token = poll_of(text_of(client.get(f"/runs/{run_id}/")))
    headers = {"HX-Request": "true", "If-None-Match": token}
    unchanged = client.get(address, headers=headers)
    if unchanged.status_code == 200:  # five seconds have passed in between
        unchanged = client.get(address, headers={**headers, "If-None-Match": unchanged.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    hand.step({"v1.1": ok(1)})
    changed = client.get(address, headers=headers)
    text = text_of(changed)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != token
    for piece in ("poll", "live-mark", "run-head", "why", "timeline", "run-graph", "run-values"):
        assert re.search(rf'id="{piece}"[^>]*hx-swap-oob="true"', text), piece
    assert "hx-get" not in text[text.index('id="poll"') :][:200]
    assert "Final" in text
    assert "hx-trigger" not in text_of(client.get(f"/runs/{run_id}/"))


def test_the_token_is_of_one_person_and_of_one_state() -> None:
    """WEB.2: what one person may see is never told to another by a cache."""
    run_id = played("  - { id: work, kind: shell, run: x }")
    one = visitor(*LOOK).get(f"/runs/{run_id}/parts/live/")
    other = visitor(*LOOK, name="bob").get(f"/runs/{run_id}/parts/live/")
    assert one.headers["ETag"] != other.headers["ETag"]
    assert "no-store" in one.headers["Cache-Control"]


def test_the_step_beside_the_timeline_is_kept_in_the_address() -> None:
    """A reload shows the same step; one that is not there leaves the run as it is."""
    run_id = played("  - { id: work, kind: shell, run: x }", work=ok("a long story"))
    client = visitor(*LOOK)
    assert "a long story" in text_of(client.get(f"/runs/{run_id}/?panel=1"))
    missing = client.get(f"/runs/{run_id}/?panel=77")
    assert missing.status_code == 200
    assert "a long story" not in text_of(missing)


def test_new_events_are_added_at_the_end_of_a_live_log() -> None:
    """EVT.1: the cursor moves on, nothing is told twice."""
    run_id = publish_run(WORK)
    hand = Hand(run_id)
    hand.step()
    client = visitor(*LOOK)
    text = text_of(client.get(f"/runs/{run_id}/events/"))
    cursor = re.search(r'name="cursor" value="(\d+)"', text)
    assert cursor is not None
    hand.step({"v1.1": ok(1)})
    live = f"/runs/{run_id}/parts/live/?tab=run_events&cursor={cursor[1]}"
    text = text_of(client.get(live))
    assert "step succeeded" in text
    assert "step started" not in text
    last = Run.objects.get(pk=run_id).next_event - 1
    assert f'name="cursor" value="{last}"' in text


def test_events_are_narrowed_by_type_and_by_step() -> None:
    run_id = SCENARIOS["fanned_out"](advance)
    client = visitor(*LOOK)
    only = text_of(client.get(f"/runs/{run_id}/events/?type=scope_ended"))
    assert "scope ended" in only
    assert "<strong" in only
    assert 'title="step_started"' not in only
    of_step = text_of(client.get(f"/runs/{run_id}/events/?visit=2"))
    assert f'href="/runs/{run_id}/visits/2/"' in of_step
    assert f'href="/runs/{run_id}/visits/3/"' not in of_step


# ---- sizes -----------------------------------------------------------------------------------------------------------


def big_map(items: int) -> int:
    """A run of a map whose items make three pure visits each."""
    steps = """
  - id: each
    kind: map
    over: ${ params.numbers }
    as: item
    concurrency: 64
    max_items: 5000
    do:
      - { id: double, kind: assign, set: { x: "${ item * 2 }" } }
      - { id: odd, kind: condition, if: "${ item == 7 }", next: { then: fail, else: continue } }
      - { id: last, kind: assign, set: { x: "${ vars.x + 1 }" } }
    vars: { x: 0 }
    join: settled
"""
    before = "params: { numbers: { type: array, items: { type: integer } } }\nbudget: { visits: 20000 }"
    run_id = publish_run(workflow(steps, before=before), {"numbers": list(range(items))})
    hand = Hand(run_id)
    while not hand.step().draft.ended:
        pass
    return run_id


def test_a_run_of_five_thousand_visits_opens_with_a_few_queries_and_pages_its_items() -> None:
    """WEB.3: folded, counted, cut with links; failed items are shown although their map is folded."""
    run_id = big_map(1_670)
    assert Run.objects.get(pk=run_id).visits > 5_000
    client = visitor(*LOOK)
    with CaptureQueriesContext(connection) as queries:
        response = client.get(f"/runs/{run_id}/")
    text = text_of(response)
    assert len(queries) < 20
    assert len(response.content) < 120_000
    assert "1 failed" in text
    assert "[7]" in text
    assert "[8]" not in text
    with CaptureQueriesContext(connection) as queries:
        text = text_of(client.get(f"/runs/{run_id}/?open=1:100"))
    assert len(queries) < 20
    assert "[100]" in text
    assert "[149]" in text
    assert "[150]" not in text
    assert "open=1%3A150" in text
    assert "open=1%3A50" in text
    for path in ("steps/?after=2000", "events/?after=3000", "visits/1/?items=failed"):
        with CaptureQueriesContext(connection) as queries:
            assert client.get(f"/runs/{run_id}/{path}").status_code == 200
        assert len(queries) < 20, path
    items = text_of(client.get(f"/runs/{run_id}/visits/1/?items=failed"))
    assert "[7]" in items
    assert "[8]" not in items


def test_a_long_loop_shows_its_latest_steps_and_a_way_to_earlier_ones() -> None:
    """WEB.3: a chain of steps is read from its end."""
    run_id = SCENARIOS["pure"](advance)
    client = visitor(*LOOK)
    text = text_of(client.get(f"/runs/{run_id}/"))
    last = Visit.objects.filter(run_id=run_id).count()
    assert f'id="row-v{last}"' in text
    assert 'id="row-v1"' not in text
    earlier = re.search(r'href="(/runs/\d+/\?before=\d+)"', text)
    assert earlier is not None
    assert f'id="row-v{last}"' not in text_of(client.get(earlier[1]))


def test_a_long_output_is_cut_and_can_be_downloaded_whole() -> None:
    """WEB.3: a page never holds a whole large value; 100 000 characters in one line are cut."""
    whole = "x" * 300_000
    run_id = played("  - { id: work, kind: shell, run: x }", work=ok(whole, log=f"{whole}\nthe end\n"))
    client = visitor(*LOOK)
    response = client.get(f"/runs/{run_id}/visits/1/")
    assert len(response.content) < 80_000
    assert "the end" in text_of(response)
    download = client.get(f"/runs/{run_id}/visits/1/output/")
    assert download.content.decode() == whole
    assert download.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert download.headers["Content-Disposition"].startswith("attachment")
    log = client.get(f"/runs/{run_id}/visits/1/attempts/1/log/")
    assert log.content.decode() == f"{whole}\nthe end\n"


def test_downloads_name_what_is_not_there() -> None:
    run_id = played("  - { id: work, kind: shell, run: x }")
    client = visitor(*LOOK)
    for path in ("visits/9/", "visits/9/output/", "visits/1/attempts/4/log/", "visits/1/attempts/1/soul/"):
        assert client.get(f"/runs/{run_id}/{path}").status_code == 404, path
    assert json.loads(client.get(f"/runs/{run_id}/input/").content) == {}
    listed = json.loads(b"".join(client.get(f"/runs/{run_id}/events.json")))
    assert [event["number"] for event in listed] == list(range(1, len(listed) + 1))


# ---- hostile texts ---------------------------------------------------------------------------------------------------


def test_texts_of_a_run_stay_texts() -> None:
    """WEB.1: titles, errors, outputs, logs and keys are escaped and isolated everywhere."""
    steps = """
  - id: each
    kind: map
    over: ${ params.keys }
    as: item
    key: ${ item }
    join: settled
    do: [{ id: work, kind: shell, run: x, access: read }]
"""
    text = workflow(steps, before="params: { keys: { type: array, items: { type: string } } }")
    run_id = publish_run(text, {"keys": [HOSTILE, f"{HOSTILE}2"]}, title=HOSTILE, started_by=HOSTILE)
    results = iter([bad(message=HOSTILE), ok({HOSTILE: HOSTILE}, log=HOSTILE)])
    Player(run_id, {"work": lambda admission: next(results)}).play()
    client = visitor(*LOOK)
    pages = [*TABS, "visits/1/", "visits/2/", "visits/3/", "visits/1/?items=" + HOSTILE, "steps/?step=" + HOSTILE]
    for path in pages:
        content = client.get(f"/runs/{run_id}/{path}", follow=True).content.decode()
        assert "<script>alert" not in content, path
        assert "<svg onload" not in content, path
        assert content.count("\u202e") == 0 or "<bdi" in content
    assert "&lt;script&gt;" in client.get(f"/runs/{run_id}/").content.decode()


# ---- who sees what ---------------------------------------------------------------------------------------------------


@ledger_transaction
def hide(run_id: int, group: Any) -> None:
    WorkflowAccess.objects.create(workflow=Run.objects.get(pk=run_id).workflow, group=group)


def test_a_run_of_a_workflow_that_a_person_may_not_see_does_not_exist_for_them(django_user_model: Any) -> None:
    """WEB.2: 404 for every address, as for a number that was never given."""
    run_id = played("  - { id: work, kind: shell, run: x }")
    group = django_user_model.groups.field.related_model.objects.create(name="insiders")
    hide(run_id, group)
    client = visitor(*LOOK, "cancel_run", "fork_run")
    more = ("visits/1/", "parts/live/", "parts/visits/1/", "input/", "output/", "events.json", "visits/1/output/")
    for path in (*TABS, *more, "visits/1/attempts/1/log/", "actions/cancel/", "fork/"):
        assert client.get(f"/runs/{run_id}/{path}").status_code == 404, path
        assert f"There is no run {run_id}." in text_of(client.get(f"/runs/{run_id}/{path}"))
        assert f"There is no run {run_id + 999}." in text_of(client.get(f"/runs/{run_id + 999}/{path}"))
    assert visitor(*LOOK, name="bob", groups=("insiders",)).get(f"/runs/{run_id}/").status_code == 200


def test_a_sensitive_step_hides_output_and_log() -> None:
    """Format: `sensitive` hides output and logs from people without the permission."""
    run_id = played(
        "  - { id: work, kind: shell, run: x, sensitive: true }", work=ok("the answer is 42", log="saw 42\n")
    )
    client = visitor(*LOOK)
    text = text_of(client.get(f"/runs/{run_id}/visits/1/"))
    assert "the answer is" not in text
    assert "saw 42" not in text
    assert "marked as sensitive" in text
    for path in ("visits/1/output/", "visits/1/attempts/1/log/"):
        assert client.get(f"/runs/{run_id}/{path}").status_code == 404
    root = visitor(name="root", is_superuser=True)
    assert "the answer is 42" in text_of(root.get(f"/runs/{run_id}/visits/1/"))


@pytest.mark.unsound
def test_a_run_with_a_corrupt_plan_can_still_be_looked_at() -> None:
    """PLAN.2: it can still be listed, shown and abandoned."""
    run_id = publish_run(WORK)
    damage(run_id)
    text = text_of(visitor(*LOOK).get(f"/runs/{run_id}/"))
    assert "The stored plan cannot be read" in text


@ledger_transaction
def damage(run_id: int) -> None:
    run = Run.objects.get(pk=run_id)
    type(run.plan).objects.filter(pk=run.plan_id).update(document='{"format": "none"}')
