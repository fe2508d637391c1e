"""Shipped workflows that need nobody: nightly_import, backup, log_digest, export_watch, site_check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library.support import attempts_of, begin, decide, steps_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_import_repeats_what_failed_once_and_goes_on_without_what_is_missing(workspaces: Path) -> None:
    document = begin("nightly_import", day="2026-01-31")
    assert (document["status"], document["error"]) == ("succeeded", None)
    assert document["output"] == {
        "day": "2026-01-31",
        "prices": 32,
        "loaded": ["alpha", "beta", "gamma", "epsilon"],
        "failed": 0,
    }
    assert sorted(attempts_of(document, "fetch")) == [1, 1, 1, 1, 2]
    keys = [visit["item"]["key"] for visit in document["visits"] if visit["step"] == "fetch"]
    assert sorted(keys) == [f"{name}/2026-01-31" for name in ("alpha", "beta", "delta", "epsilon", "gamma")]
    assert len((workspaces / f"run-{document['run']}" / "prices.csv").read_text().splitlines()) == 32


def test_the_import_asks_when_too_few_suppliers_are_left() -> None:
    document = begin("nightly_import", damaged=["alpha", "beta"])
    (question,) = document["interrupts"]
    assert question["ask"] == "3 of 5 suppliers were loaded. Publish?"
    ended = decide(document["run"], "too_few", "publish")
    assert (ended["status"], ended["output"]["prices"], ended["output"]["failed"]) == ("succeeded", 16, 2)


def test_an_import_that_is_stopped_raises_an_alert(workspaces: Path) -> None:
    run = begin("nightly_import", damaged=["alpha", "beta"])["run"]
    ended = decide(run, "too_few", "stop")
    assert (ended["status"], ended["error"]["code"]) == ("failed", "routed_to_fail")
    assert (workspaces / f"run-{run}" / "alerts.log").read_text() == "import failed with routed_to_fail\n"


def test_the_backup_stores_restores_and_removes_the_oldest(workspaces: Path) -> None:
    document = begin("backup", keep=2)
    assert (document["status"], document["error"]) == ("succeeded", None)
    output = document["output"]
    assert (output["restored_files"], output["removed"]) == (
        2,
        ["2026-01-03.tar.gz", "2026-01-02.tar.gz", "2026-01-01.tar.gz"],
    )
    folder = workspaces / f"run-{document['run']}"
    assert sorted(path.name for path in (folder / "near").iterdir()) == ["2026-01-04.tar.gz", output["archive"]]
    assert [path.name for path in (folder / "far").iterdir()] == [output["archive"]]
    assert not (folder / "restored").exists()


def test_the_backup_of_a_directory_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a.txt").write_text("a")
    output = begin("backup", directory=str(mine))["output"]
    assert (output["restored_files"], output["removed"]) == (1, [])


def test_the_digest_counts_by_level_and_names_the_frequent_errors() -> None:
    assert begin("log_digest")["output"] == {
        "lines": 11,
        "levels": ["ERROR", "WARNING", "INFO"],
        "counts": [2, 3, 6],
        "frequent": ["2 payment refused"],
    }


def test_too_many_errors_in_a_log_end_the_run_as_failed(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("2026-01-31T08:00:00Z ERROR no disk\n2026-01-31T08:00:01Z ERROR no disk\n")
    document = begin("log_digest", file=str(log), most_errors=1)
    assert document["error"] == {
        "code": "ended_failed",
        "step": "too_many",
        "message": 'More than 1 errors: ["2 no disk"]',
    }


def test_the_export_is_looked_at_until_it_is_there() -> None:
    document = begin("export_watch", look_every="1ms", ready_after=2)
    assert document["output"] == {"export": "customers", "looks": 3}
    assert steps_of(document) == ["request", "look", "pause", "look", "pause", "look", "fetched"]


def test_the_export_is_given_up_after_twenty_looks() -> None:
    document = begin("export_watch", look_every="1ms", ready_after=100)
    assert document["error"] == {
        "code": "ended_failed",
        "step": "gave_up",
        "message": "The export customers was not ready after 20 looks.",
    }


def test_the_site_is_checked_page_by_page_and_its_server_ends_with_the_checks() -> None:
    document = begin("site_check")
    assert (document["status"], document["error"]) == ("succeeded", None)
    assert document["output"] == {
        "found": ["index.html", "about.html", "prices.html"],
        "missing": ["jobs.html"],
        "broken": 0,
    }
    (server,) = [visit for visit in document["visits"] if visit["step"] == "serve"]
    assert [attempt["status"] for attempt in server["attempts"]] == ["cancelled"]
