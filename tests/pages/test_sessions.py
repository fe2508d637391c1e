"""Where a person is logged in: listed on the account page, ended one by one or all at once (WEB.2)."""

from __future__ import annotations

import time

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.test import Client

from tests.pages.visitors import visitor
from workflows.models import AuditEntry, LoginSession
from workflows.operations.sessions import forget_ended
from workflows.pages.presence import browser_words

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD = "a long word"  # of a test
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"


def person(name: str = "ann") -> User:
    found = get_user_model()._default_manager.filter(username=name).first()
    return found or get_user_model()._default_manager.create_user(username=name, password=PASSWORD)


def browser(agent: str = FIREFOX, name: str = "ann") -> Client:
    """A browser in which somebody has logged in."""
    person(name)
    client = Client(headers={"user-agent": agent})
    assert client.post("/login/", {"username": name, "password": PASSWORD}).status_code == 302
    return client


def account(client: Client) -> str:
    return client.get("/account/").content.decode()


def is_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def number(agent_words: str) -> int:
    return LoginSession.objects.get(browser=agent_words).pk


def test_every_session_is_listed_with_browser_and_address() -> None:
    here, _ = browser(), browser(CHROME)
    browser(name="bob")
    page = account(here)
    assert page.count("began ") == 2
    assert (
        'Firefox on Linux</bdi> <span class="muted">from <bdi>127.0.0.1</bdi></span> <span class="badge">this one'
        in page
    )
    assert "Chrome on Windows" in page


def test_one_session_is_ended_and_its_browser_is_nobody() -> None:
    here, there = browser(), browser(CHROME)
    assert here.post(f"/account/sessions/{number('Chrome on Windows')}/end/").status_code == 302
    assert (is_in(here), is_in(there)) == (True, False)
    entry = AuditEntry.objects.get(action="session.end")
    assert (entry.actor, entry.data) == ("ann", '{"person":"ann","sessions":1}')
    assert "That session had ended already." in here.post("/account/sessions/999/end/", follow=True).content.decode()


def test_all_others_are_ended_and_this_one_stays() -> None:
    here, others = browser(), [browser(CHROME) for _ in range(2)]
    assert "2 other sessions ended." in here.post("/account/sessions/end-others/", follow=True).content.decode()
    assert is_in(here)
    assert not any(is_in(other) for other in others)


def test_the_sessions_of_somebody_else_are_out_of_reach() -> None:
    ann, bob = browser(), browser(CHROME, name="bob")
    ann.post(f"/account/sessions/{number('Chrome on Windows')}/end/")
    ann.post("/account/sessions/end-others/")
    assert is_in(bob)
    assert not AuditEntry.objects.filter(action="session.end").exists()


@pytest.mark.parametrize("address", ["/account/sessions/1/end/", "/account/sessions/end-others/"])
def test_ending_is_a_post_with_a_token(address: str) -> None:
    """INT.6"""
    here = browser()
    assert here.get(address).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = here.cookies
    assert strict.post(address).status_code == 403
    assert is_in(here)


def test_looking_at_something_notes_no_session_and_an_old_note_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    viv = visitor(name="viv", groups=("viewer",))
    viv.get("/runs/")
    assert LoginSession.objects.count() == 0
    here = browser()
    seen = LoginSession.objects.get().seen_at
    here.get("/account/")
    assert LoginSession.objects.get().seen_at == seen
    later = time.time() + 3600
    monkeypatch.setattr("workflows.pages.presence.time.time", lambda: later)
    here.get("/account/")
    assert LoginSession.objects.get().seen_at > seen


def test_a_new_password_leaves_this_session_in_the_list() -> None:
    here, there = browser(), browser(CHROME)
    new = "another long word"
    changed = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post("/account/", changed).status_code == 302
    page = account(here)
    assert page.count("this one</span>") == 1
    assert not is_in(there)


def admin_asks(client: Client, who: User) -> int:
    asked = {"action": "end_sessions", "_selected_action": [str(who.pk)]}
    return client.post("/admin/auth/user/", asked).status_code


def test_an_admin_ends_the_sessions_of_a_person() -> None:
    here = browser()
    assert Group.objects.get(name="admin").permissions.filter(codename="end_session").exists()
    boss = visitor(name="boss", groups=("admin",), is_staff=True)
    assert admin_asks(boss, person()) == 302
    assert not is_in(here)
    assert AuditEntry.objects.get(action="session.end").actor == "boss"


def test_without_the_permission_the_admin_offers_no_such_action() -> None:
    here = browser()
    Group.objects.get(name="admin").permissions.remove(Permission.objects.get(codename="end_session"))
    boss = visitor(name="boss", groups=("admin",), is_staff=True)
    admin_asks(boss, person())
    assert is_in(here)


def test_what_was_kept_of_old_sessions_is_forgotten() -> None:
    browser()
    assert forget_ended() == 0
    LoginSession.objects.update(seen_at="2020-01-01T00:00Z")
    assert forget_ended() == 1
    assert Session.objects.exists()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        (CHROME, "Chrome on Windows"),
        ("curl/8.5.0", "curl"),
        ("", ""),
        ("<script>", ""),
        ("Mozilla/5.0 (iPhone) AppleWebKit/605 Version/18 Safari/604", "Safari on iOS"),
    ],
)
def test_a_browser_is_named_roughly(agent: str, words: str) -> None:
    assert browser_words(agent) == words
