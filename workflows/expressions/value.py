"""Values of a workflow file that may hold expressions at any depth, compiled once and evaluated often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from workflows.expressions import engine
from workflows.expressions.bounds import LOOP_LIMIT, WORK_LIMIT, work_bound
from workflows.expressions.errors import BadExpression
from workflows.expressions.inputs import inputs_for, look_up
from workflows.expressions.loops import PIECE, evaluate_in_pieces
from workflows.expressions.programs import Program, compile_template
from workflows.jsonvalue import NotStorable, text_of

#: Compiled nodes: a function of the names, or a fixed value wrapped by the caller.
_Render = Callable[[Mapping[str, Any]], Any]
#: Turns the text of one expression into what is put into surrounding text (URL encoding, for instance).
Escape = Callable[[str], str]


class Value:
    """A compiled value. Immutable, safe to evaluate in several threads at once.

    ``source`` is the JSON value it was compiled from. ``names`` are the top-level names it needs, ``references`` their
    longest fixed paths, for instance ``("steps", "fetch", "output")``.
    """

    __slots__ = ("_template", "is_fixed", "names", "references", "source")

    def __init__(self, source: Any, template: Any, references: frozenset[tuple[str, ...]], is_fixed: bool) -> None:
        self.source: Final = source
        self._template: Final = template
        self.references: Final = references
        self.names: Final = frozenset(path[0] for path in references)
        self.is_fixed: Final = is_fixed

    def evaluate(self, names: Mapping[str, Any], *, escape: Escape | None = None) -> Any:
        """A fresh JSON value. ``names`` maps at least :attr:`names` to JSON values or read-only mappings of them.

        ``escape`` is applied to the text of each expression that stands inside other text, and to texts that are one
        expression alone. Raises :class:`BadExpression`.
        """
        try:
            return _render(self._template, names, escape)
        except RecursionError:
            raise BadExpression("The expression is nested too deeply to be evaluated.") from None

    def __repr__(self) -> str:
        return f"Value({self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and _same(self.source, other.source)

    def __hash__(self) -> int:
        return hash(repr(self.source))


class _Text:
    """Text with expressions in it. ``parts`` are fixed texts and programs."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[str | Program, ...]) -> None:
        self.parts = parts


def compile_value(source: Any) -> Value:
    """Compiles a JSON value in which texts may hold ``${ … }``.

    Raises :class:`~workflows.expressions.errors.TemplateProblem` (E401, E402) for text that cannot be read.
    """
    references: set[tuple[str, ...]] = set()
    template, is_fixed = _compile(source, references)
    return Value(source, template, frozenset(references), is_fixed)


def _compile(source: Any, references: set[tuple[str, ...]]) -> tuple[Any, bool]:
    if isinstance(source, str):
        return _compile_text(source, references)
    if isinstance(source, Mapping):
        compiled = {key: _compile(member, references) for key, member in source.items()}
        return {key: template for key, (template, _) in compiled.items()}, all(
            is_fixed for _, is_fixed in compiled.values()
        )
    if isinstance(source, (list, tuple)):
        items = [_compile(item, references) for item in source]
        return [template for template, _ in items], all(is_fixed for _, is_fixed in items)
    return source, True


def _compile_text(source: str, references: set[tuple[str, ...]]) -> tuple[Any, bool]:
    if "${" not in source:
        return source, True
    parts = compile_template(source)
    programs = [part for part in parts if isinstance(part, Program)]
    for program in programs:
        references.update(program.paths)
    if not programs:
        return "".join(part for part in parts if isinstance(part, str)), True
    return (programs[0] if len(parts) == 1 else _Text(parts)), False


def _render(template: Any, names: Mapping[str, Any], escape: Escape | None) -> Any:
    if isinstance(template, Program):
        value = _run(template, names)
        return escape(value) if escape is not None and isinstance(value, str) else value
    if isinstance(template, _Text):
        return "".join(part if isinstance(part, str) else _text_in_text(part, names, escape) for part in template.parts)
    if isinstance(template, dict):
        return {key: _render(member, names, escape) for key, member in template.items()}
    if isinstance(template, list):
        return [_render(item, names, escape) for item in template]
    return template


def _run(program: Program, names: Mapping[str, Any]) -> Any:
    if program.plain_path is not None:
        return look_up(program.source, program.plain_path, names)
    inputs = inputs_for(program.inputs, names)
    return engine.evaluate(program.source, inputs) if program.is_harmless else _run_bounded(program, inputs)


def _run_bounded(program: Program, inputs: Mapping[str, Any]) -> Any:
    bound = work_bound(program.tree, inputs, program.spread)
    if bound.work <= WORK_LIMIT:
        if program.spread and bound.longest_loop > PIECE:
            return evaluate_in_pieces(program.source, program.tree, inputs)
        return engine.evaluate(program.source, inputs)
    reason = engine.LOOP_LIMIT_MESSAGE if bound.rounds > LOOP_LIMIT else engine.WORK_LIMIT_MESSAGE
    raise BadExpression(engine.sentence(program.source, reason))


def _text_in_text(program: Program, names: Mapping[str, Any], escape: Escape | None) -> str:
    value = _run(program, names)
    if value is None:
        raise BadExpression(
            f'The expression "{program.source}" is null, which has no text; '
            f'write a fallback, e.g. ${{ {program.source} != null ? {program.source} : "none" }}.'
        )
    try:
        text = text_of(value)
    except NotStorable as fault:
        raise BadExpression(f'The expression "{program.source}" failed: {fault.message}') from None
    return text if escape is None else escape(text)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
