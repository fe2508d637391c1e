"""``runs fork``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from workflows.errors import ExitCode, Refusal
from workflows.jsonvalue import read_json
from workflows.management.actions import RunAction, add_person, goes_on_with
from workflows.management.base import Command
from workflows.management.lineage import edit_lines
from workflows.management.parameters import Given, given_parameters
from workflows.management.tables import table
from workflows.management.targets import run_id
from workflows.operations.forking import CHILD_CHOICES, ForkPreview, ForkWish, fork, preview
from workflows.operations.people import shell_actor

#: Visits that a preview lists.
MOST_LISTED = 40
_ANSWERS = frozenset({"y", "yes"})


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="number of the run to fork; it stays as it is")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--from",
        dest="begin_with",
        metavar="VISIT",
        help="the step to begin with, as v12, each[3]/fetch or fetch#2; default: the failed step of a failed run",
    )
    where.add_argument("--at", type=int, metavar="R", help="go on from this revision")
    parser.add_argument(
        "-P", "--param", action="append", default=[], metavar="NAME=VALUE", help="another value for a parameter"
    )
    parser.add_argument(
        "--param-json", metavar="JSON|FILE", help="other values as a JSON object or in a file, - for standard input"
    )
    parser.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="[SCOPE.]NAME=VALUE",
        help="another value for a variable: n=text, n:=json, each[3].n:=json",
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="VISIT=VALUE",
        help="another output of a step that is done: v3=text, v3:=json, v3=@file",
    )
    parser.add_argument("--plan", metavar="VERSION", help="follow this version of the workflow, or `current`")
    parser.add_argument("--child", choices=CHILD_CHOICES, help="what to do about a child run that was awaited")
    parser.add_argument("--copy-workspace", action="store_true", help="begin with a copy of the workspace as it is now")
    parser.add_argument("--title", help="a title for the new run; default: that of the origin")
    parser.add_argument("--reason", default="", help="why; kept with the fork")
    parser.add_argument("--request-id", metavar="ID", help="a second fork with the same id is the same fork")
    add_person(parser, "the user who forks, and starts the new run")
    parser.add_argument("--dry-run", action="store_true", help="show what is kept and what runs anew; fork nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _fork(command: Command, options: dict[str, Any]) -> int:
    wish = _wish(options)
    if options["dry_run"]:
        return _print_preview(command, options, preview(wish))
    if not (options["yes"] or options["as_json"]) and sys.stdin.isatty() and command.stdout.isatty():
        command.print_lines(preview_lines(preview(wish)))
        command.stdout.write("Fork it? [y/N] ", ending="")
        command.stdout.flush()
        if sys.stdin.readline().strip().lower() not in _ANSWERS:
            command.stdout.write("Nothing was forked.")
            return ExitCode.FAILED
    done = fork(wish)
    for warning in done.warnings:
        command.print_problem(warning)
    if options["as_json"]:
        document = {"run": done.run_id, "fork_of": wish.run_id, "revision": done.revision, "new": done.created}
        command.print_json({**document, "queued": done.queued})
        return ExitCode.SUCCEEDED
    told = "is a fork" if done.created else "is the fork that this request has made before,"
    line = f"run {done.run_id} {told} of run {wish.run_id} at revision {done.revision}"
    waits = "; it waits in line for its slot" if done.queued else ""
    command.stdout.write(f"{line}{waits}; {goes_on_with(done.run_id)} goes on with it.")
    return ExitCode.SUCCEEDED


def _wish(options: dict[str, Any]) -> ForkWish:
    params = _given(options["param"], options["param_json"])
    return ForkWish(
        run_id=run_id(options["run"]),
        actor=shell_actor(options["person"]),
        begin_with=options["begin_with"],
        at=options["at"],
        params=params.values,
        from_text=params.from_text,
        variables=_assigned(options["var"], "--var"),
        outputs=_assigned(options["output"], "--output"),
        plan=options["plan"],
        child=options["child"],
        copy_workspace=options["copy_workspace"],
        title=options["title"],
        reason=options["reason"],
        request_id=options["request_id"],
    )


def _given(words: list[str], json_words: str | None) -> Given:
    """Parameters; ``-P`` counts more than a JSON object, which may be written in place."""
    if json_words is None or not json_words.lstrip().startswith("{"):
        return given_parameters(words, json_words)
    values, problems = read_json(json_words)
    if problems:
        raise Refusal("params.invalid", count=len(problems), problems=tuple(problems))
    given = given_parameters(words, None)
    given.values = {**values, **given.values}
    return given


def _assigned(words: list[str], option: str) -> dict[str, Any]:
    """``name=text``, ``name:=json`` or ``name=@file``, as parameters are written."""
    for word in words:
        if not word.partition("=")[0].removesuffix(":") or "=" not in word:
            reason = f'"{option} {word}" names no value; write {option} NAME=text, NAME:=json or NAME=@file.'
            raise Refusal("input.invalid", reason=reason)
    return given_parameters(words, None).values


def _print_preview(command: Command, options: dict[str, Any], shown: ForkPreview) -> int:
    if options["as_json"]:
        document = {**asdict(shown), "warnings": [warning.as_json() for warning in shown.warnings]}
        document["run"] = document.pop("run_id")
        command.print_json(document)
    else:
        command.print_lines(preview_lines(shown))
        command.stdout.write("Nothing was forked.")
    return ExitCode.SUCCEEDED


def preview_lines(shown: ForkPreview) -> Iterator[str]:
    """What a fork keeps, what it goes on with, and what runs anew."""
    before = "" if shown.visit is None else f", before v{shown.visit}"
    yield f"A fork of run {shown.run_id} at revision {shown.revision}{before}"
    yield f"  keeps {_visits(len(shown.kept))}" + (":" if shown.kept else "")
    yield from _listed(shown.kept)
    for name, told in (
        ("repeated", "ran at that moment, and runs again"),
        ("doubtful", "ran at that moment: whether it happened is yours to say, in the fork (`runs reconcile`)"),
        ("asked_anew", "is asked anew"),
    ):
        for visit in getattr(shown, name):
            yield f"  {visit} {told}"
    for child in shown.children:
        yield f"  its child run {child} was awaited"
    yield from edit_lines(shown.edits)
    yield f"  leaves out {_visits(len(shown.left_out))}" + (
        " of the origin; what of them is needed runs anew:" if shown.left_out else ""
    )
    yield from _listed(shown.left_out)


def _visits(count: int) -> str:
    return f"{count} {'visit' if count == 1 else 'visits'}"


def _listed(visits: list[dict[str, Any]]) -> Iterator[str]:
    cells = [[f"v{one['visit']}", one["path"], one["outcome"] or "open"] for one in visits[:MOST_LISTED]]
    yield from (f"    {line}" for line in list(table(["", "", ""], cells))[1:])
    if len(visits) > MOST_LISTED:
        yield f"    … and {len(visits) - MOST_LISTED} more"


FORK = RunAction(
    name="fork", help="start a new run from a point of the past of another", add_words=_add_words, perform=_fork
)
