"""What the validator asks about the expressions in a text of a workflow file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workflows.expressions import engine
from workflows.expressions.errors import TemplateProblem
from workflows.expressions.references import FunctionUse, Reference, calls_of, references_of
from workflows.expressions.syntax import Node, SyntaxTrouble, parse
from workflows.expressions.template import Hole, Literal, NotClosed, split
from workflows.expressions.vocabulary import FUNCTIONS, PLAIN_FUNCTIONS, advice_for
from workflows.expressions.wording import not_closed, unreadable

#: Templates of other tools; ``{{.Names}}`` of Go programs is left alone, it is an argument for them.
_DOUBLE_BRACES = re.compile(r"\{\{-?\s*[A-Za-z_][^{}]*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionInfo:
    """One expression of a text: ``source`` begins at ``offset``.

    The offsets of ``references`` and ``calls`` count from the beginning of the text. ``problems`` are E401, E402 and
    E411; with E401 and E402 nothing else is known. ``tree`` is for :mod:`workflows.expressions.checking`.
    """

    source: str
    offset: int
    is_whole_text: bool
    references: tuple[Reference, ...] = ()
    calls: tuple[FunctionUse, ...] = ()
    problems: tuple[TemplateProblem, ...] = ()
    tree: Node | None = None


def analyse(text: str) -> tuple[ExpressionInfo, ...]:
    """Every expression of ``text`` in order. A ``${`` without an end is an expression with the problem E402."""
    try:
        parts = split(text)
    except NotClosed as trouble:
        return (
            ExpressionInfo(
                source=text[trouble.offset + 2 :].strip(),
                offset=trouble.offset,
                is_whole_text=False,
                problems=(not_closed(trouble.offset),),
            ),
        )
    return tuple(_analysed(part, is_whole_text=len(parts) == 1) for part in parts if isinstance(part, Hole))


def double_braces(text: str) -> tuple[TemplateProblem, ...]:
    """E416 for each ``{{ … }}`` in the text outside of expressions."""
    try:
        literals = [part.text for part in split(text) if isinstance(part, Literal)]
    except NotClosed:
        return ()
    found = [match.group() for literal in literals for match in _DOUBLE_BRACES.finditer(literal)]
    return tuple(
        TemplateProblem(
            "E416",
            f'"{braces}" is not replaced: this format has no {{{{ }}}} templates.',
            "Write `${ … }`.",
            text.find(braces),
        )
        for braces in found
    )


def _analysed(hole: Hole, *, is_whole_text: bool) -> ExpressionInfo:
    source, offset = hole.source, hole.offset
    try:
        engine.program(source)
        tree = parse(source)
    except engine.Refused as refused:
        problem = unreadable(source, refused.errors)
    except SyntaxTrouble as trouble:
        problem = unreadable(source, ((1, trouble.at + 1, "unexpected text"),))
    else:
        calls = calls_of(tree)
        unknown = (_unknown(call, offset) for call in calls)
        return ExpressionInfo(
            source=source,
            offset=offset,
            is_whole_text=is_whole_text,
            references=tuple(Reference(path=each.path, offset=offset + each.offset) for each in references_of(tree)),
            calls=tuple(
                FunctionUse(
                    name=each.name, offset=offset + each.offset, is_method=each.is_method, arguments=each.arguments
                )
                for each in calls
            ),
            problems=tuple(each for each in unknown if each is not None),
            tree=tree,
        )
    moved = TemplateProblem(problem.code, problem.message, problem.hint, offset + problem.offset)
    return ExpressionInfo(source=source, offset=offset, is_whole_text=is_whole_text, problems=(moved,))


def _unknown(call: FunctionUse, offset: int) -> TemplateProblem | None:
    if call.name not in FUNCTIONS:
        return TemplateProblem(
            "E411", f'There is no function "{call.name}".', advice_for(call.name), offset + call.offset
        )
    if call.is_method and call.name in PLAIN_FUNCTIONS:
        return TemplateProblem(
            "E411",
            f'"{call.name}" cannot be written after a dot.',
            f"Write {call.name}(value) instead of value.{call.name}().",
            offset + call.offset,
        )
    return None
