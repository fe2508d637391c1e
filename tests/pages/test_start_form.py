"""The form that starts a run."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from tests.pages.visitors import LOOK, visitor
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.rows import all_rows
from workflows.clock import unix_ms
from workflows.jsonvalue import decode
from workflows.ledger.publishing import Concurrency
from workflows.models import Payload, Run, Workflow, WorkflowAccess

pytestmark = pytest.mark.django_db(transaction=True)

PARAMS = """
params:
  region: { type: string, enum: [eu, us], labels: [Europe, America], default: eu }
  count: { type: integer, min: 1, max: 9, default: 3, title: How many, description: Not too many. }
  factor: { type: number, optional: true }
  dry_run: { type: boolean, default: false }
  hosts: { type: array, items: { type: string }, default: [a, b] }
  weights: { type: array, items: { type: integer }, optional: true }
  size: { type: object, optional: true, properties: { width: { type: integer, min: 1 }, label: { type: string, optional: true } } }
  free: { type: object, optional: true }
  day: { type: date, optional: true }
  note: { type: string, optional: true, sensitive: true }
  tag: { type: string, pattern: '[a-z]+', example: stable }
"""
TEXT = workflow("  - { id: work, kind: shell, run: make }", before=PARAMS)
PLAIN = workflow("  - { id: work, kind: shell, run: make }", before="params: { n: { type: integer } }")
START = (*LOOK, "start_run")
ADDRESS = "/workflows/demo/start/"


def published(text: str = TEXT):
    return store_plan(text, private=False)


def page_text(response) -> str:
    return html.unescape(response.content.decode())


def fields_of(response) -> dict[str, str]:
    """What a browser would send back of the form of a page, without its buttons."""
    content = response.content.decode()
    form = content[content.index('id="start-form"') :]
    found = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r' name="([^"]*)"', tag), re.search(r' value="([^"]*)"', tag)
        if name:
            found[name[1]] = html.unescape(value[1]) if value else ""
    for name, value in re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL):
        found[name] = html.unescape(value)
    for name, options in re.findall(r'<select [^>]*name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    found.pop("csrfmiddlewaretoken", None)
    return found


def values_of(run: Run) -> dict:
    return decode(Payload.objects.get(digest=run.params_digest).text)


def test_the_form_has_a_field_for_every_parameter_with_its_default() -> None:
    published()

    response = visitor(*START).get(ADDRESS)

    sent = fields_of(response)
    assert sent["field-region"] == "eu"
    assert sent["field-count"] == "3"
    assert sent["field-dry_run"] == "false"
    assert sent["field-hosts"] == "a\nb"
    assert sent["field-size:width"] == ""
    assert sent["field-tag"] == ""
    text = page_text(response)
    assert "Not too many." in text
    assert ">Europe</option>" in text
    assert 'placeholder="stable"' in text
    assert 'type="date"' in text
    assert 'type="password"' in text


def test_what_is_typed_starts_a_run_with_values_of_the_declared_types() -> None:
    published()
    client = visitor(*START)
    sent = fields_of(client.get(ADDRESS)) | {
        "field-region": "us",
        "field-count": "7",
        "field-factor": "1.5",
        "field-dry_run": "true",
        "field-hosts": "one\r\n two \r\n",
        "field-weights": "1\n2",
        "field-size:width": "4",
        "field-free": '{"deep": [1, {"x": null}]}',
        "field-day": "2026-01-31",
        "field-note": "hush",
        "field-tag": "stable",
        "title": "For the demo",
        "priority": "5",
        "action": "start",
    }

    response = client.post(ADDRESS, sent)

    run = Run.objects.get()
    assert response.url == f"/runs/{run.pk}/"
    assert values_of(run) == {
        "region": "us",
        "count": 7,
        "factor": 1.5,
        "dry_run": True,
        "hosts": ["one", "two"],
        "weights": [1, 2],
        "size": {"width": 4},
        "free": {"deep": [1, {"x": None}]},
        "day": "2026-01-31",
        "note": "hush",
        "tag": "stable",
    }
    assert (run.title, run.started_by, run.origin, run.priority) == ("For the demo", "ann", "page", 5)
    assert run.idempotency_key == sent["key"]


def test_a_form_that_is_sent_twice_starts_one_run() -> None:
    """PUB.8"""
    published(PLAIN)
    client = visitor(*START)
    sent = {**fields_of(client.get(ADDRESS)), "field-n": "1", "action": "start"}

    first, second = client.post(ADDRESS, sent), client.post(ADDRESS, sent, follow=True)

    assert Run.objects.count() == 1
    assert first.url == second.redirect_chain[0][0]
    assert "had started run" in page_text(second)


def test_every_rendered_form_has_a_key_of_its_own() -> None:
    """PUB.8"""
    published(PLAIN)
    client = visitor(*START)

    assert fields_of(client.get(ADDRESS))["key"] != fields_of(client.get(ADDRESS))["key"]


def test_a_key_that_was_used_for_something_else_is_told_and_a_new_one_filled_in() -> None:
    """PUB.3"""
    published(PLAIN)
    client = visitor(*START)
    sent = {**fields_of(client.get(ADDRESS)), "field-n": "1", "action": "start"}
    client.post(ADDRESS, sent)

    response = client.post(ADDRESS, {**sent, "field-n": "2"})

    assert response.status_code == 409
    assert Run.objects.count() == 1
    again = fields_of(response)
    assert again["field-n"] == "2"
    assert again["key"] not in ("", sent["key"])
    assert f"/runs/{Run.objects.get().pk}/" in page_text(response)
    assert client.post(ADDRESS, {**again, "action": "start"}).status_code == 302
    assert Run.objects.count() == 2


def test_problems_stand_beside_their_fields_and_nothing_typed_is_lost() -> None:
    """PUB.2"""
    published()
    client = visitor(*START)
    typed = {
        "field-region": "mars",
        "field-count": "ten",
        "field-hosts": " a \n\n<b>",
        "field-weights": "x",
        "field-size:width": "0",
        "field-size:label": "wide",
        "field-free": '{"a": ',
        "field-day": "31.12.2026",
        "field-note": "hush",
        "field-tag": "NO",
        "title": "Keep me",
        "priority": "7",
    }
    before = all_rows()

    response = client.post(ADDRESS, {**fields_of(client.get(ADDRESS)), **typed, "action": "start"})

    assert response.status_code == 422
    assert all_rows() == before
    again = fields_of(response)
    assert {name: again[name] for name in typed if name != "field-region"} == {
        name: text for name, text in typed.items() if name != "field-region"
    }
    text = page_text(response)
    for message in (
        '"count" must be a whole number, but it is the text "ten".',
        '"size.width" must be at least 1, but it is 0.',
        '"day" must be a date such as 2026-01-31, but it is "31.12.2026".',
        '"tag" must match [a-z]+, but it is "NO".',
    ):
        assert message in text
    place = text.index('id="id_field-tag"')
    assert text.index('"tag" must match', place) < text.index('id="title"')


def test_a_choice_that_is_none_of_the_declared_ones_is_told() -> None:
    published()
    client = visitor(*START)

    response = client.post(ADDRESS, {"field-region": "mars", "field-tag": "x", "action": "start"})

    assert response.status_code == 422
    assert '"region" must be one of eu, us; it is "mars".' in page_text(response)


def test_a_cleared_list_is_an_empty_list_and_a_cleared_number_its_default() -> None:
    published()
    client = visitor(*START)
    sent = fields_of(client.get(ADDRESS)) | {"field-hosts": "", "field-count": "", "field-tag": "x", "action": "start"}

    client.post(ADDRESS, sent)

    assert values_of(Run.objects.get()) == {
        "region": "eu", "count": 3, "dry_run": False, "hosts": [], "tag": "x",
    }  # fmt: skip


# ---- JSON ------------------------------------------------------------------------------------------------------------


def test_the_form_becomes_json_and_comes_back_the_same() -> None:
    published()
    client = visitor(*START)
    sent = fields_of(client.get(ADDRESS)) | {"field-count": "7", "field-tag": "x", "field-size:width": "2"}

    as_json = fields_of(client.post(ADDRESS, {**sent, "action": "json"}))
    assert json.loads(as_json["json"]) == {
        "region": "eu", "count": 7, "dry_run": False, "hosts": ["a", "b"], "size": {"width": 2}, "tag": "x",
    }  # fmt: skip
    assert (as_json["mode"], as_json["key"]) == ("json", sent["key"])

    back = fields_of(client.post(ADDRESS, {**as_json, "action": "form"}))
    assert back == sent


def test_json_starts_a_run_and_problems_name_the_path() -> None:
    """PUB.2"""
    published()
    client = visitor(*START)
    form = fields_of(client.post(ADDRESS, {**fields_of(client.get(ADDRESS)), "action": "json"}))

    refused = client.post(ADDRESS, {**form, "json": '{"tag": "x", "size": {"width": 0}}', "action": "start"})
    assert refused.status_code == 422
    assert "size.width" in page_text(refused)
    assert fields_of(refused)["json"] == '{"tag": "x", "size": {"width": 0}}'

    assert client.post(ADDRESS, {**form, "json": '{"tag": "x", "count": 9}', "action": "start"}).status_code == 302
    assert values_of(Run.objects.get())["count"] == 9


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"a": 1, "a": 2}',
        '{"tag": "x", "nope": 1}',
        '{"tag": NaN}',
        '{"tag": 5}',
        '{"hosts": 5}',
        '{"hosts": [{"x": [1]}, true]}',
        '{"size": "wide"}',
        '{"dry_run": "perhaps"}',
    ],
)
def test_json_that_fields_cannot_hold_stays_json(text: str) -> None:
    published()
    client = visitor(*START)

    response = client.post(ADDRESS, {"mode": "json", "json": text, "action": "form"})

    assert fields_of(response)["json"] == text
    assert fields_of(response)["mode"] == "json"
    assert "problem" in page_text(response)
    assert client.post(f"{ADDRESS}preview/", {"mode": "json", "json": text}).status_code == 200


def test_the_preview_follows_what_is_typed() -> None:
    published()
    client = visitor(*START)
    sent = fields_of(client.get(ADDRESS)) | {"field-tag": "x", "field-count": "5", "field-note": "hush"}
    before = all_rows()

    good = page_text(client.post(f"{ADDRESS}preview/", sent))
    bad = page_text(client.post(f"{ADDRESS}preview/", {**sent, "field-count": "50"}))

    assert '"count": 5' in good
    assert "hush" not in good
    assert "p.count=5" in good
    assert '"count" must be at most 9, but it is 50.' in bad
    assert all_rows() == before


# ---- prefilled -------------------------------------------------------------------------------------------------------


def test_a_link_fills_the_form_in() -> None:
    published()

    response = visitor(*START).get(f"{ADDRESS}?p.count=5&p.size:width=2&p.tag=x&title=Again&p.nope=1")

    sent = fields_of(response)
    assert (sent["field-count"], sent["field-size:width"], sent["field-tag"], sent["title"]) == ("5", "2", "x", "Again")
    assert sent["field-hosts"] == "a\nb"
    assert '"nope", which is no parameter' in page_text(response)


def test_an_earlier_run_fills_the_form_in_without_what_is_sensitive() -> None:
    published()
    client = visitor(*START)
    sent = fields_of(client.get(ADDRESS)) | {"field-tag": "x", "field-count": "5", "field-note": "hush"}
    client.post(ADDRESS, {**sent, "title": "The first", "action": "start"})
    published(workflow("  - { id: work, kind: shell, run: make }", before=PARAMS.replace("count:", "amount:")))

    response = client.get(f"{ADDRESS}?from_run={Run.objects.get().pk}")

    again = fields_of(response)
    assert (again["field-tag"], again["title"], again["field-note"]) == ("x", "The first", "")
    text = page_text(response)
    assert "hush" not in text
    assert "no such parameter: count" in text
    assert "sensitive: note" in text
    assert again["key"] != sent["key"]


def test_a_run_that_a_person_may_not_see_fills_nothing_in() -> None:
    """WEB.2"""
    published(PLAIN)
    hidden = publish_run(workflow("  - { id: x, kind: shell, run: x }", name="hidden"))
    client = visitor(*START)
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name="hidden"), group_id=_group("others"))

    assert client.get(f"{ADDRESS}?from_run={hidden}").status_code == 404
    assert client.get(f"{ADDRESS}?from_run=999999").status_code == 404


def _group(name: str) -> int:
    return Group.objects.create(name=name).pk


def test_a_choice_that_is_no_longer_allowed_is_shown_and_not_changed_unseen() -> None:
    published()
    client = visitor(*START)

    response = client.get(f"{ADDRESS}?p.region=mars&p.tag=x")

    assert fields_of(response)["field-region"] == "mars"
    assert client.post(ADDRESS, {**fields_of(response), "action": "start"}).status_code == 422


def test_what_an_earlier_version_took_as_something_else_fills_in_what_it_can() -> None:
    before = (
        "params: { hosts: { type: string }, size: { type: string }, count: { type: string }, tag: { type: string } }"
    )
    published(workflow("  - { id: work, kind: shell, run: make }", before=before))
    client = visitor(*START)
    sent = {"field-hosts": "abc", "field-size": "wide", "field-count": "many", "field-tag": "x", "action": "start"}
    client.post(ADDRESS, sent)
    published()

    response = client.get(f"{ADDRESS}?from_run={Run.objects.get().pk}")

    assert response.status_code == 200
    assert fields_of(response)["field-hosts"] == '"abc"'
    assert client.post(ADDRESS, {**fields_of(response), "action": "start"}).status_code == 422


def test_an_older_version_can_be_started_while_what_is_typed_is_kept() -> None:
    published(PLAIN)
    published(PLAIN.replace("make", "make all"))
    client = visitor(*START)
    sent = fields_of(client.get(ADDRESS))
    assert sent["version"] == "2"

    shown = client.post(ADDRESS, {**sent, "version": "1", "field-n": "4", "action": "version"})
    assert fields_of(shown)["field-n"] == "4"
    assert "not the current one" in page_text(shown)
    client.post(ADDRESS, {**fields_of(shown), "action": "start"})

    assert Run.objects.get().plan.version == 1
    assert client.get(f"{ADDRESS}?version=9").status_code == 404


# ---- before the start ------------------------------------------------------------------------------------------------

LINED_UP = PLAIN.replace("steps:", "concurrency: { key: one, max: 1 }\nsteps:")


def test_who_holds_the_slot_is_told_to_those_who_may_see_it() -> None:
    """PUB.4"""
    published(LINED_UP)
    holder = publish_run(LINED_UP, {"n": 1}, concurrency=Concurrency(key="one", max=1))
    client = visitor(*START)

    text = page_text(client.get(f"{ADDRESS}?p.n=1"))
    assert "No place is free" in text
    assert f'<a href="/runs/{holder}/">run {holder}</a>' in text
    assert "wait in line" in text

    other = LINED_UP.replace("name: demo", "name: other")
    published(other)
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name="demo"), group_id=_group("others"))
    text = page_text(client.get("/workflows/other/start/?p.n=1"))
    assert f"/runs/{holder}/" not in text
    assert "1 run that you may not see" in text


def test_a_start_beside_a_full_line_needs_its_permission_and_a_reason() -> None:
    """PUB.10"""
    published(LINED_UP)
    publish_run(LINED_UP, {"n": 1}, concurrency=Concurrency(key="one", max=1))
    operator, chief = visitor(*START), visitor(*START, "exceed_limit", name="chief")
    sent = {**fields_of(operator.get(ADDRESS)), "field-n": "2", "over_limit": "it burns", "action": "start"}

    assert 'name="over_limit"' not in page_text(operator.get(ADDRESS))
    assert 'name="over_limit"' in page_text(chief.get(ADDRESS))
    assert operator.post(ADDRESS, sent).status_code == 403
    assert Run.objects.count() == 1
    assert chief.post(ADDRESS, sent).status_code == 302
    assert Run.objects.count() == 2


def test_a_run_that_waits_for_a_worker_is_told_before_another_is_started() -> None:
    """WEB.5"""
    published(PLAIN)
    client = visitor(*START)
    assert "No worker is at work" in page_text(client.get(ADDRESS))
    publish_run(PLAIN, {"n": 1})

    text = page_text(client.get(ADDRESS))

    assert "No worker listens." in text
    assert "python manage.py run_worker" in text


def test_a_parameter_that_looks_like_a_credential_is_warned_of_without_its_value() -> None:
    """PUB.7"""
    secret = "ghp_" + "a1B2" * 9
    published(workflow("  - { id: work, kind: shell, run: make }", before="params: { note: { type: string } }"))
    client = visitor(*START)
    sent = {**fields_of(client.get(ADDRESS)), "field-note": secret}

    assert "W601" in page_text(client.post(f"{ADDRESS}preview/", sent))
    response = client.post(ADDRESS, {**sent, "action": "start"})

    told = [str(message) for message in response.wsgi_request._messages]
    assert len(told) == 1
    assert "W601" in told[0]
    assert secret not in told[0]


def test_secrets_that_are_missing_are_named_and_never_shown(settings) -> None:
    settings.WAYPOST_SECRETS = {}
    published(
        workflow("  - { id: work, kind: shell, run: make, env: { K: { secret: api } } }", before="secrets: [api]")
    )
    client = visitor(*START)

    response = client.get(ADDRESS)
    refused = client.post(ADDRESS, {**fields_of(response), "action": "start"})

    assert 'Secret "api" has no value' in page_text(response)
    assert refused.status_code == 422
    assert not Run.objects.exists()


def test_who_may_not_start_runs_sees_no_form_and_starts_nothing() -> None:
    """WEB.2"""
    published(PLAIN)
    client = visitor(*LOOK)

    assert client.get(ADDRESS).status_code == 403
    assert client.post(ADDRESS, {"field-n": "1", "action": "start"}).status_code == 403
    assert client.post(f"{ADDRESS}preview/", {"field-n": "1"}).status_code == 403
    assert not Run.objects.exists()


def test_texts_of_people_stay_texts_in_the_form() -> None:
    """WEB.1"""
    published()
    evil = '"><script>alert(1)</script>'
    client = visitor(*START)
    sent = {
        **fields_of(client.get(ADDRESS)),
        "field-tag": evil,
        "title": evil,
        "key": evil,
        "field-hosts": f"</textarea>{evil}",
    }

    for action in ("start", "json"):
        content = client.post(ADDRESS, {**sent, "action": action}).content.decode()
        assert "<script>alert" not in content
    assert "<script>alert" not in client.get(f"{ADDRESS}?p.tag={evil}&title={evil}&p.{evil}=1").content.decode()


@pytest.mark.parametrize("priority", ["x", "1.5", "101", "-101", "99999999999999999999"])
def test_a_priority_that_is_none_is_refused_with_what_was_typed(priority: str) -> None:
    published(PLAIN)
    client = visitor(*START)
    sent = {**fields_of(client.get(ADDRESS)), "field-n": "1", "priority": priority, "action": "start"}

    response = client.post(ADDRESS, sent)

    assert response.status_code == 422
    assert "The priority must be a whole number" in page_text(response)
    assert fields_of(response)["field-n"] == "1"
    assert not Run.objects.exists()


# ---- later -----------------------------------------------------------------------------------------------------------


def start_later(client, start_at: str):
    published(PLAIN)
    return client.post(ADDRESS, {"field-n": "1", "start_at": start_at, "key": "k"})


def test_a_run_can_be_started_for_a_later_moment() -> None:
    """PUB.11"""
    client = visitor(*START)
    at = timezone.localtime() + timedelta(days=2)

    answer = start_later(client, f"{at:%Y-%m-%dT%H:%M}")

    run = Run.objects.get()
    assert answer.status_code == 302
    assert run.start_at_ms == unix_ms(at.replace(second=0, microsecond=0))
    page = page_text(client.get(f"/runs/{run.pk}/"))
    assert "It starts later, as whoever started it wished." in page
    assert "starts later" in page_text(client.get("/runs/"))


@pytest.mark.parametrize(
    ("start_at", "told"),
    [
        ("tomorrow", "“tomorrow” is no date such as 2026-01-31 or 2026-01-31T09:30."),
        ("2001-01-31T09:30", "has passed; the run cannot start then."),
        ("9001-01-31T09:30", "A run can start at most 366 days from now."),
    ],
)
def test_a_moment_at_which_nothing_can_start_is_told_and_what_was_typed_stays(start_at: str, told: str) -> None:
    answer = start_later(visitor(*START), start_at)

    assert answer.status_code == 422
    assert told in page_text(answer)
    assert f'value="{start_at}"' in page_text(answer)
    assert not Run.objects.exists()


def test_a_sensitive_text_of_several_lines_is_masked_and_comes_back_as_it_was_typed() -> None:
    published(
        workflow(
            "  - { id: work, kind: shell, run: make }",
            before="params: { key: { type: string, multiline: true, sensitive: true }, n: { type: integer } }",
        )
    )
    client = visitor(*START)
    refused = client.post(ADDRESS, {"field-key": "one\ntwo", "field-n": "x", "key": "k"})
    area = re.search(r"<textarea [^>]*name=\"field-key\"[^>]*>\n(.*?)</textarea>", refused.content.decode(), re.DOTALL)
    assert refused.status_code == 422
    assert area is not None
    assert 'class="mono masked"' in area[0]
    assert area[1] == "one\ntwo"
    client.post(ADDRESS, {"field-key": "one\ntwo", "field-n": "1", "key": "k"})
    stored = Payload.objects.get(digest=Run.objects.get().params_digest)
    assert decode(stored.text)["key"] == "one\ntwo"
