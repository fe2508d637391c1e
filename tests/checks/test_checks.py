"""The one command that runs every check says what failed, what was skipped, and ends accordingly."""

from __future__ import annotations

import re
import sys

import pytest

from checks import __main__ as checks
from checks.__main__ import Check, all_checks, main, run
from checks.shares import shares
from tests.processes import PROJECT


def command(source: str, *, needs_postgresql: bool = False) -> Check:
    return Check(
        name="tests", title="a check", command=(sys.executable, "-c", source), needs_postgresql=needs_postgresql
    )


def test_a_passing_check_is_ok_and_silent(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(command("print('noise'); print('== 3 passed ==')"), None, is_required=False)
    assert (outcome.word, outcome.note) == ("ok", "3 passed")
    assert capsys.readouterr().out == ""


def test_a_failing_check_shows_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command("print('the reason'); raise SystemExit(1)"), None, is_required=False).is_failure
    assert capsys.readouterr().out == "\n---- a check ----\nthe reason\n"


def test_a_program_that_is_missing_is_a_failure() -> None:
    outcome = run(Check(name="lint", title="x", command=("/nonexistent/program",)), None, is_required=False)
    assert (outcome.word, outcome.note) == ("FAILED", "/nonexistent/program is not installed")


@pytest.mark.parametrize(("is_required", "word"), [(False, "skipped"), (True, "FAILED")])
def test_without_postgresql_its_tests_are_skipped_or_failed_and_said_so(is_required: bool, word: str) -> None:
    outcome = run(command("raise SystemExit(9)", needs_postgresql=True), None, is_required=is_required)
    assert outcome.word == word
    assert outcome.note == "no PostgreSQL server was found (WAYPOST_TEST_DATABASE_URL)"


def test_the_server_that_was_found_is_handed_on() -> None:
    source = "import os; raise SystemExit(os.environ['WAYPOST_TEST_DATABASE_URL'] != 'postgres://x')"
    assert run(command(source, needs_postgresql=True), "postgres://x", is_required=True).word == "ok"


def test_the_checks_can_be_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    named = [command("raise SystemExit(0)"), Check(name="other", title="other", command=("/nonexistent",))]
    monkeypatch.setattr(checks, "all_checks", lambda workers, shares: named)
    assert main(["tests"]) == 0
    assert capsys.readouterr().out.endswith("\n\nEvery check passed.\n")
    assert main(["other"]) == 1
    assert capsys.readouterr().out.endswith("\n\nFailed: other.\n")
    with pytest.raises(SystemExit):
        main(["unknown"])
    assert "there is no check unknown; --list names them" in capsys.readouterr().err


def test_the_development_page_lists_every_check() -> None:
    page = (PROJECT / "docs" / "development.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.M) == [check.name for check in all_checks(2)]


@pytest.mark.parametrize(
    ("loop_s", "cores", "number"),
    [(0.2, 2, 1), (0.43, 2, 1), (0.43, 1, 2), (0.7, 2, 2), (0.7, 8, 1), (2.0, 2, 4), (0.0, 64, 1)],
)
def test_a_machine_tries_as_much_as_it_has_time_for(loop_s: float, cores: int, number: int) -> None:
    assert shares(loop_s, cores) == number
