"""Compiled expressions: the text, what it needs, and how the text around it is cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from workflows.expressions import engine
from workflows.expressions.bounds import Place, is_harmless
from workflows.expressions.errors import TemplateProblem
from workflows.expressions.loops import spread_places
from workflows.expressions.references import fixed_path, references_of
from workflows.expressions.syntax import Node, SyntaxTrouble, parse
from workflows.expressions.template import Hole, Literal, NotClosed, split
from workflows.expressions.wording import not_closed, unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An expression that can be evaluated.

    ``paths`` are the longest fixed paths it reads, ``inputs`` the same without those that another one contains.
    ``plain_path`` is set when the expression is nothing but such a path and needs no CEL at all. One that is not
    ``is_harmless`` needs its work bounded before each evaluation; ``spread`` says which loops can be taken in pieces.
    """

    source: str
    paths: frozenset[tuple[str, ...]]
    inputs: tuple[tuple[str, ...], ...]
    plain_path: tuple[str, ...] | None
    tree: Node
    is_harmless: bool
    spread: frozenset[Place]


def compile_template(text: str) -> tuple[str | Program, ...]:
    """The parts of a text, its expressions compiled. Raises :class:`TemplateProblem` (E401, E402)."""
    try:
        parts = split(text)
    except NotClosed as trouble:
        raise not_closed(trouble.offset) from None
    return tuple(_compiled(part) for part in parts)


def _compiled(part: Literal | Hole) -> str | Program:
    if isinstance(part, Literal):
        return part.text
    try:
        return compile_expression(part.source)
    except TemplateProblem as problem:
        raise TemplateProblem(problem.code, problem.message, problem.hint, part.offset + problem.offset) from None


@lru_cache(maxsize=4_096)
def compile_expression(source: str) -> Program:
    """The program of one expression. Raises :class:`TemplateProblem` (E401)."""
    try:
        engine.program(source)
        tree = parse(source)
    except engine.Refused as refused:
        raise unreadable(source, refused.errors) from None
    except SyntaxTrouble as trouble:
        raise unreadable(source, ((1, trouble.at + 1, "unexpected text"),)) from None
    paths = frozenset(reference.path for reference in references_of(tree))
    plain = fixed_path(tree)
    plain_path = plain[1] if plain is not None and plain[1] in paths else None
    return Program(
        source=source,
        paths=paths,
        inputs=_without_contained(paths),
        plain_path=plain_path,
        tree=tree,
        is_harmless=is_harmless(tree),
        spread=spread_places(tree),
    )


def _without_contained(paths: frozenset[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(path for path in paths if not any(path[:length] in paths for length in range(1, len(path)))))
