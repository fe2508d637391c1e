"""Migrating a database that has runs (promise MIG.3)."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.support.plans import publish_run, workflow
from tests.support.players import Player
from tests.support.rows import all_rows, assert_sound
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

PARKED = workflow('  - { id: ask, kind: question, ask: "Well?" }')
FAILED = workflow("  - { id: stop, kind: end, status: failed }")
LIVE = workflow('  - { id: work, kind: shell, run: "true" }')


def test_a_migration_changes_the_status_of_no_run() -> None:
    """MIG.3: one migration of the framework is taken as not applied, so that there is something to apply."""
    parked, failed = Player(publish_run(PARKED)), Player(publish_run(FAILED))
    parked.play()
    failed.play()
    live = publish_run(LIVE)
    rows = all_rows()
    last = MigrationRecorder.Migration.objects.filter(app="auth").order_by("-id").first()
    assert last is not None
    last.delete()

    call_command("migrate", verbosity=0)

    assert MigrationRecorder(connection).applied_migrations()[("auth", last.name)]
    assert all_rows() == rows
    statuses = dict(Run.objects.values_list("pk", "status"))
    assert statuses == {parked.run_id: "paused", failed.run_id: "failed", live: "queued"}
    assert_sound()
