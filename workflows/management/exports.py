"""``runs export``: a run as one JSON document, and ``runs import``: such a document as a run of this installation."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from workflows.errors import ExitCode, Refusal
from workflows.management.actions import RunAction, add_person
from workflows.management.base import STANDARD_INPUT, Command
from workflows.management.targets import run_id
from workflows.management.wording import counted
from workflows.operations.exporting import export_run
from workflows.operations.importing import import_document
from workflows.operations.people import shell_actor

_PRIVATE = 0o600


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="number of a run")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="a new file; default: standard output")
    parser.add_argument("--with-children", action="store_true", help="its child runs, too")
    add_person(parser, "the user who exports")


def _export(command: Command, options: dict[str, Any]) -> int:
    number, target = run_id(options["run"]), options["output"]
    pieces = export_run(number, actor=shell_actor(options["person"]), with_children=options["with_children"])
    if target == STANDARD_INPUT:
        for piece in pieces:
            command.stdout.write(piece, ending="")
        return ExitCode.SUCCEEDED
    with _new_file(target) as file:
        for piece in pieces:
            file.write(piece)
    if options["as_json"]:
        command.print_json({"run": number, "file": target, "bytes": Path(target).stat().st_size})
    else:
        command.stdout.write(f"run {number} is in {target} ({Path(target).stat().st_size:,} bytes).")
    return ExitCode.SUCCEEDED


@contextmanager
def _new_file(path: str) -> Iterator[TextIO]:
    """A file that only its owner can read, whole or not there: it gets its name when it is written."""
    if Path(path).exists():
        raise Refusal("input.invalid", reason=f'There is a file "{path}" already.')
    unfinished = f"{path}.part"
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w", encoding="utf-8") as f:
            yield f
        Path(unfinished).rename(path)
    except OSError as error:
        raise Refusal("input.invalid", reason=f'The file "{path}" cannot be written: {error.strerror}.') from None
    finally:
        with suppress(OSError):
            Path(unfinished).unlink()


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file of `runs export`; - reads standard input")
    add_person(parser, "the user who imports")


def _import(command: Command, options: dict[str, Any]) -> int:
    imported = import_document(_document(options["file"]), actor=shell_actor(options["person"]))
    if options["as_json"]:
        document = {"run": imported.run, "new": imported.created, "runs": {str(k): v for k, v in imported.runs.items()}}
        command.print_json(document)
    elif imported.created:
        with_children = f", with {counted(len(imported.runs) - 1, 'child run')}" if len(imported.runs) > 1 else ""
        command.stdout.write(f"run {imported.run} was imported{with_children}; `runs show {imported.run}` shows it.")
    else:
        command.stdout.write(f"run {imported.run} is this document already; nothing was changed.")
    return ExitCode.SUCCEEDED


def _document(path: str) -> Any:
    """Larger than other files: a run may have many large values."""
    try:
        if path == STANDARD_INPUT:
            return json.load(sys.stdin)
        with Path(path).open(encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise Refusal("input.invalid", reason=f'The file "{path}" cannot be read: {error.strerror}.') from None
    except (ValueError, RecursionError):
        raise Refusal("input.invalid", reason=f'"{path}" is not a JSON document.') from None


EXPORT = RunAction(name="export", help="a run as one JSON document", add_words=_add_export, perform=_export)
IMPORT = RunAction(
    name="import", help="an exported run as a finished run of this server", add_words=_add_import, perform=_import
)
