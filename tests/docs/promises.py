"""What the project promises, by number, and the tests that name each promise in a docstring.

``promises.txt`` has the sentences: a line ``=== GROUP title`` begins a group, ``GROUP.N sentence`` is a promise.
Docstrings of tests name them as ``ADM.5``, several of a group also as ``ADM 1–4, 7``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.processes import PROJECT

_SOURCE = Path(__file__).with_name("promises.txt")
_NUMBERS = r"\d+(?:[–-]\d+)?"


@cache
def groups() -> dict[str, dict[str, str]]:
    """The promises of each group: number to sentence."""
    found: dict[str, dict[str, str]] = {}
    for line in _SOURCE.read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            found[line.split()[1]] = {}
        elif line:
            number, sentence = line.split(" ", 1)
            found[number.partition(".")[0]][number] = sentence
    return found


@cache
def tests_by_promise() -> dict[str, list[Path]]:
    """Which files of tests name a promise, sorted; a promise that the list lacks is in it too."""
    found: dict[str, list[Path]] = {}
    for path in sorted((PROJECT / "tests").rglob("test_*.py")):
        for number in sorted({number for text in _docstrings(path) for number in numbers_in(text)}):
            found.setdefault(number, []).append(path)
    return found


def _docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def numbers_in(text: str) -> Iterator[str]:
    """``ADM 1–3, CHD.2`` names ADM.1, ADM.2, ADM.3 and CHD.2. A group without numbers, as KILL, is named alone."""
    for group, promises in groups().items():
        if group in promises:
            yield from [group] * bool(re.search(rf"\b{group}\b", text))
            continue
        for match in re.finditer(rf"\b{group}(?:\.({_NUMBERS})| ({_NUMBERS}(?:, {_NUMBERS})*))", text):
            for part in (match[1] or match[2]).split(", "):
                first, _, last = part.replace("–", "-").partition("-")
                yield from (f"{group}.{number}" for number in range(int(first), int(last or first) + 1))


@cache
def titles() -> dict[str, str]:
    """What each group is about."""
    lines = _SOURCE.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("=== "))


def rows(group: str) -> Iterator[list[str]]:
    """Number, sentence and links to the files, for the page."""
    for number, sentence in groups()[group].items():
        files = (path.relative_to(PROJECT).as_posix() for path in tests_by_promise().get(number, []))
        links = (f"[{_short(file)}](../{file})" for file in files)
        yield [f"`{number}`", sentence, ", ".join(links)]


def _short(file: str) -> str:
    return file.removeprefix("tests/").removesuffix(".py").replace("test_", "").replace("_", " ")
