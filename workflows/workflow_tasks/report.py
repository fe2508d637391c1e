"""The report of ``repository_report``: its values, and its Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the report says. ``history`` is None where git knows nothing."""

    name: str
    directory: str
    totals: dict[str, int]
    languages: Rows
    folders: Rows
    largest: Rows
    words: list[str]
    notes: Rows
    history: dict[str, Any] | None

    @classmethod
    def of(
        cls,
        *,
        name: str,
        directory: str,
        folders: Rows,
        largest: int,
        words: list[str],
        history: dict[str, Any] | None,
    ) -> Report:
        """Add up what was measured folder by folder."""
        counted = ("files", "lines", "bytes", "test_files", "tests", "notes")
        return cls(
            name=name,
            directory=directory,
            totals={key: sum(folder[key] for folder in folders) for key in counted},
            languages=_languages(folders),
            folders=[{key: folder[key] for key in ("folder", "files", "lines", "tests")} for folder in folders],
            largest=_first(folders, "largest", largest),
            words=words,
            notes=[note for folder in folders for note in folder["found"]][:largest],
            history=history,
        )


def _languages(folders: Rows) -> Rows:
    sums: dict[str, dict[str, Any]] = {}
    for folder in folders:
        for language, counts in folder["languages"].items():
            row = sums.setdefault(language, {"language": language, "files": 0, "lines": 0})
            row["files"] += counts["files"]
            row["lines"] += counts["lines"]
    return sorted(sums.values(), key=lambda row: (-row["lines"], row["language"]))


def _first(folders: Rows, key: str, count: int) -> Rows:
    rows = [row for folder in folders for row in folder[key]]
    return sorted(rows, key=lambda row: (-row["bytes"], row["file"]))[:count]


def markdown(report: Report) -> str:
    """The report as Markdown that also reads well as plain text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    totals = report.totals
    yield f"# {report.name}"
    yield ""
    yield (
        f"{_count(totals['files'], 'file')}, {_count(totals['lines'], 'line')}, {_size(totals['bytes'])} "
        f"in {report.directory}; {_count(totals['tests'], 'test')} in {_count(totals['test_files'], 'file')}."
    )
    yield from _section("Languages", ("Language", "Files", "Lines", "Share"), _shares(report))
    yield from _section("Folders", ("Folder", "Files", "Lines", "Tests"), _cells(report.folders))
    rows = ((row["file"], f"{row['lines']:,}", _size(row["bytes"])) for row in report.largest)
    yield from _section("Largest files", ("File", "Lines", "Size"), rows)
    yield from _history(report.history)
    if report.words:
        yield from ("", f"## Notes ({', '.join(report.words)})", "")
        yield f"{totals['notes']:,} found." if totals["notes"] else "None."
        yield from ("",) * bool(report.notes)
        yield from (f"* {note['file']}:{note['line']}: {note['text']}" for note in report.notes)


def _shares(report: Report) -> Iterator[Sequence[str]]:
    total = report.totals["lines"] or 1
    for row in report.languages[:12]:
        yield row["language"], f"{row['files']:,}", f"{row['lines']:,}", f"{row['lines'] / total:.1%}"


def _cells(rows: Rows) -> Iterator[Sequence[str]]:
    for row in rows[:20]:
        yield tuple(f"{value:,}" if isinstance(value, int) else value for value in row.values())


def _history(history: Mapping[str, Any] | None) -> Iterator[str]:
    if history is None:
        return
    yield from ("", "## History", "")
    by = _count(len(history["authors"]), "author")
    yield f"{_count(history['commits'], 'commit')} by {by}, the first on {history['first']}."
    yield ""
    yield from (f"* {commit}" for commit in history["latest"])


def _section(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, padded so that it can be read as it is; nothing when there are no rows."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    if not cells:
        return
    widths = [max(len(row[column]) for row in (heads, *cells)) for column in range(len(heads))]
    yield from ("", f"## {title}", "")
    yield _row(heads, widths)
    yield "|" + "|".join("-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)) + "|"
    for row in cells:
        yield _row(row, widths)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column == 0 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "| " + " | ".join(padded) + " |"


def _size(size: int) -> str:
    """
    >>> [_size(size) for size in (12, 2048, 5_000_000)]
    ['12 B', '2.0 KiB', '4.8 MiB']
    """
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{size} B"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
