"""The library: workflow files that are found by name, a team's own directories before the shipped ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workflows.conf import conf

SHIPPED = Path(__file__).resolve().parent.parent / "library"

_NAME = re.compile(rb"""^name:[ \t]*["']?([a-z][a-z0-9_]*)["']?[ \t]*(?:#.*)?\r?$""", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFile:
    """A file and the name of its workflow, as it is written in the file."""

    name: str
    path: Path
    text: bytes = field(repr=False)


def library_file(name: str) -> LibraryFile | None:
    """The file of this workflow. The first directory that has one wins."""
    for directory in _directories():
        likely = [directory / f"{name}{suffix}" for suffix in (".yaml", ".yml")]
        others = (path for path in _paths(directory) if path not in likely)
        for path in (*likely, *others):
            found = _read(path)
            if found is not None and found.name == name:
                return found
    return None


def library_files() -> dict[str, LibraryFile]:
    """Every workflow of the library, by name."""
    found: dict[str, LibraryFile] = {}
    for directory in _directories():
        for path in _paths(directory):
            file = _read(path)
            if file is not None:
                found.setdefault(file.name, file)
    return dict(sorted(found.items()))


def name_in(text: bytes) -> str | None:
    """The name that a workflow file gives itself; None when it has none that could be one."""
    match = _NAME.search(text)
    return match[1].decode("ascii") if match else None


def _directories() -> tuple[Path, ...]:
    return (*conf().library_dirs, SHIPPED)


def _paths(directory: Path) -> Iterator[Path]:
    try:
        paths = sorted(directory.iterdir())
    except OSError:  # a directory that is missing or closed has no workflows
        return
    yield from (path for path in paths if path.suffix in (".yaml", ".yml"))


def _read(path: Path) -> LibraryFile | None:
    try:
        text = path.read_bytes()
    except OSError:
        return None
    name = name_in(text)
    return LibraryFile(name=name, path=path, text=text) if name is not None else None
