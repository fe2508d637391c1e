"""Collecting the problems of one file: paths as people read them, lines, order, and the limit of fifty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from workflows.errors import Problem
from workflows.jsonvalue import item_path, member_path

#: A place in the document: keys and indexes from the top.
Path = tuple[str | int, ...]

FILE = "(file)"
MOST_PROBLEMS = 50


def written(path: Path) -> str:
    """``("steps", 0, "next")`` as ``steps[0].next``; the whole file is ``(file)``."""
    text = ""
    for part in path:
        text = item_path(text, part) if isinstance(part, int) else member_path(text, part)
    return text or FILE


def last_name(path: Path) -> str:
    """The end of a path that names it: ``("steps", 0, "checks", 1)`` is ``checks[1]``."""
    start = max((index for index, part in enumerate(path) if isinstance(part, str)), default=0)
    return written(path[start:])


@dataclass(slots=True)
class Report:
    """The problems found so far. ``position`` gives line and column of a written path."""

    position: Callable[[str], tuple[int, int]]
    problems: list[Problem] = field(default_factory=list)
    _seen: set[tuple[str, str, str]] = field(default_factory=set)

    def add(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Note a problem; the same one at the same place counts once."""
        place = written(path)
        if (code, place, message) in self._seen:
            return
        self._seen.add((code, place, message))
        line, column = self.position("" if place == FILE else place)
        self.problems.append(Problem(code=code, path=place, message=message, hint=hint, line=line, column=column))

    def line(self, path: Path) -> int:
        """The line of ``path``, from 1."""
        return self.position(written(path))[0]

    def sorted(self) -> list[Problem]:
        """The problems by line, errors before warnings on a line; at most fifty, errors kept first."""
        ordered = sorted(self.problems, key=lambda problem: problem.severity == "warning")[:MOST_PROBLEMS]
        return sorted(ordered, key=lambda problem: (problem.line or 0, problem.severity == "warning"))
