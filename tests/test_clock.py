"""The database clock: one function, integer milliseconds, the same on both databases (docs/architecture.md)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import BigIntegerField, CharField, Value
from django.db.models.functions import Cast

from workflows.clock import NOW_MS, DatabaseNow, database_now_ms, moment, unix_ms

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_groups")]


def test_the_database_clock_counts_unix_milliseconds() -> None:
    assert abs(database_now_ms() - time.time() * 1000) < 60_000
    assert isinstance(database_now_ms(), int)


def test_the_expression_works_in_filters_with_other_parameters() -> None:
    """Placeholders must not change what the clock says."""
    Group.objects.create(name="a")
    early, late = database_now_ms() - 60_000, database_now_ms() + 60_000
    assert (
        Group.objects.annotate(limit=Value(late, output_field=BigIntegerField()))
        .filter(name="a", limit__gt=DatabaseNow())
        .count()
        == 1
    )
    assert (
        Group.objects.annotate(limit=Value(early, output_field=BigIntegerField()))
        .filter(name="a", limit__gt=DatabaseNow())
        .count()
        == 0
    )


def test_the_expression_can_be_reckoned_with() -> None:
    Group.objects.create(name="a")
    row = Group.objects.annotate(now=DatabaseNow(), later=DatabaseNow() + 15_000).get()
    assert row.later - row.now in range(15_000, 15_050)


def test_the_expression_works_in_updates() -> None:
    Group.objects.create(name="a")
    changed = Group.objects.filter(name="a", id__lt=DatabaseNow()).update(name=Cast(DatabaseNow(), CharField()))
    assert changed == 1
    assert abs(int(Group.objects.get().name) - time.time() * 1000) < 60_000


def test_the_text_is_usable_with_and_without_parameters() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {NOW_MS[connection.vendor]}")
        bare = cursor.fetchone()[0]
        cursor.execute(f"SELECT {NOW_MS[connection.vendor]} WHERE 1 = %s", [1])
        bound = cursor.fetchone()[0]
    assert 0 <= bound - bare < 60_000


@pytest.mark.store("postgresql")
def test_the_clock_is_not_stale_inside_a_transaction() -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT {NOW_MS[connection.vendor]}")
        began = cursor.fetchone()[0]
        cursor.execute(f"SELECT pg_sleep(0.02), {NOW_MS[connection.vendor]}")
        now = cursor.fetchone()[1]
        cursor.execute("ROLLBACK")
    assert now - began >= 20


@pytest.mark.store("sqlite")
def test_the_clock_of_sqlite_loses_no_millisecond_to_rounding() -> None:
    statement = f"SELECT {NOW_MS[connection.vendor]}".replace("'now'", "%s")
    with connection.cursor() as cursor:
        for wanted in range(1_700_000_000_000, 1_700_000_001_000, 7):
            cursor.execute(statement, [moment(wanted).strftime("%Y-%m-%d %H:%M:%S.%f")])
            assert cursor.fetchone()[0] == wanted


def test_moments_and_milliseconds_are_each_other_s_inverse() -> None:
    assert moment(1_700_000_000_123) == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert unix_ms(moment(-1)) == -1
    assert unix_ms(datetime(2023, 11, 15, 0, 13, 20, 123_999, tzinfo=timezone(timedelta(hours=2)))) == 1_700_000_000_123
    with pytest.raises(ValueError, match=r"^a moment needs a time zone$"):
        unix_ms(datetime(2023, 11, 15))
