"""What people do to a run in the browser: permissions, confirmation, one effect per form, refusals that keep the text."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from tests.pages.visitors import LOOK, visitor
from tests.support.hand import Hand
from tests.support.kinds import bad
from tests.support.plans import publish_run, workflow
from tests.support.players import Player
from tests.support.rows import all_rows
from workflows.models import AuditEntry, ControlMessage, Run, Visit

pytestmark = pytest.mark.django_db(transaction=True)

WAITS = "  - { id: ready, kind: wait, signal: go_on }\n  - { id: last, kind: shell, run: x }"
RETRIES = "  - { id: work, kind: shell, run: x, access: read, retry: { attempts: 3, wait: 10d } }"
FAILS = "  - { id: first, kind: shell, run: x }\n  - { id: work, kind: shell, run: x }"


def played(steps: str, **scripts: Any) -> int:
    player = Player(publish_run(workflow(steps)), scripts)
    player.play()
    return player.run_id


def status_of(run_id: int) -> str:
    return str(Run.objects.get(pk=run_id).status)


def text_of(response: Any) -> str:
    return html.unescape(response.content.decode())


def without_audit() -> dict[str, Any]:
    return {table: rows for table, rows in all_rows().items() if table != "AuditEntry"}


ACTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "cancel": ("cancel_run", {"reason": "no need"}),
    "pause": ("hold_run", {}),
    "resume": ("reopen_run", {}),
    "retry": ("reopen_run", {}),
    "skip": ("reopen_run", {"reason": "broken", "visit": "1"}),
    "signal": ("start_run", {"name": "go_on"}),
    "steer": ("hold_run", {"text": "be brief"}),
    "abandon": ("abandon_run", {"reason": "wrong run"}),
}


@pytest.mark.parametrize("verb", ACTIONS)
def test_an_action_needs_its_permission_and_a_denied_one_is_audited_and_changes_nothing(verb: str) -> None:
    """WEB.2: every action needs its permission; a denied one changes nothing and is audited."""
    permission, given = ACTIONS[verb]
    run_id = played(WAITS)
    others = {name for name, _ in ACTIONS.values()} - {permission}
    client = visitor(*LOOK, *(others - {"hold_run"} if verb == "resume" else others))
    before = without_audit()
    asked = client.get(f"/runs/{run_id}/actions/{verb}/")
    response = client.post(f"/runs/{run_id}/actions/{verb}/", given)
    assert (asked.status_code, response.status_code) == (403, 403)
    assert permission in text_of(response)
    assert without_audit() == before
    entry = AuditEntry.objects.get()
    assert (entry.allowed, entry.run, entry.actor) == (False, run_id, "ann")
    assert f"/actions/{verb}/" not in text_of(client.get(f"/runs/{run_id}/"))


def test_actions_are_posts_with_a_token() -> None:
    """INT.6: only a POST changes anything, and one from elsewhere does not."""
    run_id = played(WAITS)
    client = visitor(*LOOK, "cancel_run")
    client.handler.enforce_csrf_checks = True
    assert client.post(f"/runs/{run_id}/actions/cancel/", {"reason": "x"}).status_code == 403
    assert status_of(run_id) == "waiting"
    assert client.get(f"/runs/{run_id}/actions/explode/").status_code == 404


def test_a_cancelled_run_without_closing_steps_is_over_at_once() -> None:
    """CTL.3: with no live lease the run is brought to its end; repeating changes nothing."""
    run_id = played(WAITS)
    client = visitor(*LOOK, "cancel_run")
    page = text_of(client.get(f"/runs/{run_id}/actions/cancel/"))
    assert "A cancelled run does not go on again" in page
    response = client.post(f"/runs/{run_id}/actions/cancel/", {"reason": "no need"}, follow=True)
    assert f"Run {run_id} is cancelled." in text_of(response)
    assert status_of(run_id) == "cancelled"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.reason) == ("run.cancel", "ann", "no need")
    again = client.post(f"/runs/{run_id}/actions/cancel/", {"reason": "no need"})
    assert again.status_code in (302, 409)
    assert status_of(run_id) == "cancelled"


def test_pause_and_resume_are_one_press_each() -> None:
    """CTL.4: a hold is accepted and lifted; the buttons change with it."""
    run_id = played(WAITS)
    client = visitor(*LOOK, "hold_run")
    assert "/actions/pause/" in text_of(client.get(f"/runs/{run_id}/"))
    client.post(f"/runs/{run_id}/actions/pause/")
    Hand(run_id).step()
    text = text_of(client.get(f"/runs/{run_id}/"))
    assert "ann holds the run." in text
    assert "/actions/resume/" in text
    assert "/actions/pause/" not in text
    client.post(f"/runs/{run_id}/actions/resume/")
    Hand(run_id).step()
    assert Run.objects.get(pk=run_id).held == ""


def test_retry_now_ends_the_waiting() -> None:
    """ADM.4: the back-off is skipped, the count stays."""
    run_id = played(RETRIES, work=bad("network"))
    client = visitor(*LOOK, "reopen_run")
    assert "Retry now" in text_of(client.get(f"/runs/{run_id}/"))
    response = client.post(f"/runs/{run_id}/actions/retry/", follow=True)
    assert "tries again now" in text_of(response)
    refused = client.post(f"/runs/{played(WAITS)}/actions/retry/")
    assert refused.status_code == 409
    assert "waits to be tried again" in text_of(refused)


def test_a_failed_run_is_resumed_at_the_failed_step() -> None:
    """ABR.2: the page offers it, and the run is open again."""
    run_id = played(FAILS, work=bad())
    client = visitor(*LOOK, "reopen_run")
    assert "Resume at the failed step" in text_of(client.get(f"/runs/{run_id}/"))
    client.post(f"/runs/{run_id}/actions/resume/")
    assert status_of(run_id) == "queued"
    assert Visit.objects.get(run_id=run_id, number=2).status == "open"


def test_skipping_needs_a_reason_and_keeps_what_was_typed() -> None:
    """Skip: the reason stays on the run for ever, so it is asked for."""
    run_id = played(FAILS, work=bad())
    client = visitor(*LOOK, "reopen_run")
    assert "v2" in text_of(client.get(f"/runs/{run_id}/actions/skip/"))
    refused = client.post(f"/runs/{run_id}/actions/skip/", {"reason": "  ", "visit": "2"})
    assert refused.status_code == 422
    assert "needs a reason" in text_of(refused)
    assert status_of(run_id) == "failed"
    client.post(f"/runs/{run_id}/actions/skip/", {"reason": "done by hand"})
    Player(run_id).play()
    assert status_of(run_id) == "succeeded"
    assert "done by hand" in text_of(client.get(f"/runs/{run_id}/visits/2/"))


def test_a_signal_is_sent_once_per_form_and_a_bad_payload_is_kept() -> None:
    """CTL.2: the same request is the same signal; invalid JSON is refused with the text in place."""
    run_id = played(WAITS)
    client = visitor(*LOOK, "start_run")
    address = f"/runs/{run_id}/actions/signal/"
    page = text_of(client.get(address))
    assert "wait for <code>go_on</code>" in page
    key = re.search(r'name="key" value="(\w+)"', page)
    assert key is not None
    refused = client.post(address, {"name": "go_on", "payload": '{"a": 1', "key": key[1]})
    assert refused.status_code == 422
    assert '{"a": 1' in text_of(refused)
    assert key[1] in text_of(refused)
    misspelled = client.post(address, {"name": "go_onn", "key": key[1]})
    assert misspelled.status_code == 422
    for _ in range(2):
        client.post(address, {"name": "go_on", "payload": '{"a": 1}', "key": key[1]})
    message = ControlMessage.objects.get()
    assert json.loads(message.payload) == {"name": "go_on", "payload": {"a": 1}}
    inbox = text_of(client.get(f"/runs/{run_id}/messages/"))
    assert '"a": 1' in inbox
    assert "<span>queued</span>" in inbox
    Player(run_id).play()
    assert "<span>queued</span>" not in text_of(client.get(f"/runs/{run_id}/messages/"))


def test_steering_waits_in_the_inbox() -> None:
    """CTL.5: kinds that take none leave it pending; the inbox shows it."""
    run_id = played(WAITS)
    client = visitor(*LOOK, "hold_run")
    assert client.post(f"/runs/{run_id}/actions/steer/", {"text": "  "}).status_code == 422
    client.post(f"/runs/{run_id}/actions/steer/", {"text": "be brief"})
    assert "be brief" in text_of(client.get(f"/runs/{run_id}/messages/"))


def test_abandoning_needs_a_reason_and_is_undone_by_resuming() -> None:
    """ABR.1, ABR.2: a wrong abandon is taken back on the same page."""
    run_id = played(WAITS)
    client = visitor(*LOOK, "abandon_run", "reopen_run")
    assert client.post(f"/runs/{run_id}/actions/abandon/", {"reason": ""}).status_code == 422
    client.post(f"/runs/{run_id}/actions/abandon/", {"reason": "wrong run"})
    assert status_of(run_id) == "abandoned"
    audit = text_of(client.get(f"/runs/{run_id}/audit/"))
    assert "run.abandon" in audit
    assert "wrong run" in audit
    client.post(f"/runs/{run_id}/actions/resume/")
    assert status_of(run_id) != "abandoned"


def test_finished_runs_offer_nothing_that_cannot_be_done() -> None:
    run_id = played("  - { id: work, kind: shell, run: x }")
    permissions = {permission for permission, _ in ACTIONS.values()}
    text = text_of(visitor(*LOOK, *permissions).get(f"/runs/{run_id}/"))
    for verb in ACTIONS:
        assert f"/actions/{verb}/" not in text


# ---- forks -----------------------------------------------------------------------------------------------------------


def test_a_fork_is_previewed_then_made_once_and_its_origin_stays() -> None:
    """FORK.2, FORK.3, FORK.7: preview writes nothing; a double click makes one fork; lineage both ways."""
    run_id = played(FAILS, work=bad())
    client = visitor(*LOOK, "fork_run")
    before = all_rows()
    page = text_of(client.get(f"/runs/{run_id}/fork/?from=v2"))
    assert "before v2" in page
    assert "Kept" in page
    shown = client.post(f"/runs/{run_id}/fork/", {"begin_with": "v1", "params": "{}", "do": "preview"})
    assert "before v1" in text_of(shown)
    assert all_rows() == before
    wish = {"begin_with": "v2", "params": "{}", "reason": "try again", "do": "fork", "key": "k1"}
    for _ in range(2):
        response = client.post(f"/runs/{run_id}/fork/", wish)
        assert response.status_code == 302
    fork = Run.objects.get(fork_of=run_id)
    assert response.headers["Location"] == f"/runs/{fork.pk}/"
    assert status_of(run_id) == "failed"
    assert f'href="/runs/{fork.pk}/"' in text_of(client.get(f"/runs/{run_id}/"))
    assert f'forked from <a href="/runs/{run_id}/">' in text_of(client.get(f"/runs/{fork.pk}/"))


def test_edited_parameters_are_checked_and_what_was_typed_stays() -> None:
    """FORK.5: edits are validated like originals; the form keeps them."""
    steps = "  - { id: work, kind: shell, run: x }"
    run_id = publish_run(
        workflow(steps, before="params: { n: { type: integer }, m: { type: integer } }"), {"n": 1, "m": 2}
    )
    Player(run_id).play()
    client = visitor(*LOOK, "fork_run")
    assert '"n": 1' in text_of(client.get(f"/runs/{run_id}/fork/"))
    wrong = {"at": "2", "params": '{"n": "many", "m": 2}', "do": "fork", "key": "k"}
    refused = client.post(f"/runs/{run_id}/fork/", wrong)
    assert refused.status_code == 422
    assert '"n": "many"' in text_of(refused)
    assert not Run.objects.filter(fork_of=run_id).exists()
    broken = client.post(f"/runs/{run_id}/fork/", {**wrong, "params": '{"n": '})
    assert broken.status_code == 422
    client.post(f"/runs/{run_id}/fork/", {**wrong, "params": '{"n": 5, "m": 2}'})
    fork = Run.objects.get(fork_of=run_id)
    assert json.loads(fork.fork_request)["edits"]["params"].keys() == {"n"}


def test_a_fork_needs_its_permission() -> None:
    """WEB.2: neither form nor fork without it."""
    run_id = played(FAILS, work=bad())
    client = visitor(*LOOK, "reopen_run")
    assert client.get(f"/runs/{run_id}/fork/").status_code == 403
    assert client.post(f"/runs/{run_id}/fork/", {"do": "fork", "params": "{}"}).status_code == 403
    assert not Run.objects.filter(fork_of=run_id).exists()
    assert f"/runs/{run_id}/fork/" not in text_of(client.get(f"/runs/{run_id}/"))
