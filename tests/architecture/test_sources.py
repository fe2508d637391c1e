"""Rules about the sources that no linter knows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from django.conf import settings

from workflows.errors import FAILURES, REFUSALS, ExitCode, Refusal
from workflows.problems import PROBLEMS

PROJECT = Path(settings.BASE_DIR)
SOURCES = sorted(path for folder in ("checks", "config", "workflows") for path in (PROJECT / folder).rglob("*.py"))
LONGEST_FILE = 420
EXIT_CODES = {value for name, value in vars(ExitCode).items() if name.isupper()}


def test_every_source_file_stays_readable_in_length() -> None:
    written = [path for path in SOURCES if "migrations" not in path.parts]  # those are generated
    lengths = {str(path.relative_to(PROJECT)): len(path.read_text().splitlines()) for path in written}
    assert {name: length for name, length in lengths.items() if length >= LONGEST_FILE} == {}


def test_no_file_is_a_collection_of_leftovers() -> None:
    assert [path for path in SOURCES if path.stem in {"utils", "util", "helpers", "common", "misc"}] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(PROJECT))
        for path in SOURCES
        if "migrations" not in path.parts
        and path.read_text().strip()
        and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_modules_import_at_their_head_except_where_starting_up_demands_it() -> None:
    """Deferred imports hide circles between modules; one that saves time says so (``# slow to import``)."""
    allowed = {"manage.py", "checks/postgresql.py"}
    deferred = []
    for path in SOURCES:
        name = str(path.relative_to(PROJECT))
        if name in allowed:
            continue
        lines = path.read_text().splitlines()
        for function in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                deferred += [
                    f"{name}:{node.lineno}"
                    for node in ast.walk(function)
                    if isinstance(node, ast.ImportFrom)
                    and (node.module or "").startswith("workflows")
                    and "# slow to import" not in lines[node.lineno - 1]
                ]
    assert deferred == []


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_a_refusal_has_a_dotted_code_a_sentence_and_known_statuses(code: str) -> None:
    rule = REFUSALS[code]
    assert re.fullmatch(r"[a-z]+\.[a-z_]+", code)
    assert rule.sentence[0].isupper() or rule.sentence[0] == "{"
    assert rule.sentence[-1] in ".}"
    assert rule.http_status in {400, 401, 403, 404, 405, 409, 413, 422, 429, 500, 503}
    assert rule.exit_code in EXIT_CODES
    assert Refusal(code).code == code


@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_failure_has_a_snake_case_code_and_an_outcome(code: str) -> None:
    dotted = {"run.poisoned", "run.too_deep", "run.too_many_children"}  # promised under these names
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code) or code in dotted
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", FAILURES[code].outcome)


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_a_problem_has_a_numbered_code(code: str) -> None:
    assert re.fullmatch(r"[EW][1-9]\d\d|E0\d\d", code)


def test_codes_that_are_raised_are_in_the_list_of_refusals() -> None:
    raised = {
        match.group(1) for path in SOURCES for match in re.finditer(r"\bRefusal\(\s*\"([^\"]+)\"", path.read_text())
    }
    assert raised - set(REFUSALS) == set()


def test_no_test_imports_what_makes_a_process_serve_pages() -> None:
    """``config.wsgi`` and its like say in the environment what the process is, and every process after it would be so."""
    serving = re.compile(r"^\s*(from|import) config\.(asgi|gunicorn|wsgi)", re.MULTILINE)
    assert [str(path) for path in (PROJECT / "tests").rglob("*.py") if serving.search(path.read_text())] == []
