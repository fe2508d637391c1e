"""MIG.1: current, old, newer and inconsistent are told apart by order of application."""

from __future__ import annotations

import pytest
from django.core.checks import Error, Info, Warning
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from workflows.checks import check_schema
from workflows.errors import Refusal
from workflows.stores.bootstrap import ensure_schema
from workflows.stores.schema_state import SchemaReport, SchemaState, compare, schema_state

KNOWN = ["0001_initial", "0002_more", "0003_rest"]


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (KNOWN, SchemaReport(state=SchemaState.CURRENT)),
        (
            [],
            SchemaReport(state=SchemaState.OLD, missing=tuple(f"workflows.{name}" for name in KNOWN), is_empty=True),
        ),
        (KNOWN[:2], SchemaReport(state=SchemaState.OLD, missing=("workflows.0003_rest",))),
        ([*KNOWN, "0004_future"], SchemaReport(state=SchemaState.NEWER, unknown=("0004_future",))),
        (
            ["0001_initial", "0002_other"],
            SchemaReport(state=SchemaState.INCONSISTENT, position=2, found="0002_other", expected="0002_more"),
        ),
        (
            ["0002_more", "0001_initial", "0003_rest"],
            SchemaReport(state=SchemaState.INCONSISTENT, position=1, found="0002_more", expected="0001_initial"),
        ),
    ],
)
def test_the_order_of_application_decides(applied: list[str], expected: SchemaReport) -> None:
    assert compare(applied=applied, known=KNOWN) == expected


@pytest.mark.parametrize(
    ("applied", "sentence"),
    [
        (KNOWN, "All migrations are applied."),
        ([], "3 migration(s) are not applied yet: workflows.0001_initial, workflows.0002_more, workflows.0003_rest."),
        (
            [*KNOWN, "0004", "0005", "0006", "0007"],
            "The database was migrated by a newer version of Waypost (it has 0004, 0005, 0006 and 1 more); "
            "nothing is applied.",
        ),
        (
            ["0001_initial", "0002_other"],
            "The migrations applied to the database do not match this code: position 2, "
            "found 0002_other, expected 0002_more.",
        ),
    ],
)
def test_every_state_is_described_in_a_sentence(applied: list[str], sentence: str) -> None:
    assert compare(applied=applied, known=KNOWN).describe() == sentence


def record(name: str) -> None:
    MigrationRecorder(connection).record_applied("workflows", name)


@pytest.mark.django_db(transaction=True)
class TestAgainstTheDatabase:
    @pytest.fixture(autouse=True)
    def _restore_the_records(self) -> object:
        recorder = MigrationRecorder(connection)
        before = list(recorder.migration_qs.order_by("id").values())
        yield
        recorder.migration_qs.all().delete()
        recorder.migration_qs.bulk_create([recorder.Migration(**row) for row in before])

    def test_a_migrated_database_is_current(self) -> None:
        assert ensure_schema() == schema_state() == SchemaReport(state=SchemaState.CURRENT)
        assert check_schema(None, databases=["default"]) == []

    def test_a_newer_database_is_opened_and_nothing_applied(self, caplog: pytest.LogCaptureFixture) -> None:
        record("9999_of_the_future")
        sentence = (
            "The database was migrated by a newer version of Waypost (it has 9999_of_the_future); nothing is applied."
        )
        assert ensure_schema().state is SchemaState.NEWER
        assert ensure_schema().state is SchemaState.NEWER
        assert [entry.message for entry in caplog.records] == [sentence]
        assert check_schema(None, databases=["default"]) == [Warning(sentence, id="waypost.W004")]

    def test_an_inconsistent_database_is_refused_with_position_found_and_expected(self) -> None:
        recorder = MigrationRecorder(connection)
        first = recorder.migration_qs.filter(app="workflows").order_by("id").first()
        assert first is not None
        recorder.migration_qs.filter(id=first.id).update(name="0001_foreign")
        sentence = (
            "The migrations applied to the database do not match this code: position 1, "
            f"found 0001_foreign, expected {first.name}."
        )
        with pytest.raises(Refusal) as caught:
            ensure_schema()
        assert caught.value.code == "schema.inconsistent"
        assert caught.value.message == sentence
        assert check_schema(None, databases=["default"]) == [
            Error(sentence, hint="Use the code that migrated this database, or restore a backup.", id="waypost.E002")
        ]

    @pytest.mark.store("postgresql")
    def test_on_postgresql_nothing_migrates_by_itself_and_the_refusal_names_the_command(self) -> None:
        recorder = MigrationRecorder(connection)
        last = recorder.migration_qs.filter(app="workflows").order_by("id").last()
        assert last is not None
        recorder.migration_qs.filter(id=last.id).delete()
        with pytest.raises(Refusal) as caught:
            ensure_schema()
        assert caught.value.code == "schema.behind"
        assert caught.value.message.endswith(f" migration(s) are not applied yet: workflows.{last.name}.")
        assert caught.value.hint == "Run `python manage.py migrate`."
        assert not recorder.migration_qs.filter(app="workflows", name=last.name).exists()

    def test_an_old_schema_is_an_information_of_the_checks(self) -> None:
        MigrationRecorder(connection).migration_qs.filter(app="sessions").delete()
        assert check_schema(None, databases=["default"]) == [
            Info(
                "1 migration(s) are not applied yet: sessions.0001_initial.",
                hint="Run `python manage.py migrate`.",
                id="waypost.I001",
            )
        ]
