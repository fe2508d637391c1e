"""Commands of the project inside of the test process: what they print and how they end."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

DATA = Path(__file__).resolve().parent.parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``code`` is the exit code; ``json`` what was printed as one JSON value."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def manage(*words: str) -> Answer:
    """A command in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    try:
        call_command(*words, stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        code = end.code
    return Answer(code=int(code or 0), out=out.getvalue(), err=err.getvalue())


def give_stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let commands of this test read ``text`` from standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))


def workflow_file(folder: Path, text: str, name: str = "demo") -> str:
    """A workflow file; ``text`` is what follows after its name."""
    path = folder / f"{name}.yaml"
    path.write_text(f"format: 1\nname: {name}\n{text}", encoding="utf-8")
    return str(path)
