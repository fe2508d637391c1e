"""Logging in and out, the password, the theme."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor

pytestmark = pytest.mark.django_db(transaction=True)

LOGIN = "/login/"


def person(name: str = "ann", password: str = "a long word") -> None:
    get_user_model()._default_manager.create_user(username=name, password=password)


def log_in(client: Client, password: str = "a long word", **more: str) -> int:
    return client.post(LOGIN, {"username": "ann", "password": password, **more}).status_code


def test_a_fresh_installation_says_how_the_first_person_is_made() -> None:
    assert "python manage.py createsuperuser" in Client().get(LOGIN).content.decode()
    person()
    assert "createsuperuser" not in Client().get(LOGIN).content.decode()


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/runs/?status=failed", "/runs/?status=failed"),
        ("", "/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_after_the_login_comes_what_was_asked_for_on_this_site(wanted: str, reached: str) -> None:
    person()
    response = Client().post(LOGIN, {"username": "ann", "password": "a long word", "next": wanted})
    assert response.headers["Location"] == reached
    client = visitor(name="bob")
    assert client.post("/theme/", {"theme": "dark", "next": wanted}).headers["Location"] == reached


def test_who_types_wrong_passwords_has_to_wait(settings: pytest.FixtureRequest) -> None:
    settings.AXES_FAILURE_LIMIT = 3  # type: ignore[attr-defined]
    person()
    client = Client()
    assert [log_in(client, "wrong") for _ in range(3)] == [200, 200, 429]
    assert log_in(client) == 429
    locked = client.post(LOGIN, {"username": "ann", "password": "a long word"})
    assert "Too many wrong passwords" in locked.content.decode()
    # others are not kept out, and neither is she from elsewhere
    assert log_in(Client(REMOTE_ADDR="10.0.0.9")) == 302


def test_a_right_password_forgets_the_wrong_ones(settings: pytest.FixtureRequest) -> None:
    settings.AXES_FAILURE_LIMIT = 3  # type: ignore[attr-defined]
    person()
    for _ in range(3):
        assert [log_in(Client(), word) for word in ("wrong", "wrong", "a long word")] == [200, 200, 302]


def test_logging_out_takes_a_post() -> None:
    client = visitor(name="ann")
    assert client.get("/logout/").status_code == 405
    assert client.get("/").status_code == 200
    assert client.post("/logout/").headers["Location"] == LOGIN
    assert client.get("/").status_code == 302


def test_the_password_is_changed_with_the_old_one() -> None:
    person()
    client, other = Client(), Client()
    log_in(client)
    log_in(other)
    words = {"new_password1": "quite another one", "new_password2": "quite another one"}
    wrong = client.post("/account/", {"old_password": "guessed", **words})
    assert "field-error" in wrong.content.decode()
    assert client.post("/account/", {"old_password": "a long word", **words}).status_code == 302
    assert client.get("/").status_code == 200
    assert other.get("/").status_code == 302


def test_the_theme_is_kept_in_this_browser() -> None:
    client = visitor(name="ann")
    assert 'data-theme="auto"' in client.get("/").content.decode()
    client.post("/theme/", {"theme": "dark"})
    assert 'data-theme="dark"' in client.get("/").content.decode()
    client.post("/theme/", {"theme": '"><script>'})
    assert 'data-theme="dark"' in client.get("/").content.decode()


def test_a_forged_theme_does_not_reach_the_page() -> None:
    client = visitor(name="ann")
    client.cookies["theme"] = '"><script>alert(1)</script>'
    assert 'data-theme="auto"' in client.get("/").content.decode()


def test_the_account_says_which_groups_somebody_is_in() -> None:
    page = visitor(name="ann", groups=("operator", "leads")).get(reverse("pages:account")).content.decode()
    assert "<bdi>operator</bdi>" in page
    assert "<bdi>leads</bdi>" in page


def test_whoever_looks_at_an_address_of_forms_gets_a_page_and_changes_nothing() -> None:
    response = visitor(name="ann").get("/logout/")
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"
    assert "only takes what a form sends" in response.content.decode()


@pytest.mark.parametrize(
    ("before", "back"),
    [
        ("http://testserver/runs/7/?tab=steps", "/runs/7/%3Ftab%3Dsteps"),
        ("https://evil.example/runs/7/", "/"),
        ("", "/"),
    ],
)
def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(before: str, back: str) -> None:
    response = Client().post("/runs/7/actions/cancel/", {"reason": "late"}, headers={"referer": before})
    assert response.headers["Location"] == f"{LOGIN}?next={back}"
