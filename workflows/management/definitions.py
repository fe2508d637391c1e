"""Workflow definitions as commands name them; problems are told with the file that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workflows.errors import Refusal
from workflows.management.base import STANDARD_INPUT, read_file
from workflows.management.targets import is_file
from workflows.operations.workflows import Definition, definition_of_file, named_definition


def target_definition(target: str) -> Definition:
    """The workflow of a file, or of a name. Raises what ``definition_of_file`` and ``named_definition`` raise."""
    if not is_file(target):
        return named_definition(target)
    content = read_file(target)
    with problems_are_in(target):
        return definition_of_file(content)


@contextmanager
def problems_are_in(file: str, *, is_one_of_many: bool = False) -> Iterator[None]:
    """A refused definition says in which file its problems are."""
    try:
        yield
    except Refusal as refusal:
        if refusal.code == "definition.invalid":
            refusal.data["file"] = name = "(standard input)" if file == STANDARD_INPUT else file
            refusal.message = f"{name}: {refusal.message}" if is_one_of_many else refusal.message
        raise
