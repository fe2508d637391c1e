"""One server, one browser and one worker for all journeys."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, Error, expect

from tests.browser import chromium
from tests.browser.crew import Crew
from tests.browser.person import PATIENCE_MS, Person, session_of
from tests.browser.server import Server
from tests.pages.visitors import visitor

expect.set_options(timeout=PATIENCE_MS)
#: Somebody who may do everything that the roles of a team allow.
ROLES = ("operator", "approver", "admin")

People = Callable[..., Person]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium.find()
    if path is None:
        reason = "there is no Chromium on this machine; WAYPOST_CHROMIUM may name one"
        if os.environ.get("WAYPOST_REQUIRE_BROWSER") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with chromium.launched(path) as found:
        yield found


@pytest.fixture(scope="package")
def server(browser: Browser, django_db_setup: None) -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


@pytest.fixture(scope="package")
def crew(browser: Browser, django_db_setup: None) -> Iterator[Crew]:
    started = Crew()
    yield started
    started.close()


@pytest.fixture
def worker(crew: Crew, transactional_db: None) -> Iterator[Crew]:
    """A worker is at work; at the end every run has come to rest."""
    crew.work()
    yield crew
    crew.rest()


@pytest.fixture
def by_hand(crew: Crew, transactional_db: None) -> None:
    """Nobody drives runs but the test."""
    crew.kill()


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


def _show(person: Person) -> None:
    """What a person saw when a journey failed."""
    page = person.page
    with suppress(Error):
        print(f"---- {page.url}\n{page.locator('body').inner_text(timeout=2_000)}")


@pytest.fixture
def people(
    request: pytest.FixtureRequest, browser: Browser, server: Server, transactional_db: None
) -> Iterator[People]:
    """Makes a user with a browser: ``people("ann", "operator")``; more words are options of the browser's context."""
    present: list[Person] = []

    def join(name: str = "ann", *roles: str, user: dict[str, Any] | None = None, **options: Any) -> Person:
        if not get_user_model()._default_manager.filter(username=name).exists():
            visitor(name=name, groups=roles or ROLES, **(user or {}))
        person = Person(browser, server, session_of(name), **options)
        present.append(person)
        return person

    yield join
    if request.node.stash.get(_failed, False):
        for person in present:
            _show(person)
    faults = [fault for person in present for fault in person.leave()]
    server.calm()
    assert faults == []
