"""Keys of programs: shown once, limited by scopes and owner, ended, counted (promises KEY)."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.api.programs import SHELL, Program, key_of, person, program
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows
from workflows.errors import Refusal
from workflows.models import ApiKey, AuditEntry, Run
from workflows.operations import api_keys
from workflows.operations.api_keys import Allotment, allotment
from workflows.operations.people import user_actor

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = ("view_run", "view_workflow")
WAITS = workflow("  - { id: ready, kind: wait, signal: go_on }", name="waits")


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    allotment.forget()


def code_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def test_a_key_is_shown_once_and_only_a_digest_of_its_secret_is_stored() -> None:
    """KEY.1"""
    key = key_of(person(*LOOK), "read")
    assert re.fullmatch(r"wp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key)
    secret = key.split("_", 2)[2]
    assert secret not in json.dumps(all_rows(), default=str)
    assert key not in repr(api_keys.MadeKey(key=ApiKey.objects.get(), text=key))
    assert Program(key).get("/runs").status_code == 200


@pytest.mark.parametrize("given", ["", "Basic YTpi", "Bearer", "Bearer x", "Bearer wp_000000000000_" + "a" * 43, "wp"])
def test_what_is_no_good_key_is_nobody(given: str) -> None:
    """KEY.2"""
    asking = Program()
    asking.headers = {"Authorization": given} if given else {}
    refused = asking.get("/runs")
    assert code_of(refused) == (401, "request.unauthenticated")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_key_beside_a_session_counts_and_not_the_session() -> None:
    """KEY.2"""
    asking = Program("wp_000000000000_" + "a" * 43)
    asking.client.force_login(person(is_superuser=True))
    assert asking.get("/runs").status_code == 401


@pytest.mark.parametrize("how", ["revoked", "expired", "inactive"])
def test_a_key_that_is_over_is_nobody(how: str) -> None:
    """KEY.2"""
    user = person(*LOOK)
    asking = Program(key_of(user, "read"))
    assert asking.get("/runs").status_code == 200
    match how:
        case "revoked":
            api_keys.revoke(ApiKey.objects.get().public_id, actor=user_actor(user), now=timezone.now())
        case "expired":
            later = timezone.now() + timedelta(days=1)
            with pytest.raises(Refusal):
                api_keys.caller_of_key(asking.headers["Authorization"].split()[1], now=later)
            return
        case "inactive":
            get_user_model()._default_manager.filter(pk=user.pk).update(is_active=False)
    assert code_of(asking.get("/runs")) == (401, "request.unauthenticated")


def test_a_key_may_what_its_owner_may_and_its_scopes_name() -> None:
    """KEY.3"""
    run = publish_run(WAITS)
    user = person(*LOOK, "cancel_run")
    reads, acts = Program(key_of(user, "read", name="reads")), Program(key_of(user, "operate", name="acts"))
    assert code_of(reads.post(f"/runs/{run}/cancel")) == (403, "key.scope")
    assert code_of(acts.get(f"/runs/{run}")) == (403, "key.scope")
    assert code_of(acts.post(f"/runs/{run}/pause")) == (403, "access.denied")
    assert Run.objects.get(pk=run).status == "queued"
    assert acts.post(f"/runs/{run}/cancel", {"reason": "no need"}).status_code == 200
    assert Run.objects.get(pk=run).status == "cancelled"
    entry = AuditEntry.objects.get(action="run.cancel")
    assert (entry.actor, entry.reason) == ("ann (key acts)", "no need")


def test_people_make_keys_for_themselves_only_and_revoke_their_own() -> None:
    """KEY.4"""
    ann, bob = person("add_apikey"), person("add_apikey", name="bob")
    now = timezone.now()
    made = api_keys.create(owner="ann", name="ci", scopes=["read"], actor=user_actor(ann), now=now)
    with pytest.raises(Refusal) as denied:
        api_keys.create(owner="ann", name="ci", scopes=["read"], actor=user_actor(bob), now=now)
    assert denied.value.code == "access.denied"
    with pytest.raises(Refusal) as other:
        api_keys.revoke(made.key.public_id, actor=user_actor(bob), now=now)
    assert other.value.code == "access.denied"
    assert api_keys.revoke(made.key.public_id, actor=user_actor(ann), now=now)
    assert not api_keys.revoke(made.key.public_id, actor=user_actor(ann), now=now)
    told = [(one.action, one.allowed) for one in AuditEntry.objects.order_by("pk")]
    assert told == [("apikey.create", True), ("apikey.revoke", False), ("apikey.revoke", True)]


@pytest.mark.parametrize(
    ("name", "scopes", "days"),
    [("", ["read"], 1), ("x\0", ["read"], 1), ("x", [], 1), ("x", ["all"], 1), ("x", ["read"], 0)],
)
def test_a_key_that_says_nothing_useful_is_not_made(name: str, scopes: list[str], days: int) -> None:
    person()
    with pytest.raises(Refusal) as refused:
        api_keys.create(owner="ann", name=name, scopes=scopes, days=days, actor=SHELL, now=timezone.now())
    assert refused.value.code == "key.invalid"
    assert not ApiKey.objects.exists()


def refusal_at(process: Allotment, key: ApiKey, now: datetime) -> Refusal | None:
    try:
        process.spend(key, now=now)
    except Refusal as refusal:
        return refusal
    return None


def test_a_minute_has_so_many_requests_over_all_processes(settings: Any) -> None:
    """KEY.5"""
    settings.WAYPOST_API_REQUESTS_PER_MINUTE = 50
    key_of(person(), "read")
    key, now = ApiKey.objects.get(), timezone.now().replace(second=12, microsecond=0)
    processes = [Allotment(), Allotment(), Allotment()]
    refused = [one for turn in range(90) if (one := refusal_at(processes[turn % 3], key, now)) is not None]
    assert {(one.code, one.data["wait"]) for one in refused} == {("request.too_many", 48)}
    assert len(refused) == 40
    processes[0].spend(key, now=now + timedelta(seconds=48))


def test_who_calls_too_often_is_told_when_to_come_again(settings: Any) -> None:
    """KEY.5"""
    settings.WAYPOST_API_REQUESTS_PER_MINUTE = 1
    asking = program(*LOOK)
    answers = [asking.get("/runs") for _ in range(3)]
    refused = next(one for one in answers if one.status_code == 429)
    assert refused.json()["code"] == "request.too_many"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60


def test_most_requests_of_a_key_write_nothing(settings: Any) -> None:
    """KEY.6"""
    settings.WAYPOST_API_REQUESTS_PER_MINUTE = 600
    asking = program(*LOOK)
    asking.get("/runs")
    used = ApiKey.objects.get().last_used_at
    with CaptureQueriesContext(
        connection,
    ) as queries:
        asking.get("/runs")
    written = [one["sql"] for one in queries if one["sql"].lstrip().upper().startswith(("UPDATE", "INSERT", "DELETE"))]
    assert len(written) <= 1  # a new minute may have begun
    assert used is not None


def commanded(*words: str) -> str:
    out = io.StringIO()
    call_command("api_keys", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_commands_make_list_and_revoke_keys() -> None:
    person(*LOOK)
    key = commanded("create", "ci", "--owner", "ann", "--scope", "read", "--days", "7").strip()
    assert Program(key).get("/runs").status_code == 200
    listed = json.loads(commanded("list", "--json"))
    assert [(one["name"], one["owner"], one["scopes"], one["state"]) for one in listed] == [
        ("ci", "ann", ["read"], "good")
    ]
    assert "ci" in commanded("list")
    assert "is revoked" in commanded("revoke", listed[0]["id"])
    assert "was revoked already" in commanded("revoke", listed[0]["id"])
    assert Program(key).get("/runs").status_code == 401


def test_the_page_shows_a_new_key_once_and_revokes_it() -> None:
    """KEY 1, 4"""
    client = Client()
    client.force_login(person(*LOOK, "add_apikey"))
    made = client.post("/account/keys/", {"name": "<b>ci", "scope": ["read", "start"], "days": "30"})
    page = made.content.decode()
    key = re.search(r"wp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", page)
    assert key is not None
    assert made.headers["Cache-Control"] == "no-store"
    assert "<b>ci" not in page
    assert Program(key[0]).get("/runs").status_code == 200
    again = client.get("/account/keys/").content.decode()
    assert key[0] not in again
    public_id = ApiKey.objects.get().public_id
    assert f"wp_{public_id}_…" in again
    assert client.post("/account/keys/", {"revoke": public_id}).status_code == 302
    assert Program(key[0]).get("/runs").status_code == 401


def test_a_form_without_a_scope_says_so_and_keeps_the_name() -> None:
    client = Client()
    client.force_login(person("add_apikey"))
    refused = client.post("/account/keys/", {"name": "nightly", "days": "30"})
    assert refused.status_code == 422
    assert "at least one scope" in refused.content.decode()
    assert "nightly" in refused.content.decode()
    assert not ApiKey.objects.exists()


def test_who_may_make_no_keys_makes_none() -> None:
    client = Client()
    client.force_login(person(*LOOK))
    assert client.post("/account/keys/", {"name": "x", "scope": "read", "days": "7"}).status_code == 403
    assert "New key" not in client.get("/account/keys/").content.decode()


def test_the_admin_shows_no_secrets_and_revokes() -> None:
    """KEY.4"""
    key_of(person(*LOOK), "read")
    client = Client()
    client.force_login(person(name="ada", is_superuser=True, is_staff=True))
    row = ApiKey.objects.get()
    for address in ("/admin/workflows/apikey/", f"/admin/workflows/apikey/{row.pk}/change/"):
        page = client.get(address)
        assert page.status_code == 200
        assert row.secret_hash not in page.content.decode()
    done = client.post("/admin/workflows/apikey/", {"action": "revoke_keys", "_selected_action": row.pk})
    assert done.status_code == 302
    row.refresh_from_db()
    assert row.revoked_by == "ada"
