"""An upper bound for the work of one evaluation, found before it begins.

The CEL library stops loops after 10 000 rounds, but a round may copy a list or a text of any size, and nothing can
interrupt it. So the tree is walked with the sizes of the actual values; an expression that could need more than
:data:`WORK_LIMIT` is refused. The bound is generous: it takes every branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workflows.expressions.references import BINDING_MACROS, children_of, fixed_path, namespace_of, walk
from workflows.expressions.syntax import Call, Collection, Literal, Name, Node, Select

#: Cells that may be made or read in one evaluation; a cell is a value or sixteen characters (20 to 100 ns each).
WORK_LIMIT = 20_000_000
#: Rounds of all loops together, the library's own limit.
LOOP_LIMIT = 10_000

_CHARACTERS = 16
#: Nodes up to which an expression without loops and without functions that multiply needs no bound.
_FEW = 64
_GROWING = frozenset({"replace", "format", "split", "join", "from_json", "to_json", "matches"})
#: Pairs of a character and a place in a pattern that cost as much as a cell: matching cannot be interrupted either.
_MATCHED_PER_CELL = 5
#: What our own functions cost per cell: their values cross into Python and back.
_CROSSING = 20
_OWN = frozenset({"get", "sum", "unique", "sort", "keys", "to_json", "from_json"})


@dataclass(frozen=True, slots=True)
class Size:
    """``cells`` of the whole value, ``length`` in items or characters, ``item`` the cells of its largest item."""

    cells: int
    length: int
    item: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """``work`` in cells; ``longest_loop`` in items of one list; ``rounds`` that one loop may make in all."""

    work: int
    longest_loop: int
    rounds: int


#: A part of an expression: its beginning and end in the text.
Place = tuple[int, int]

_SMALL = Size(1, 1, 1)


def is_harmless(tree: Node) -> bool:
    """Whether no value can make this expression expensive, so that no bound is needed."""
    nodes = list(walk(tree))
    return len(nodes) <= _FEW and not any(
        isinstance(node, Call) and node.function in (BINDING_MACROS | _GROWING | _OWN - {"get"}) for node in nodes
    )


def work_bound(tree: Node, inputs: Mapping[str, Any], spread: frozenset[Place] = frozenset()) -> Bound:
    """The most cells an evaluation of ``tree`` can touch. Loops at ``spread`` are evaluated piece by piece."""
    estimate = _Estimate(inputs, spread)
    result = estimate.size(tree, {}, 1)
    return Bound(work=estimate.work + 10 * result.cells, longest_loop=estimate.longest, rounds=estimate.rounds)


def _place(node: Node) -> Place:
    return (node.start, node.end)


def measure(value: Any) -> Size:
    """The size of a JSON value."""
    if isinstance(value, str):
        return Size(1 + len(value) // _CHARACTERS, len(value), 1)
    if isinstance(value, (list, dict)):
        items = list(value.values()) if isinstance(value, dict) else value
        keys = sum(1 + len(key) // _CHARACTERS for key in value) if isinstance(value, dict) else 0
        cells = [_cells(item) for item in items]
        return Size(1 + keys + sum(cells), len(items), max(cells, default=1))
    return _SMALL


def _cells(value: Any) -> int:
    total = 0
    waiting = [value]
    while waiting:
        current = waiting.pop()
        total += 1
        if isinstance(current, str):
            total += len(current) // _CHARACTERS
        elif isinstance(current, list):
            waiting.extend(current)
        elif isinstance(current, dict):
            waiting.extend(current)
            waiting.extend(current.values())
    return total


class _Estimate:
    def __init__(self, inputs: Mapping[str, Any], spread: frozenset[Place]) -> None:
        self.inputs = inputs
        self.spread = spread
        self.longest = 0
        self.rounds = 0
        self.known: dict[tuple[str, ...], Size] = {}
        self.work = 0

    def size(self, node: Node, bound: Mapping[str, Size], times: int) -> Size:
        """The size of a part that is evaluated up to ``times`` times; its work is added up."""
        self.work += times
        match node:
            case Literal(text=text):
                return Size(1 + len(text) // _CHARACTERS, len(text), 1)
            case Collection():
                return self.collection(node, bound, times)
        path = fixed_path(node)
        if path is not None and path[0].name not in bound:
            return self.outer(path[1])
        match node:
            case Name(name=name):
                return bound[name]
            case Select(operand=operand):
                return _part_of(self.size(operand, bound, times))
            case Call(is_operator=True):
                return self.operator(node, bound, times)
            case Call(function=function, target=Node()) if function in BINDING_MACROS:
                return self.loop(node, bound, times)
            case Call():
                return self.function(node, bound, times)
        return _SMALL

    def outer(self, path: tuple[str, ...]) -> Size:
        if path not in self.known:
            value: Any = self.inputs
            for field in path:
                value = value.get(field) if isinstance(value, Mapping) else None
            self.known[path] = measure(value)
        return self.known[path]

    def collection(self, node: Collection, bound: Mapping[str, Size], times: int) -> Size:
        members = [self.size(member, bound, times) for member in node.members]
        return Size(
            1 + sum(member.cells for member in members), len(members), max((m.cells for m in members), default=1)
        )

    def operator(self, node: Call, bound: Mapping[str, Size], times: int) -> Size:
        operands = [self.size(operand, bound, times) for operand in node.arguments]
        match node.function:
            case "+":
                size = Size(
                    sum(operand.cells for operand in operands),
                    sum(operand.length for operand in operands),
                    max(operand.item for operand in operands),
                )
                self.work += times * size.cells
                return size
            case "?:":
                return _larger(operands[1:])
            case "[]" | "[?]" | ".?":
                return Size(operands[0].item, operands[0].item * _CHARACTERS, operands[0].item)
            case "in":
                self.work += times * operands[1].cells
            case "==" | "!=" | "<" | "<=" | ">" | ">=":
                self.work += times * min(operand.cells for operand in operands)
        return _SMALL

    def loop(self, node: Call, bound: Mapping[str, Size], times: int) -> Size:
        """A loop costs at most what it costs for small items, and for its largest item as often as that fits in.

        (The cost of a body grows at least evenly with its item, so the bound holds for every mixture of sizes.)
        """
        assert node.target is not None
        over = self.size(node.target, bound, times)
        self.longest = max(self.longest, over.length)
        self.rounds = max(self.rounds, times * over.length)
        length = min(over.length, LOOP_LIMIT)
        large = min(max(over.cells // max(over.item, 1), 1), max(length, 1))
        item = Size(over.item, over.item * _CHARACTERS, over.item)
        few = self.body(node, bound, item, times * large)
        many = self.body(node, bound, _SMALL, times * length)
        if node.function in ("map", "filter") and _place(node) not in self.spread:
            # The library copies the list it has so far in every round.
            self.work += min(times * length, LOOP_LIMIT) * length
        if node.function == "filter":
            return over
        if node.function == "map":
            return Size(1 + length * many.cells + large * few.cells, length, max(few.cells, many.cells))
        return _larger([over, few]) if node.function in ("optMap", "optFlatMap") else _SMALL

    def body(self, node: Call, bound: Mapping[str, Size], item: Size, times: int) -> Size:
        variable, *parts = node.arguments or (node,)
        inner = dict(bound)
        if isinstance(variable, Name):
            inner[variable.name] = item
        sizes = [self.size(part, inner, min(times, LOOP_LIMIT)) for part in parts]
        return sizes[-1] if sizes else _SMALL

    def function(self, node: Call, bound: Mapping[str, Size], times: int) -> Size:
        parts = [part for part in children_of(node) if part is not node.target or namespace_of(node) is None]
        sizes = [self.size(part, bound, times) for part in parts]
        total = sum(size.cells for size in sizes)
        result = _result_of(node.function, sizes, total)
        factor = _CROSSING if node.function in _OWN else 1
        self.work += times * (total + result.cells) * factor
        if node.function == "matches" and len(sizes) > 1:
            self.work += times * (sizes[0].length * sizes[1].length) // _MATCHED_PER_CELL
        return result


def _result_of(function: str, sizes: list[Size], total: int) -> Size:
    first = sizes[0] if sizes else _SMALL
    match function:
        case "split":
            return Size(1 + 2 * first.length, 1 + first.length, first.cells)
        case "from_json":
            return Size(1 + first.length, 1 + first.length, 1 + first.length)
        case "join":
            separator = sizes[1].length if len(sizes) > 1 else 0
            characters = first.cells * _CHARACTERS + first.length * separator
            return Size(1 + characters // _CHARACTERS, characters, 1)
        case "replace":
            characters = (first.length + 1) * (1 + (sizes[2].length if len(sizes) > 2 else 0))
            return Size(1 + characters // _CHARACTERS, characters, 1)
        case "format" | "to_json" | "string" | "quote":
            characters = 8 * total * _CHARACTERS
            return Size(1 + characters // _CHARACTERS, characters, 1)
        case "get" | "unique" | "sort" | "keys" | "reverse" | "value" | "orValue" | "or" | "of":
            return _larger(sizes)
        case "size" | "contains" | "startsWith" | "endsWith" | "matches" | "indexOf" | "lastIndexOf" | "sum":
            return _SMALL
    return _part_of(_larger(sizes))


def _part_of(size: Size) -> Size:
    """Something inside a value: at most as large, its items unknown."""
    return Size(size.cells, size.cells * _CHARACTERS, size.cells)


def _larger(sizes: list[Size]) -> Size:
    return Size(
        max((size.cells for size in sizes), default=1),
        max((size.length for size in sizes), default=1),
        max((size.item for size in sizes), default=1),
    )
