"""Fixtures of all tests. A test that uses the database says ``pytestmark = pytest.mark.django_db(transaction=True)``.

The suite runs on SQLite; ``--store postgresql`` runs what touches the database on PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from zlib import crc32

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from tests import soundness, stores_of_tests
from tests.processes import Processes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=["sqlite", "postgresql"],
        help="database of the tests (default: sqlite, or WAYPOST_TEST_DATABASE_URL); read in tests/settings.py",
    )
    parser.addoption(
        "--share",
        metavar="K/N",
        help="of the tests that use a database only the Kth of N shares, the same ones each time",
    )


def pytest_report_header() -> str:
    return f"database: {connection.vendor}"


def _concerns_this_store(item: pytest.Item) -> bool:
    if (marker := item.get_closest_marker("store")) is not None:
        return connection.vendor in marker.args
    return connection.vendor == "sqlite" or _uses_a_database(item)


def _uses_a_database(item: pytest.Item) -> bool:
    return "django_db" in item.keywords or "processes" in getattr(item, "fixturenames", ())


def _in_share(share: str | None) -> Callable[[pytest.Item], bool]:
    """Whether a test is in the share ``K/N``: by its name, so that it is in the same one in every process and run."""
    number, _, shares = (share or "1/1").partition("/")
    return lambda item: crc32(item.nodeid.encode()) % int(shares) == int(number) - 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the other database are left out; the pass on PostgreSQL repeats only what a database can change."""
    wanted = _in_share(config.getoption("--share"))
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        runs = _concerns_this_store(item) and (wanted(item) or not _uses_a_database(item))
        (kept if runs else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    with django_db_blocker.unblock():
        stores_of_tests.hurry()
        stores_of_tests.remember_baseline()


def _wipe(case: TransactionTestCase) -> None:
    stores_of_tests.wipe()


# Django's flush truncates every table and rebuilds permissions after each test, which costs more than most tests.
TransactionTestCase._fixture_teardown = _wipe  # type: ignore[method-assign]


@pytest.fixture
def store() -> str:
    """``sqlite`` or ``postgresql``."""
    return connection.vendor


#: Rooms whose tests only look at what others wrote.
_TRANSLATING = frozenset({"admin", "docs", "library", "pages", "queries"})


@pytest.fixture(autouse=True)
def _sound_ledger(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test leaves in the ledger tells one story (REV.3), unless the test planted faults (marker ``unsound``)."""
    touches = request.node.get_closest_marker("django_db") or "transactional_db" in request.fixturenames
    touches = touches and request.path.parent.name not in _TRANSLATING
    if not touches or request.node.get_closest_marker("unsound"):
        yield
        return
    request.getfixturevalue("db")
    failed = request.session.testsfailed
    soundness.forget_inspection()
    yield
    if request.session.testsfailed == failed:
        problems = soundness.problems_left()
        assert problems == [], "The test left a ledger that is not sound:\n" + "\n".join(problems)


@pytest.fixture
def no_groups(transactional_db: None) -> None:
    """Without the roles that come with an installation, for tests in which a group stands for any row."""
    Group.objects.all().delete()


@pytest.fixture
def processes(transactional_db: None) -> Iterator[Processes]:
    """Starts ``manage.py`` and other processes on the database of this test."""
    started = Processes()
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _private_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("WAYPOST_SECRET_"):
            monkeypatch.delenv(name)
