"""Whole numbers reach both databases with all their digits, however they are passed."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import DataError, connection
from django.db.models import BigIntegerField, F, IntegerField, Value

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_groups")]

NUMBERS = [0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 1_796_060_444_622, 2**53 - 1, -(2**53)]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_value_keeps_its_digits(number: int) -> None:
    Group.objects.create(name="a")
    for _ in range(3):  # the third time the statement is prepared
        row = Group.objects.annotate(
            bare=Value(number), added=F("id") * 0 + number, typed=Value(number, output_field=BigIntegerField())
        ).get()
        assert (row.bare, row.added, row.typed) == (number, number, number)


def test_small_and_large_numbers_may_alternate_in_one_statement() -> None:
    Group.objects.create(name="a")
    found = [Group.objects.annotate(bare=Value(number)).get().bare for number in NUMBERS * 2]
    assert found == NUMBERS * 2


@pytest.mark.store("postgresql")
def test_a_number_that_a_column_cannot_hold_is_an_error_and_not_another_number() -> None:
    Group.objects.create(name="a")
    with pytest.raises(DataError):
        Group.objects.update(id=Value(2**40, output_field=IntegerField()))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM auth_group WHERE id < 2147483647")
        assert cursor.fetchone() == (1,)
