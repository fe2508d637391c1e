"""Checking workflow files: every problem of a file at once, each with its place and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.source import Source, SourceError, read_source
from workflows.definitions.validation import shape_keys
from workflows.definitions.validation.expressions import check_expressions
from workflows.definitions.validation.fields import check_fields
from workflows.definitions.validation.known import Known, KnownWorkflow
from workflows.definitions.validation.names import Names
from workflows.definitions.validation.places import places
from workflows.definitions.validation.references import check_assignments, check_references
from workflows.definitions.validation.report import Report
from workflows.definitions.validation.routes import check_routes
from workflows.definitions.validation.scopes import Scopes
from workflows.definitions.validation.secrets import check_scripts, check_secrets
from workflows.definitions.validation.shapes import check_shape
from workflows.definitions.validation.steps import check_policy, check_steps
from workflows.definitions.validation.top import check_top
from workflows.definitions.validation.tree import build
from workflows.definitions.validation.warnings import check_warnings
from workflows.errors import Problem

__all__ = ["Known", "KnownWorkflow", "Validation", "check_document", "validate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was found in a file: ``problems`` by line, errors and warnings, at most fifty.

    ``document`` and ``source`` are None when the file could not be read. The document may be frozen only when
    ``is_valid``.
    """

    problems: tuple[Problem, ...]
    document: dict[str, Any] | None = field(default=None, repr=False)
    source: Source | None = field(default=None, repr=False)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @property
    def is_valid(self) -> bool:
        return not self.errors


def validate(text: str | bytes, known: Known | None = None) -> Validation:
    """Check a workflow file. ``known`` is what exists beside it; left out, references to it are not checked."""
    try:
        source = read_source(text)
    except SourceError as broken:
        return Validation(problems=(broken.problem,))
    report = Report(position=source.position)
    check_document(source.document, known or Known(), report)
    return Validation(problems=tuple(report.sorted()), document=source.document, source=source)


def check_document(document: Mapping[str, Any], known: Known, report: Report) -> None:
    """Report everything that is wrong with a document that was read, in no particular order."""
    foreign = shape_keys.other_tool(document)
    if foreign is not None:
        shape_keys.report_other_tool(*foreign, report)
        if "format" not in document or "steps" not in document:
            return
        document = {key: value for key, value in document.items() if key not in shape_keys.keys_of_tool(foreign[1])}
    check_shape(document, report)
    tree = build(document, known.declared_outcomes())
    check_steps(tree, report)
    check_top(document, tree, report)
    check_fields(document, tree, report)
    flows = check_routes(tree, known, report)
    found = list(places(document, tree, Scopes(document, tree)))
    names = Names(tree, flows, report)
    check_expressions(found, names, report)
    check_assignments(found, report)
    check_scripts(tree, report)
    check_secrets(document, tree, found, report)
    check_references(document, tree, known, report)
    defaults = document.get("defaults")
    if isinstance(defaults, Mapping):
        check_policy(defaults.get("retry"), ("defaults", "retry"), report)
    check_warnings(document, tree, found, names, known, report)
