"""The tables of the pages say what the code says, and every code, command and key has its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import load_command_class

from tests.docs import promises, samples
from tests.docs.blocks import PAGES
from tests.docs.tables import COMMANDS, MARK, PARTS, actions_of, made
from tests.processes import PROJECT
from workflows.definitions.kind_table import KINDS
from workflows.operations.library import library_files
from workflows.problems import PROBLEMS
from workflows.statuses import RunStatus


def marks() -> dict[str, str]:
    return {match[2]: page.name for page in PAGES for match in MARK.finditer(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_up_to_date(page: Path) -> None:
    old = [match[2] for match in MARK.finditer(page.read_text(encoding="utf-8")) if match[3] != made(match[2])]
    assert old == [], "`python -m tests.docs` writes the tables anew"


def test_every_command_and_every_kind_has_its_table() -> None:
    wanted = {"refusals", "failures", "exit_codes", "kinds", "keys top", "keys common", "keys effect"}
    wanted |= {f"keys {name}" for name in [*KINDS, *PARTS]}
    for name in COMMANDS:
        actions = actions_of(load_command_class("workflows", name).create_parser("manage.py", name))
        wanted |= {f"command {name} {action}" for action in actions} or {f"command {name}"}
    assert wanted - set(marks()) == set()


def test_every_promise_is_on_its_page_and_has_a_test_that_names_it() -> None:
    assert {f"promises {group}" for group in promises.groups()} - set(marks()) == set()
    listed = {number for group in promises.groups().values() for number in group}
    assert listed ^ set(promises.tests_by_promise()) == set()


def test_numbers_of_promises_are_read_as_people_write_them() -> None:
    text = "The gates (ADM 1–3, 7; SET.2, SET.4), CHD.2 and after SIGKILL: MIG.1."
    assert list(promises.numbers_in(text)) == [
        *("ADM.1", "ADM.2", "ADM.3", "ADM.7"),
        *("SET.2", "SET.4"),
        "CHD.2",
        "MIG.1",
    ]


def test_every_problem_is_in_a_table_with_a_sample() -> None:
    prefixes = tuple(word for name in marks() if name.startswith("problems ") for word in name.split()[1:])
    assert [code for code in PROBLEMS if not code.startswith(prefixes)] == []
    assert [code for code in PROBLEMS if code not in samples.problems()] == []


def test_a_code_in_the_text_exists() -> None:
    unknown = [
        (page.name, code)
        for page in PAGES
        for code in re.findall(r"\b[EW]\d{3}\b", page.read_text(encoding="utf-8"))
        if code not in PROBLEMS
    ]
    assert unknown == []


def test_every_status_of_a_run_and_every_table_of_the_database_is_explained() -> None:
    form, architecture = ((PROJECT / "docs" / name).read_text("utf-8") for name in ("format.md", "architecture.md"))
    assert [status for status in RunStatus if f"`{status}`" not in form] == []
    models = {model.__name__ for model in apps.get_app_config("workflows").get_models()}
    assert {name for name in models if f"`{name}`" not in architecture} == set()


def test_the_readme_names_every_shipped_workflow() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    children = {"data_cleanup_batch"}  # started by another one
    assert {name for name in library_files() if f"`{name}`" not in readme} == children
