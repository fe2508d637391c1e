"""What an expression needs from outside: names with their longest fixed paths, and the functions it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from workflows.expressions.paths import path_steps
from workflows.expressions.syntax import Call, Collection, Literal, Name, Node, Select, text_of_literal

#: Macros whose first argument is a new name, visible in the other arguments only.
BINDING_MACROS = frozenset({"all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap"})
#: Names that are types, not values.
TYPE_NAMES = frozenset(
    {
        "bool",
        "bytes",
        "double",
        "dyn",
        "google",
        "int",
        "list",
        "map",
        "null_type",
        "optional_type",
        "string",
        "type",
        "uint",
    }
)
#: Functions that are written like methods of a name.
NAMESPACES = frozenset({"math", "optional", "strings"})
#: Names that mean something else in expressions, so a map cannot use them for its items.
RESERVED_NAMES = TYPE_NAMES | NAMESPACES


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A use of an outer name: ``("steps", "fetch", "output")`` at ``offset`` of the expression."""

    path: tuple[str, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionUse:
    """A call of ``name`` (``math.greatest`` for functions of a namespace) at ``offset`` of the expression."""

    name: str
    offset: int
    is_method: bool
    arguments: int


def references_of(node: Node) -> tuple[Reference, ...]:
    """The outer names below ``node``, in reading order, with the longest path that is fixed."""
    return tuple(_references(node, frozenset()))


def calls_of(node: Node) -> tuple[FunctionUse, ...]:
    """The functions, methods and macros called below ``node``; operators are not listed."""
    return tuple(_calls(node))


def children_of(node: Node) -> tuple[Node, ...]:
    """The parts of ``node`` in reading order."""
    match node:
        case Select(operand=operand):
            return (operand,)
        case Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case Collection(members=members):
            return members
    return ()


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it."""
    yield node
    for child in children_of(node):
        yield from walk(child)


def fixed_path(node: Node) -> tuple[Name, tuple[str, ...]] | None:
    """The name and the fixed fields of ``a.b["c"]``; None for anything else."""
    match node:
        case Name():
            return node, (node.name,)
        case Select(operand=operand, field=field):
            below = fixed_path(operand)
            return None if below is None else (below[0], (*below[1], field))
        case Call(function="[]", arguments=(operand, Literal(kind="text", text=text))):
            below, key = fixed_path(operand), text_of_literal(text)
            return None if below is None or key is None else (below[0], (*below[1], key))
    return None


def namespace_of(call: Call) -> str | None:
    """``math`` for ``math.greatest(…)``."""
    target = call.target
    return target.name if isinstance(target, Name) and target.name in NAMESPACES else None


def _references(node: Node, bound: frozenset[str]) -> Iterator[Reference]:
    path = fixed_path(node)
    if path is not None:
        name, fields = path
        if name.name not in bound and name.name not in TYPE_NAMES:
            yield Reference(path=fields, offset=name.start)
        return
    if isinstance(node, Call) and node.target is not None:
        if namespace_of(node) is None:
            yield from _references(node.target, bound)
        inner, arguments = bound, node.arguments
        if node.function in BINDING_MACROS and len(arguments) > 1 and isinstance(arguments[0], Name):
            inner, arguments = bound | {arguments[0].name}, arguments[1:]
        for argument in arguments:
            yield from _references(argument, inner)
        return
    if (reached := _reached_by_get(node)) is not None:
        name, fields = reached
        if name.name not in bound and name.name not in TYPE_NAMES:
            yield Reference(path=fields, offset=name.start)
            for argument in children_of(node)[2:]:
                yield from _references(argument, bound)
            return
    for child in children_of(node):
        yield from _references(child, bound)


def _reached_by_get(node: Node) -> tuple[Name, tuple[str, ...]] | None:
    """The fixed path that ``get(a.b, "c.d")`` reads: up to the first position in a list."""
    match node:
        case Call(function="get", target=None, arguments=(value, Literal(kind="text", text=text), *_)):
            below, path = fixed_path(value), text_of_literal(text)
        case _:
            return None
    if below is None or path is None:
        return None
    try:
        fields = tuple(takewhile(lambda step: isinstance(step, str), path_steps(path)))
    except ValueError:
        return None
    return below[0], (*below[1], *map(str, fields))


def _calls(node: Node) -> Iterator[FunctionUse]:
    for part in walk(node):
        if isinstance(part, Call) and not part.is_operator:
            namespace = namespace_of(part)
            yield FunctionUse(
                name=part.function if namespace is None else f"{namespace}.{part.function}",
                offset=part.name_at if namespace is None else part.start,
                is_method=part.target is not None and namespace is None,
                arguments=len(part.arguments),
            )
