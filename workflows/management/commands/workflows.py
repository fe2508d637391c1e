"""``workflows list|show|validate|publish|schema|graph``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection

from workflows.definitions.graph import mermaid
from workflows.definitions.plan import Plan, StepPlan
from workflows.errors import ExitCode, Problem, Refusal
from workflows.management.base import Command as WaypostCommand
from workflows.management.base import problem_lines, read_file
from workflows.management.definitions import problems_are_in, target_definition
from workflows.management.tables import table
from workflows.operations.library import LibraryFile, library_files
from workflows.operations.people import shell_actor
from workflows.operations.workflows import (
    Definition,
    check_files,
    definition_of_file,
    publish_file,
)
from workflows.queries.workflows import version_list, workflow_list

_TABLELESS = frozenset({"schema"})


class Command(WaypostCommand):
    help = "Lists, shows, checks and publishes workflows."

    def add_words(self, parser: CommandParser) -> None:
        actions = self.add_actions(parser)
        words: dict[str, tuple[str, str | None]] = {
            "list": ("the workflows of this server", None),
            "show": ("one workflow: parameters, steps, versions", "NAME|FILE"),
            "validate": ("every problem of workflow files", "FILE"),
            "publish": ("make files the current versions of their workflows", "FILE"),
            "schema": ("the JSON Schema of workflow files, for editors", None),
            "graph": ("a workflow as a Mermaid flowchart", "NAME|FILE"),
        }
        for name, (text, target) in words.items():
            action = actions.add_parser(name, help=text)
            if target is not None:
                many = name in ("validate", "publish")
                action.add_argument("targets", metavar=target, nargs="+" if many else 1)
            if name == "publish":
                action.add_argument("--as", dest="person", metavar="USER", help="the user who publishes")
            action.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        action = getattr(self, f"do_{options['action']}")
        code: int = action(**options)
        return code

    def tables_are_needed(self, options: Mapping[str, Any]) -> bool:
        return options["action"] not in _TABLELESS

    # ---- list, show -------------------------------------------------------------------------------------------------

    def do_list(self, *, as_json: bool, **options: Any) -> int:
        rows = workflow_list()
        files = _unpublished(rows)
        if as_json:
            library = [{"name": file.name, "file": str(file.path)} for file in files]
            self.print_json({"workflows": rows, "library": library})
            return ExitCode.SUCCEEDED
        listed = [[row["name"], row["version"], row["runs"], row["title"]] for row in rows]
        listed += [[file.name, "–", 0, _title(file)] for file in files]
        if not listed:
            self.stdout.write("There are no workflows; `python manage.py workflows publish FILE` adds one.")
            return ExitCode.SUCCEEDED
        self.print_lines(table(["NAME", "VERSION", "RUNS", "TITLE"], sorted(listed, key=lambda row: str(row[0]))))
        return ExitCode.SUCCEEDED

    def do_show(self, *, targets: list[str], as_json: bool, **options: Any) -> int:
        definition = target_definition(targets[0])
        versions = version_list(definition.plan.name)
        if as_json:
            self.print_json(
                {
                    "name": definition.plan.name,
                    "title": definition.plan.title,
                    "version": definition.version,
                    "hash": definition.hash,
                    "document": definition.plan.document,
                    "versions": versions,
                }
            )
        else:
            self.print_lines(_described(definition, versions))
        return ExitCode.SUCCEEDED

    # ---- validate, publish ------------------------------------------------------------------------------------------

    def do_validate(self, *, targets: list[str], as_json: bool, **options: Any) -> int:
        contents = [read_file(target) for target in targets]
        found = [(target, checked.problems) for target, checked in zip(targets, check_files(contents), strict=True)]
        if as_json:
            self.print_json(
                [{"file": file, "problems": [problem.as_json() for problem in problems]} for file, problems in found]
            )
        else:
            for file, problems in found:
                self.print_lines(_verdict(file, problems))
        has_errors = any(problem.severity == "error" for _, problems in found for problem in problems)
        return ExitCode.FAILED if has_errors else ExitCode.SUCCEEDED

    def do_publish(self, *, targets: list[str], person: str | None, as_json: bool, **options: Any) -> int:
        contents = [(target, read_file(target)) for target in targets]
        actor = shell_actor(person)
        texts = [content for _, content in contents]
        for target, content in contents:  # all or none: a mistake in one file publishes no other
            with problems_are_in(target, is_one_of_many=True):
                definition_of_file(content, private=False, beside=texts)
        published = []
        for target, content in contents:
            definition, stored = publish_file(content, created_by=actor.name, audited_as=actor.recorded, beside=texts)
            published.append(
                {
                    "file": target,
                    "name": definition.plan.name,
                    "version": stored.version,
                    "hash": definition.hash,
                    "new": stored.created,
                    "warnings": [problem.as_json() for problem in definition.warnings],
                }
            )
            if not as_json:
                for warning in definition.warnings:
                    self.print_problem(warning, target)
                state = "published" if stored.created else "is current already"
                self.stdout.write(f"{definition.plan.name}: version {stored.version} {state}")
        if as_json:
            self.print_json(published)
        return ExitCode.SUCCEEDED

    # ---- schema, graph ----------------------------------------------------------------------------------------------

    def do_schema(self, **options: Any) -> int:
        from workflows.definitions.schema import workflow_schema  # slow to import, and only needed here

        self.print_json(workflow_schema())
        return ExitCode.SUCCEEDED

    def do_graph(self, *, targets: list[str], as_json: bool, **options: Any) -> int:
        definition = target_definition(targets[0])
        picture = mermaid(definition.plan)
        if as_json:
            self.print_json({"name": definition.plan.name, "hash": definition.hash, "mermaid": picture})
        else:
            self.stdout.write(picture, ending="")
        return ExitCode.SUCCEEDED


def _unpublished(rows: list[dict[str, Any]]) -> list[LibraryFile]:
    """Library files that `run_workflow NAME` would publish; elsewhere than on the embedded database none."""
    published = {row["name"] for row in rows}
    files = library_files() if connection.vendor == "sqlite" else {}
    return [file for name, file in files.items() if name not in published]


def _title(file: LibraryFile) -> str:
    """The title of a library file that was never published; one with mistakes has none."""
    try:
        return definition_of_file(file.text, private=False).plan.title
    except Refusal:
        return f"has mistakes: workflows validate {file.path}"


def _verdict(file: str, problems: tuple[Problem, ...]) -> Iterator[str]:
    for problem in problems:
        yield from problem_lines(problem, file)
    if not problems:
        yield f"{file}: no problems"


def _described(definition: Definition, versions: list[dict[str, Any]]) -> Iterator[str]:
    plan = definition.plan
    yield f"{plan.name}: {plan.title}"
    if plan.description:
        yield from (f"  {line}" for line in plan.description.strip().splitlines())
    for word, value in (("owner", plan.owner), ("tags", ", ".join(plan.tags)), ("secrets", ", ".join(plan.secrets))):
        if value:
            yield f"  {word}: {value}"
    if plan.params:
        yield "parameters"
        yield from (f"  {line}" for line in table(["NAME", "TYPE", "NEEDED", "WHAT"], [_field(f) for f in plan.params]))
    yield "steps"
    yield from (f"  {line}" for line in table(["STEP", "KIND", "GOES TO"], list(_steps(plan))))
    if versions:
        yield "versions"
        rows = [
            [row["version"], row["published_at"], row["published_by"], row["runs"], row["hash"][:12]]
            for row in versions
        ]
        yield from (f"  {line}" for line in table(["VERSION", "PUBLISHED", "BY", "RUNS", "HASH"], rows))


def _field(field: Mapping[str, Any]) -> list[str]:
    if "default" in field:
        needed = f"default {json.dumps(field['default'], ensure_ascii=False)}" if field["default"] is not None else "no"
    else:
        needed = "no" if field.get("optional") else "yes"
    return [field["name"], field["type"], needed, field.get("title") or field.get("description") or ""]


def _steps(plan: Plan) -> Iterator[list[str]]:
    for section, body in (("", plan.main), ("on_failure ", plan.on_failure), ("finally ", plan.closing)):
        for step in body.steps if body is not None else ():
            yield [f"{section}{step.id}", step.kind, _targets(step)]


def _targets(step: StepPlan) -> str:
    routes = {outcome: target for outcome, target in step.routes.items() if outcome not in step.unrouted}
    main = routes.get(step.main_outcome or "")
    words = [main] if main is not None else []
    words += [f"{outcome} → {target}" for outcome, target in routes.items() if target != main]
    return ", ".join(words)
