"""What ``repository_report`` does with Python: find a directory, measure its files, write the report.

All of it only reads the directory, so a worker that dies in between costs nothing but time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from os import fsdecode
from pathlib import Path, PurePosixPath
from typing import Any

from workflows.functions import TaskContext, workflow_task
from workflows.workflow_tasks.languages import language_of
from workflows.workflow_tasks.report import Report, markdown

_PACKAGE = Path(__file__).resolve().parent.parent
#: The repository of this project, or what is installed of it.
PROJECT = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else _PACKAGE

#: The list of files that the workflow makes in the workspace: names below the directory, each ended by NUL.
LIST = "files"
#: Larger files are counted, but not read.
MOST_BYTES = 4 * 1024 * 1024
#: A folder reports at most so many of its notes and largest files; the counts are always complete.
MOST_KEPT = 50

_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|[^/]*\.(test|spec))\.[a-z]+$|(^|/)tests?/.*\.[a-z]+$")
_TEST_FUNCTION = re.compile(rb"^\s*(?:async\s+)?def test_\w*|^\s*(?:it|test)\(|^func Test\w*|#\[test\]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory to report on; ``git`` when git knows its history."""

    directory: str
    name: str
    git: bool


@workflow_task("repository.locate", access="read")
def locate(directory: str | None = None) -> Place:
    """The directory as an absolute path, so that a later worker reads the same one. None is Waypost's own."""
    path = Path(directory).expanduser().resolve() if directory else PROJECT
    if not path.is_dir():
        raise NotADirectoryError(f'There is no directory "{path}".')
    return Place(directory=str(path), name=path.name or str(path), git=(path / ".git").exists())


@workflow_task("repository.folders", access="read")
def folders(context: TaskContext) -> list[str]:
    """The top folders that hold files, those with the most files first; "." stands for the files beside them."""
    counts = Counter(_top(name) for name in _listed(context.workspace))
    return [folder for folder, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]


@workflow_task("repository.measure", access="read")
def measure(directory: str, folder: str, words: list[str], context: TaskContext) -> dict[str, Any]:
    """Files, lines, languages, tests and notes of one top folder."""
    marks = re.compile(rb"\b(" + b"|".join(re.escape(word.encode()) for word in words) + rb")\b.*") if words else None
    totals = {"files": 0, "lines": 0, "bytes": 0, "test_files": 0, "tests": 0, "notes": 0}
    languages: dict[str, dict[str, int]] = {}
    sizes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for name in _listed(context.workspace):
        if _top(name) != folder:
            continue
        context.check_cancelled()
        content = _content(Path(directory) / name)
        if content is None:
            continue
        size, text = content
        lines = text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
        shown = _shown(name)
        language = language_of(shown)
        per_language = languages.setdefault(language, {"files": 0, "lines": 0})
        per_language["files"] += 1
        per_language["lines"] += lines
        totals["files"] += 1
        totals["lines"] += lines
        totals["bytes"] += size
        if _TEST_FILE.search(shown):
            totals["test_files"] += 1
            totals["tests"] += len(_TEST_FUNCTION.findall(text))
        sizes.append({"file": shown, "lines": lines, "bytes": size})
        for note in _notes(marks, shown, text):
            totals["notes"] += 1
            notes.append(note)
    sizes.sort(key=lambda entry: (-entry["bytes"], entry["file"]))
    return {
        "folder": folder,
        **totals,
        "languages": languages,
        "largest": sizes[:MOST_KEPT],
        "found": notes[:MOST_KEPT],
    }


@workflow_task("repository.write_report", access="read")
def write_report(
    name: str,
    directory: str,
    folders: list[dict[str, Any]],
    largest: int,
    words: list[str],
    style: str,
    context: TaskContext,
    history: list[str] | None = None,
) -> Any:
    """The report, as Markdown text or as the values behind it. The text is kept in the workspace as ``report.md``.

    ``history`` are the lines of the step ``commits``: count, first day, latest commits, "--", authors.
    """
    report = Report.of(
        name=name, directory=directory, folders=folders, largest=largest, words=words, history=_history(history)
    )
    text = markdown(report)
    (context.workspace / "report.md").write_text(text, encoding="utf-8")
    return text if style == "markdown" else report


def _history(lines: list[str] | None) -> dict[str, Any] | None:
    if not lines:
        return None
    end = lines.index("--")
    return {"commits": int(lines[0]), "first": lines[1], "latest": lines[2:end], "authors": lines[end + 1 :]}


def _listed(workspace: Path) -> Iterator[str]:
    for raw in (workspace / LIST).read_bytes().split(b"\0"):
        name = fsdecode(raw).removeprefix("./")
        if name:
            yield name


def _top(name: str) -> str:
    parts = PurePosixPath(_shown(name)).parts
    return parts[0] if len(parts) > 1 else "."


def _shown(name: str) -> str:
    """A name that can be stored: bytes that are not UTF-8 become question marks."""
    return name.encode("utf-8", "replace").decode()


def _content(path: Path) -> tuple[int, bytes] | None:
    """Size and text; no text of a binary or a huge file. None for what is not a plain file, or gone by now."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        size = path.stat().st_size
        text = path.read_bytes() if size <= MOST_BYTES else b""
    except OSError:
        return None
    return size, b"" if b"\0" in text[:8192] else text


def _notes(marks: re.Pattern[bytes] | None, name: str, text: bytes) -> Iterator[dict[str, Any]]:
    if marks is None:
        return
    for match in marks.finditer(text):
        line = text.count(b"\n", 0, match.start()) + 1
        said = match[0].decode("utf-8", "replace").strip()
        yield {"file": name, "line": line, "word": match[1].decode(), "text": said[:120]}
