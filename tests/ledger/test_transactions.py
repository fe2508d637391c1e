"""The runner of ledger verbs: whole, durable, repeated only when nothing can have been written (DESIGN §4.1)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from workflows.ledger.transactions import (
    NestedLedgerTransactionError,
    after_commit,
    ledger_transaction,
    require_ledger_transaction,
)

pytestmark = pytest.mark.django_db(transaction=True)


@ledger_transaction
def add_group(*, name: str) -> str:
    require_ledger_transaction()
    return Group.objects.create(name=name).name


def test_a_verb_commits_and_returns_its_answer() -> None:
    assert add_group(name="a") == "a"
    assert list(Group.objects.values_list("name", flat=True)) == ["a"]


def test_a_verb_inside_a_verb_is_refused() -> None:
    @ledger_transaction
    def outer() -> None:
        add_group(name="inner")

    with pytest.raises(NestedLedgerTransactionError, match=r"^add_group opens a transaction of its own"):
        outer()
    assert Group.objects.count() == 0


def test_a_verb_inside_a_plain_transaction_is_refused() -> None:
    with pytest.raises(NestedLedgerTransactionError), transaction.atomic():
        add_group(name="inner")


def test_listeners_run_after_the_commit_and_a_failing_one_stops_none() -> None:
    """EVT.3"""
    seen: list[object] = []

    @ledger_transaction
    def publish() -> None:
        Group.objects.create(name="x")
        after_commit(lambda: seen.append(Group.objects.filter(name="x").exists()))
        after_commit(lambda: 1 / 0)
        after_commit(lambda: seen.append("last"))

    publish()
    assert seen == [True, "last"]
