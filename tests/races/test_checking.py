"""The ledger is checked while it is written: nothing that is sound is called otherwise (promise REV.3)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.db import connection

from tests.support.plans import START, publish_run, workflow
from tests.support.worlds import drive_all, publish_in_line, publish_parent
from workflows.ledger.snapshots import snapshot
from workflows.ledger.transactions import database_thread, ledger_transaction
from workflows.models import Run
from workflows.operations.checking import check_ledger

pytestmark = pytest.mark.django_db(transaction=True)

KID = workflow("  - { id: work, kind: shell, run: x, workspace: none }", name="kid")
PARENT = workflow(
    "  - { id: each, kind: map, over: [1, 2, 3], do: [{ id: call, kind: workflow, ref: kid }] }", name="parent"
)
ITEMS = workflow(
    "  - { id: each, kind: map, over: [1, 2, 3, 4, 5, 6], concurrency: 3, do: [{ id: work, kind: shell, run: x, workspace: none, limit: { group: g, max: 2 } }] }",
    name="items",
)


def test_a_check_beside_live_drivers_finds_nothing(tmp_path: Path) -> None:
    """REV.3"""
    for _ in range(3):
        publish_parent(PARENT, KID)
        publish_run(ITEMS)
        publish_in_line(KID, "a key")
    problems: list[str] = []
    checked: list[int] = []
    over = threading.Event()

    def check() -> None:
        with database_thread():
            while True:
                last = over.is_set()
                for one in check_ledger():
                    checked.append(one.run or 0)
                    problems.extend(f"run {one.run}: {text}" for text in one.problems)
                if last:
                    return

    checker = threading.Thread(target=check)
    checker.start()
    drive_all(tmp_path, drivers=3)
    over.set()
    checker.join()
    assert problems == []
    assert len(checked) > 2 * Run.objects.count(), "several rounds beside the drivers"


def test_a_snapshot_sees_one_moment_and_cannot_write() -> None:
    """REV.3: what is committed meanwhile is not seen, and nobody waits for the one who looks."""
    run_id = publish_run(KID)
    title = Run.objects.filter(pk=run_id).values_list("title", flat=True)

    @ledger_transaction
    def rename() -> None:
        Run.objects.filter(pk=run_id).update(title="another")

    def write() -> None:
        with database_thread():
            rename()

    with snapshot():
        assert title.get() == ""
        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        assert title.get() == ""
    assert title.get() == "another"
    with pytest.raises(Exception, match=r"readonly|read-only"), snapshot(), connection.cursor() as cursor:
        cursor.execute("UPDATE workflows_run SET title = 'a third'")
    assert title.get() == "another"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflows_run SET title = ''")
    assert Run.objects.get(pk=run_id).created_at == START


def test_a_snapshot_is_no_part_of_a_transaction() -> None:
    @ledger_transaction
    def look() -> None:
        with snapshot():
            pass

    with pytest.raises(RuntimeError):
        look()
