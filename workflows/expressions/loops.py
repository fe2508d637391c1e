"""Long loops, piece by piece.

In every round of ``map`` and ``filter`` the CEL library copies the list it has so far: 9 000 items take more than a
second and a gigabyte. So a loop that is certain to be evaluated, and whose list is long, is evaluated for some hundred
items at a time, and its result takes its place in the rest of the expression. The values are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workflows.expressions import engine
from workflows.expressions.bounds import LOOP_LIMIT, Place
from workflows.expressions.errors import BadExpression
from workflows.expressions.references import children_of
from workflows.expressions.syntax import Call, Collection, Node, Select

#: Items of one piece; shorter loops are left to the library.
PIECE = 128
_LOOPS = frozenset({"map", "filter"})
#: Calls whose arguments may not be evaluated at all, or not as values.
_LAZY = frozenset({"has", "all", "exists", "exists_one", "optMap", "optFlatMap", "or", "orValue"})


def certain_loops(tree: Node) -> tuple[Call, ...]:
    """The outermost ``map`` and ``filter`` calls that are evaluated whenever ``tree`` is, in reading order."""
    return tuple(_certain(tree))


def spread_places(tree: Node) -> frozenset[Place]:
    """Where the loops are that :func:`evaluate_in_pieces` works piece by piece, chained ones included."""
    return frozenset(_all_places(tree))


def evaluate_in_pieces(source: str, tree: Node, inputs: Mapping[str, Any]) -> Any:
    """The JSON value of an expression with long loops. Raises :class:`BadExpression`."""
    return _Pieces(source, dict(inputs)).result(tree)


def _certain(node: Node) -> Iterator[Call]:
    if isinstance(node, Call):
        if node.target is not None and node.function in _LOOPS:
            yield node
            return
        if node.function == "?:":
            yield from _certain(node.arguments[0])
            return
        if node.function in ("&&", "||"):
            # One side can make up for an error of the other, so neither may be evaluated on its own.
            return
        if node.function in _LAZY:
            if node.target is not None:
                yield from _certain(node.target)
            return
    if isinstance(node, (Call, Select, Collection)):
        for child in children_of(node):
            yield from _certain(child)


def _all_places(tree: Node) -> Iterator[Place]:
    if isinstance(tree, Call) and tree.function == "?:":
        for part in tree.arguments:
            yield from _all_places(part)
        return
    for loop in _certain(tree):
        yield (loop.start, loop.end)
        if loop.target is not None:
            yield from _all_places(loop.target)


class _NotPlain(Exception):
    """A value on the way is not JSON (a timestamp, bytes): the library has to do the whole."""


class _Pieces:
    def __init__(self, source: str, inputs: dict[str, Any]) -> None:
        self.source = source
        self.inputs = inputs
        self.rounds = 0

    def result(self, node: Node) -> Any:
        """The value of the whole expression: of a choice only the branch that is taken is looked at."""
        try:
            if isinstance(node, Call) and node.function == "?:":
                condition, first, second = node.arguments
                chosen = self.intermediate(condition)
                if not isinstance(chosen, bool):
                    raise BadExpression(engine.sentence(self.source, "a condition must be true or false"))
                return self.result(first if chosen else second)
            text, names = self.reduced(node)
        except _NotPlain:
            text, names = self.source[node.start : node.end], self.inputs
        return engine.json_of(engine.raw(text, names, shown=self.source), self.source)

    def intermediate(self, node: Node) -> Any:
        text, names = self.reduced(node)
        value = engine.raw(text, names, shown=self.source)
        if not _is_plain(value):
            raise _NotPlain
        return value

    def reduced(self, node: Node) -> tuple[str, dict[str, Any]]:
        """The text of ``node`` with names in place of its loops, and the values of all names."""
        names = dict(self.inputs)
        pieces: list[str] = []
        at = node.start
        # Names of a workflow begin with a small letter, these cannot meet one.
        for number, loop in enumerate(certain_loops(node)):
            name = f"Result_of_loop_{number}"
            names[name] = self.loop(loop)
            pieces += [self.source[at : loop.start], name]
            at = loop.end
        return "".join([*pieces, self.source[at : node.end]]), names

    def loop(self, loop: Call) -> list[Any]:
        assert loop.target is not None
        items = self.intermediate(loop.target)
        if isinstance(items, dict):
            items = list(items)
        if not isinstance(items, list):
            raise _NotPlain
        self.rounds += len(items)
        if self.rounds >= LOOP_LIMIT:
            raise BadExpression(engine.sentence(self.source, engine.LOOP_LIMIT_MESSAGE))
        after = self.source[self._end_of_target(loop) : loop.end]
        results: list[Any] = []
        for start in range(0, len(items), PIECE):
            names = {**self.inputs, "Items_of_loop": items[start : start + PIECE]}
            piece = engine.raw(f"Items_of_loop{after}", names, shown=self.source)
            if not _is_plain(piece):
                raise _NotPlain
            results += piece
        return results

    def _end_of_target(self, loop: Call) -> int:
        """Where ``.map`` begins: at the last dot before the name."""
        return self.source.rindex(".", 0, loop.name_at)


def _is_plain(value: Any) -> bool:
    """Whether a value can leave the library and come back unchanged."""
    kind = type(value)
    if kind is str:
        return "\0" not in value
    if value is None or kind is bool or kind is int or kind is float:
        return True
    if kind is list:
        return all(map(_is_plain, value))
    if kind is dict:
        return all(type(key) is str and "\0" not in key and _is_plain(member) for key, member in value.items())
    return False
