"""The code blocks of the pages, and what their first line says about them.

After the language stand words for the tests:

* ``yaml``: a whole workflow file, which validates without an error; ``yaml warns=W103``: with this warning;
  ``yaml error=E304``: with this error and no other; ``yaml steps``: only steps, put into a file; ``yaml rest``:
  other keys of a file, which gets one step. ``file=NAME`` keeps the block as a file for the commands of its page.
* ``python``: runs; with ``file=`` it is a file too.
* ``sh``: runs, one page after the other from top to bottom in one directory; ``exit=3`` names the exit code.
  ``sh setup``: installs something or needs a server, and is not run.
* ``text``: what the ``sh`` block before it prints; numbers of seconds, dates and temporary names may differ.
  ``text part``: only lines of it, in this order.
* ``mermaid`` and ``none``: not run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.processes import PROJECT

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
#: Written by hand elsewhere, with tests of their own.
_TESTED_ELSEWHERE = frozenset({"performance.md", "settings.md", "development.md"})
RUN_PAGES = [page for page in PAGES if page.name not in _TESTED_ELSEWHERE]

_FENCE = re.compile(r"^( *)```(\S*) ?(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """``options`` are the words after the language; ``name=value`` has its value there, a bare word is ""."""

    page: str
    line: int
    language: str
    options: dict[str, str]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All code blocks of a page, in order."""
    found: list[Block] = []
    start: tuple[int, str, dict[str, str], str] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        match = _FENCE.match(line)
        if match is None:
            lines.append(line)
        elif start is None:
            options = dict(word.partition("=")[::2] for word in match[3].split())
            start, lines = (number, match[2], options, match[1]), []
        else:
            first, language, options, indent = start
            text = "".join(f"{entry.removeprefix(indent)}\n" for entry in lines)
            found.append(Block(page=page.name, line=first, language=language, options=options, text=text))
            start = None
    assert start is None, f"{page.name} ends inside of a code block"
    return found


def prose_of(page: Path) -> str:
    """The page without its code blocks."""
    text, is_code = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            text.append(line)
    return "\n".join(text)


ALL_BLOCKS = [block for page in RUN_PAGES for block in blocks_of(page)]
