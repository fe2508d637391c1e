"""What a word on the command line names: a file, a workflow, or a run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from workflows.errors import Refusal
from workflows.management.base import STANDARD_INPUT, read_text

_PATH = re.compile(r".*\.ya?ml|.*/.*|-", re.DOTALL)
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_MOST = 2**63 - 1


def is_file(target: str) -> bool:
    """Whether a target is a file and not the name of a workflow: a path, a YAML file, or a file with another name."""
    if _PATH.fullmatch(target):
        return True
    return _NAME.fullmatch(target) is None and Path(target).is_file()


def run_ids(words: Iterable[str]) -> list[int]:
    """Run numbers from the command line, each once; ``-`` stands for those on standard input. Raises
    ``input.invalid``."""
    found: list[int] = []
    for word in words:
        texts = read_text(STANDARD_INPUT).split() if word == STANDARD_INPUT else [word]
        found += [run_id(text) for text in texts]
    return list(dict.fromkeys(found))


def run_id(text: str) -> int:
    """A run number. Raises ``input.invalid``."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > _MOST:
        raise Refusal("input.invalid", reason=f'"{text[:80]}" is not the number of a run.')
    return int(text)


def visit_number(text: str) -> int:
    """A visit as it is shown, ``v3``, or its number. Raises ``ValueError``."""
    number = text.removeprefix("v")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise ValueError(f"{text!r} is not a visit such as v3")
    return int(number)
