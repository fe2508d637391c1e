"""What every command of Waypost shares: errors in words, exit codes, JSON, and the doors for files and run ids."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import django.db
from django.core.management.base import BaseCommand, CommandParser

from workflows.errors import ExitCode, Problem, Refusal
from workflows.stores.bootstrap import ensure_schema
from workflows.stores.explaining import explained
from workflows.stores.failures import classify

STANDARD_INPUT = "-"
#: A larger file is neither a workflow nor a set of parameters.
MOST_BYTES = 64 * 1024 * 1024
_DJANGO_OPTIONS = frozenset(
    {
        "version",
        "verbosity",
        "settings",
        "pythonpath",
        "traceback",
        "no_color",
        "force_color",
        "skip_checks",
    }
)


class ActionParser(CommandParser):
    """The words of one action of a command: what it does not know is told with its own usage, not the command's."""

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, []


class Command(BaseCommand):
    """A thin command: ``perform`` translates arguments, asks an operation or a query, and returns the exit code.

    Refusals are printed as ``error: …`` with their hint, in JSON as ``{"error": …}``; they never show a trace.
    """

    requires_system_checks = ["compatibility"]

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_words(parser)

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        """Usage and help show the command's own options; those of every Django command work and are left out."""
        parser = super().create_parser(prog_name, subcommand, **options)
        for entry in parser._actions:
            if entry.dest in _DJANGO_OPTIONS:
                entry.help = argparse.SUPPRESS
            if isinstance(entry, argparse._SubParsersAction):
                entry.metavar = "|".join(entry.choices)
        return parser

    def add_words(self, parser: CommandParser) -> None:
        raise NotImplementedError

    def add_actions(self, parser: CommandParser) -> argparse._SubParsersAction[ActionParser]:
        """The place of the words of each action; ``options["action"]`` then says which one it is."""
        return parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=ActionParser)

    def perform(self, **options: Any) -> int:
        raise NotImplementedError

    def tables_are_needed(self, options: Mapping[str, Any]) -> bool:
        return True

    def handle(self, *args: Any, **options: Any) -> None:
        _never_fail_to_print(sys.stdout, sys.stderr)
        code = self._answered(options)
        if code:
            raise SystemExit(code)

    def _answered(self, options: dict[str, Any]) -> int:
        try:
            if self.tables_are_needed(options):
                ensure_schema()
            return self.perform(**options)
        except Refusal as refusal:
            return self.refused(explained(refusal), as_json=bool(options.get("as_json")))
        except django.db.Error as error:
            refusal_of_store = classify(error).as_refusal()
            if refusal_of_store is None:
                raise
            return self.refused(explained(refusal_of_store), as_json=bool(options.get("as_json")))
        except KeyboardInterrupt:
            self.stderr.write("Stopped.")
            return 130
        except BrokenPipeError:
            _print_to_nobody()
            return ExitCode.FAILED

    def refused(self, refusal: Refusal, *, as_json: bool) -> int:
        """Print a refusal; its exit code."""
        if as_json:
            self.print_json({"error": error_document(refusal)})
        else:
            self.stderr.write(f"error: {refusal.message}", self.style.ERROR)
            for problem in refusal.problems:
                self.print_problem(problem, refusal.data.get("file"))
            if refusal.hint and not refusal.problems:
                self.stderr.write(f"hint: {refusal.hint}")
        return refusal.exit_code

    def print_problem(self, problem: Problem, file: str | None = None) -> None:
        """A problem in three lines: where, what, what to do."""
        for line in problem_lines(problem, file):
            self.stderr.write(line)

    def write_now(self, text: str) -> None:
        """Print a line at once. When nobody reads any more nothing is printed from then on, and the work goes on."""
        try:
            self.stdout.write(text)
            self.stdout.flush()
        except BrokenPipeError:
            _print_to_nobody()

    def print_json(self, value: Any) -> None:
        self.stdout.write(json_text(value))

    def print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(line)


def json_text(value: Any) -> str:
    """A value as JSON for standard output."""
    return json.dumps(value, ensure_ascii=not _is_unicode(sys.stdout), indent=2)


def _print_to_nobody() -> None:
    """The reader of the output has gone; the interpreter would complain again when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_unicode(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-").startswith("utf-")


def _never_fail_to_print(*streams: TextIO) -> None:
    """Text that the terminal's encoding lacks is written with escapes instead of ending the command."""
    for stream in streams:
        if not _is_unicode(stream) and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def problem_lines(problem: Problem, file: str | None = None) -> Iterator[str]:
    place = f"{file}:{problem.line or 1}: " if file is not None else ""
    yield f"{place}{problem.code} {problem.path}"
    yield f"    {problem.message}"
    if problem.hint:
        yield f"    {problem.hint}"


def error_document(refusal: Refusal) -> dict[str, Any]:
    """A refusal as JSON: ``{code, message, hint, problems}``."""
    return {
        "code": refusal.code,
        "message": refusal.message,
        "hint": refusal.hint,
        "problems": [problem.as_json() for problem in refusal.problems],
    }


def read_file(path: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``. Raises ``input.invalid``."""
    if path == STANDARD_INPUT:
        return _limited(sys.stdin.buffer.read(MOST_BYTES + 1), "Standard input")
    try:
        if Path(path).is_dir():
            raise Refusal("input.invalid", reason=f'"{path}" is a directory, not a file.')
        with Path(path).open("rb") as file:
            return _limited(file.read(MOST_BYTES + 1), f'The file "{path}"')
    except FileNotFoundError:
        raise Refusal("input.invalid", reason=f'There is no file "{path}".') from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Refusal("input.invalid", reason=f'The file "{path}" cannot be read: {reason}.') from None


def read_text(path: str) -> str:
    """The text of a UTF-8 file. Raises ``input.invalid``."""
    try:
        return read_file(path).decode("utf-8")
    except UnicodeDecodeError as error:
        name = "Standard input" if path == STANDARD_INPUT else f'The file "{path}"'
        raise Refusal(
            "input.invalid", reason=f"{name} is not UTF-8 text (byte 0x{error.object[error.start]:02X})."
        ) from None


def _limited(content: bytes, name: str) -> bytes:
    if len(content) > MOST_BYTES:
        raise Refusal("input.invalid", reason=f"{name} is larger than {MOST_BYTES // 2**20} MiB.")
    return content
