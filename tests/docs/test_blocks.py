"""Every code block of the pages is validated or run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.docs.blocks import ALL_BLOCKS, RUN_PAGES, Block, blocks_of
from tests.processes import PROJECT
from workflows.errors import Problem
from workflows.operations.workflows import check_files

TIMEOUT_S = 120

YAML = [block for block in ALL_BLOCKS if block.language == "yaml"]
PYTHON = [block for block in ALL_BLOCKS if block.language == "python"]
PAGES_WITH_COMMANDS = [page for page in RUN_PAGES if any(block.language == "sh" for block in blocks_of(page))]
#: Pages that begin where nothing is.
FROM_NOTHING = frozenset({"README.md", "tutorial.md"})

#: Set up by whoever runs the tests; the rest of such a line is run.
_SET_UP = re.compile(r"^(python3 -m venv |\S*pip install )")
_FRESH = (
    (re.compile(r"\b\d+\.\d\ds\b"), "0.00s"),
    (re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d[:-]\d\d[:-]\d\d)?( UTC|Z|\.\d+\+00:00)?"), "2026-01-31"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


def whole_file(block: Block) -> str:
    """The block as a workflow file."""
    if "steps" in block.options:
        return f"format: 1\nname: demo\nsteps:\n{textwrap.indent(block.text, '  ')}"
    if "rest" in block.options:
        return f"format: 1\nname: demo\nsteps: [{{ id: work, kind: shell, run: 'true' }}]\n{block.text}"
    return block.text


def others_of(block: Block) -> list[str]:
    """The other workflow files of the page, which this one may call."""
    page = [one for one in YAML if one.page == block.page and one is not block]
    return [one.text for one in page if "file" in one.options]


def problems_of(block: Block) -> tuple[Problem, ...]:
    contents = [text.encode() for text in (whole_file(block), *others_of(block))]
    return check_files(contents)[0].problems


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("block", YAML, ids=str)
def test_a_yaml_block_validates_or_gives_the_stated_problem(block: Block) -> None:
    found = [f"{problem.code} {problem.path}: {problem.message}" for problem in problems_of(block)]
    stated = block.options.get("error") or block.options.get("warns")
    if stated is None:
        # functions that only a team has are warnings
        assert [problem for problem in found if not problem.startswith("W107")] == []
    else:
        assert [problem.partition(" ")[0] for problem in found] == [stated]


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_a_python_block_runs(block: Block) -> None:
    script = f"import django\ndjango.setup()\n{block.text}"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_block_says_what_it_is() -> None:
    known = {"yaml", "python", "sh", "text", "json", "mermaid"}
    assert [str(block) for block in ALL_BLOCKS if block.language not in known] == []


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedded database as the first command makes it: made once, for most pages begin with one."""
    folder = tmp_path_factory.mktemp("migrated")
    (folder / "manage.py").symlink_to(PROJECT / "manage.py")
    subprocess.run([sys.executable, "manage.py", "check_ledger"], cwd=folder, env=environment_of(folder), check=True)
    return folder / "var" / "waypost.sqlite3"


@pytest.mark.store("sqlite")
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path, migrated: Path) -> None:
    (tmp_path / "manage.py").symlink_to(PROJECT / "manage.py")
    if page.name not in FROM_NOTHING:
        (tmp_path / "var").mkdir(mode=0o700)
        shutil.copy(migrated, tmp_path / "var")
    blocks = blocks_of(page)
    printed = ""
    for block in blocks:
        if "file" in block.options:
            target = tmp_path / block.options["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "sh" and "setup" not in block.options:
            printed = run(block, tmp_path)
        elif block.language == "text":
            compare(block, printed)


def run(block: Block, folder: Path) -> str:
    """What the block prints. It must end with the stated exit code."""
    done = subprocess.run(
        ["/bin/bash", "-euc", commands_of(block)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment_of(folder),
        timeout=TIMEOUT_S,
        check=False,
    )
    expected = int(block.options.get("exit", "0"))
    assert done.returncode == expected, f"{block} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def commands_of(block: Block) -> str:
    """Without the installation, which would need a network, and with this Python."""
    lines = []
    for line in block.text.replace("\\\n", " ").splitlines():
        parts = [part for part in line.split(" && ") if not _SET_UP.match(part.strip())]
        lines.append(" && ".join(parts).replace(".venv/bin/python", "python"))
    return "\n".join(lines)


def environment_of(folder: Path) -> dict[str, str]:
    shims = folder / ".bin"
    if not shims.exists():
        shims.mkdir()
        shim = shims / "python"
        shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        shim.chmod(0o755)
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": f"{shims}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "WAYPOST_VAR": str(folder / "var"),
        "USER": "ada",
        "LOGNAME": "ada",
        "COLUMNS": "120",
    }


def compare(block: Block, printed: str) -> None:
    stated, found = fresh(block.text), fresh(printed)
    if "part" not in block.options:
        assert found == stated, str(block)
        return
    lines = iter(found.splitlines())
    missing = [line for line in stated.splitlines() if line.strip() not in ("…", "") and line not in lines]
    assert missing == [], f"{block}: not in this order in\n{found}"


def fresh(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, instead in _FRESH:
        text = pattern.sub(instead, text)
    return text
