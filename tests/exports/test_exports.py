"""A run as one document, and such a document as a run of another installation (promise CTL.6)."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.commands.support import give_stdin, manage
from tests.stores_of_tests import wipe
from tests.support.forks import fork_before
from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, play
from tests.support.rows import all_rows, run_rows
from tests.support.scenarios import SCENARIOS
from tests.support.worlds import publish_parent
from workflows.errors import Refusal
from workflows.jsonvalue import digest
from workflows.ledger.advance import advance
from workflows.ledger.inspection_strays import RUN_TABLES
from workflows.ledger.transactions import ledger_transaction
from workflows.models import AuditEntry, Lease, Payload, Plan, Run, Slot
from workflows.operations.exporting import EXPORTED_TABLES, export_run
from workflows.operations.importing import import_document
from workflows.operations.people import Actor, user_actor
from workflows.queries.runs import run_document

pytestmark = pytest.mark.django_db(transaction=True)

SHELL = Actor(name="shell:ann", recorded="shell:ann")
ONE = workflow("  - { id: work, kind: shell, run: x }")
KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")


def exported(run_id: int, **options: Any) -> Any:
    return json.loads("".join(export_run(run_id, actor=SHELL, **options)))


def family() -> tuple[int, int]:
    parent = publish_parent(PARENT, KID)
    Player(parent).play()
    kid = Run.objects.get(parent_run_id=parent).pk
    play(kid, {"work": ok("of the child")})
    play(parent)
    return parent, kid


# ---- export ----------------------------------------------------------------------------------------------------------


def test_an_export_has_everything_of_a_run_and_every_value_it_names() -> None:
    """CTL.6"""
    run_id = SCENARIOS["fanned_out"](advance)
    document = exported(run_id)
    assert (document["format"], document["schema"], document["run"]) == ("waypost-run", 1, run_id)
    (one,) = document["runs"]
    rows = run_rows(run_id)
    for table in EXPORTED_TABLES:
        assert len(one[table._meta.model_name]) == len(rows[table.__name__]), table
    values = {payload["digest"]: payload["text"] for payload in document["payloads"]}
    assert all(digest(text) == name for name, text in values.items())
    named = {visit["output_digest"] for visit in one["visit"]} | {one["run"]["params_digest"]}
    assert named - {None} <= set(values)
    (plan,) = document["plans"]
    assert digest(plan["document"]) == plan["hash"]
    assert "kind: map" in plan["source"]


def test_an_export_leaves_out_only_what_is_of_the_moment() -> None:
    assert set(RUN_TABLES) - set(EXPORTED_TABLES) == {Lease, Slot}


def test_a_live_run_can_be_exported() -> None:
    """CTL.6"""
    run_id = publish_run(ONE)
    before = all_rows()
    assert exported(run_id)["runs"][0]["run"]["status"] == "queued"
    after = all_rows()
    assert [entry["action"] for entry in after.pop("AuditEntry")] == ["run.export"]
    assert {**before, "AuditEntry": None} == {**after, "AuditEntry": None}


def test_child_runs_are_exported_when_they_are_wanted() -> None:
    """CTL.6"""
    parent, kid = family()
    assert [one["run"]["id"] for one in exported(parent)["runs"]] == [parent]
    document = exported(parent, with_children=True)
    assert [one["run"]["id"] for one in document["runs"]] == [parent, kid]
    assert {one["name"] for one in document["workflows"]} == {"parent", "kid"}


def test_a_large_value_is_exported_piece_by_piece() -> None:
    """CTL.6: values that are too large to show are in the document, and none of its pieces holds two of them."""
    steps = "\n".join(f"  - {{ id: s{number}, kind: shell, run: x }}" for number in range(4))
    run_id = publish_run(workflow(steps))
    size = 900_000
    play(run_id, {f"s{number}": ok(str(number) * size) for number in range(4)})
    pieces = list(export_run(run_id, actor=SHELL))
    assert max(map(len, pieces)) < 2 * size
    document = json.loads("".join(pieces))
    assert sum(payload["size"] for payload in document["payloads"]) > 4 * size


@pytest.mark.unsound
def test_a_run_with_a_damaged_plan_and_a_lost_value_is_exported_as_it_is() -> None:
    """CTL.6, PLAN.2"""
    run_id = publish_run(ONE)
    play(run_id)
    lost = Run.objects.get(pk=run_id).params_digest

    @ledger_transaction
    def damage() -> None:
        Plan.objects.update(document="[")
        Payload.objects.filter(digest=lost).delete()

    damage()
    document = exported(run_id)
    assert document["plans"][0]["document"] == "["
    assert lost not in {payload["digest"] for payload in document["payloads"]}
    with pytest.raises(Refusal) as caught:
        import_document(document, actor=SHELL)
    assert "does not match its hash" in caught.value.message


def test_who_may_not_export_does_not() -> None:
    """WEB.2"""
    run_id = publish_run(ONE)
    eve = user_actor(User.objects.create_user("eve"))
    with pytest.raises(Refusal) as caught:
        export_run(run_id, actor=eve)
    assert caught.value.code == "run.not_found"
    with pytest.raises(Refusal) as caught:
        export_run(4711, actor=SHELL)
    assert caught.value.code == "run.not_found"
    assert not AuditEntry.objects.filter(allowed=True).exists()


# ---- import ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(SCENARIOS)))
def test_an_imported_run_is_the_run_that_was_exported(name: str) -> None:
    """CTL.6: another installation, with other numbers."""
    run_id = SCENARIOS[name](advance)
    document, shown, rows = exported(run_id), run_document(run_id), run_rows(run_id)
    wipe()
    for _ in range(3):
        publish_run(workflow("  - { id: other, kind: shell, run: x }", name="other"))
    imported = import_document(document, actor=SHELL)
    assert imported.created
    again = run_document(imported.run)
    assert {**again, "run": 0, "plan": 0} == {**shown, "run": 0, "plan": 0}
    assert _story(run_rows(imported.run)) == _story(rows)


def _story(rows: dict[str, Any]) -> dict[str, Any]:
    tables = {table.__name__ for table in EXPORTED_TABLES} - {"Event"}
    return {name: rows[name] for name in rows if name in tables}


def test_a_family_is_imported_with_numbers_of_its_own() -> None:
    """CTL.6"""
    parent, kid = family()
    document = exported(parent, with_children=True)
    for _ in range(2):
        imported = import_document(document, actor=SHELL)
    assert not imported.created, "the same document is the same run"
    here = Run.objects.get(pk=imported.run)
    child = Run.objects.get(parent_run=here)
    assert {here.pk, child.pk} & {parent, kid} == set()
    assert (child.root_run_id, child.depth, child.status) == (here.pk, 1, "succeeded")
    assert Run.objects.count() == 4


def test_a_child_run_alone_becomes_a_run_without_parent() -> None:
    """CTL.6"""
    _, kid = family()
    imported = import_document(exported(kid), actor=SHELL)
    here = Run.objects.get(pk=imported.run)
    assert (here.parent_run_id, here.root_run_id, here.depth) == (None, None, 0)


def test_a_fork_stays_one_whose_origin_is_not_here() -> None:
    """CTL.6, FORK.8"""
    origin = publish_run(ONE)
    play(origin)
    fork = fork_before(origin, 1).run_id
    play(fork)
    imported = import_document(exported(fork), actor=SHELL)
    here = Run.objects.get(pk=imported.run)
    assert here.fork_of_id == 0
    assert here.fork_revision == Run.objects.get(pk=fork).fork_revision


def _damage(document: Any, how: str) -> Any:
    run = document["runs"][0]
    if how == "value":
        document["payloads"][0]["text"] = '"another"'
    elif how == "plan":
        document["plans"][0]["hash"] = "0" * 64
    elif how == "live":
        run["run"]["status"] = "running"
    elif how == "column":
        del run["visit"][0]["number"]
    elif how == "rows":
        run["event"].pop()
    elif how == "schema":
        document["schema"] = 2
    elif how == "missing value":
        document["payloads"].pop()
    else:
        return how
    return document


@pytest.mark.parametrize(
    "how",
    ["value", "plan", "live", "column", "rows", "schema", "missing value", {}, [], None, {"format": "waypost-run"}],
)
def test_a_damaged_document_is_refused_and_leaves_nothing(how: Any) -> None:
    """CTL.6"""
    run_id = publish_run(ONE)
    play(run_id)
    document = exported(run_id)
    wipe()
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        import_document(_damage(document, how) if isinstance(how, str) else how, actor=SHELL)
    assert caught.value.code == "import.invalid"
    assert all_rows() == before


# ---- by command ------------------------------------------------------------------------------------------------------


def test_the_commands_write_and_read_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTL.6"""
    run_id = publish_run(ONE)
    play(run_id)
    file = tmp_path / "run.json"
    told = manage("runs", "export", str(run_id), "-o", str(file))
    assert told.out == f"run {run_id} is in {file} ({file.stat().st_size:,} bytes).\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    refused = manage("runs", "export", str(run_id), "-o", str(file))
    assert (refused.code, refused.err) == (2, f'error: There is a file "{file}" already.\n')
    printed = manage("runs", "export", str(run_id)).json
    assert printed["runs"] == json.loads(file.read_text())["runs"]
    imported = manage("runs", "import", str(file), "--json").json
    assert imported["new"]
    give_stdin(monkeypatch, file.read_text())
    assert (
        manage("runs", "import", "-").out == f"run {imported['run']} is this document already; nothing was changed.\n"
    )


def test_what_is_no_file_or_no_document_is_told(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.json"
    assert (
        manage("runs", "import", str(nothing)).err
        == f'error: The file "{nothing}" cannot be read: No such file or directory.\n'
    )
    nothing.write_text("no")
    assert manage("runs", "import", str(nothing)).err == f'error: "{nothing}" is not a JSON document.\n'
    nowhere = tmp_path / "no" / "run.json"
    run_id = publish_run(ONE)
    answer = manage("runs", "export", str(run_id), "-o", str(nowhere))
    assert answer.err == f'error: The file "{nowhere}" cannot be written: No such file or directory.\n'
