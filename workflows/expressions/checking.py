"""Types of expressions before anything runs, found by the checker of the CEL library."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from workflows.expressions import engine
from workflows.expressions.references import references_of, walk
from workflows.expressions.syntax import Call, Node, Select, SyntaxTrouble, parse


class CelType(StrEnum):
    """What an expression gives. ``DYN`` means: known only when it is evaluated."""

    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPTIONAL = "optional"
    STRING = "string"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    UINT = "uint"

    @property
    def word(self) -> str:
        """The type in the words of problem messages: "gives text"."""
        return _WORDS.get(self, f"a {self.value}")

    @property
    def may_be_condition(self) -> bool:
        return self in (CelType.BOOL, CelType.DYN)


_WORDS = {
    CelType.BOOL: "true or false",
    CelType.BYTES: "bytes",
    CelType.DOUBLE: "a number",
    CelType.DYN: "any value",
    CelType.INT: "a whole number",
    CelType.MAP: "a mapping",
    CelType.NULL: "null",
    CelType.OPTIONAL: "an optional",
    CelType.STRING: "text",
    CelType.UINT: "a whole number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeProblem:
    """E409: types that do not fit; ``offset`` is where in the expression, from 0."""

    code: str
    message: str
    hint: str
    offset: int


#: A declared name: nullable scalars are what parameters and outputs are, so that comparing with null is always allowed.
_DECLARED = {
    CelType.BOOL: cel.Type("google.protobuf.BoolValue"),
    CelType.DOUBLE: cel.Type("google.protobuf.DoubleValue"),
    CelType.INT: cel.Type("google.protobuf.Int64Value"),
    CelType.STRING: cel.Type("google.protobuf.StringValue"),
    CelType.LIST: cel.Type.List(cel.Type.DYN),
    CelType.MAP: cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
}
_NUMBERS = frozenset({"int", "uint", "double"})
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_CONDITION_MACROS = frozenset({"filter", "map", "all", "exists", "exists_one"})
_LOGIC = frozenset({"&&", "||", "!", "in"})
_FIELD_TYPES = {
    "string": CelType.STRING,
    "date": CelType.STRING,
    "datetime": CelType.STRING,
    "integer": CelType.INT,
    "number": CelType.DOUBLE,
    "boolean": CelType.BOOL,
    "array": CelType.LIST,
    "object": CelType.MAP,
}


def type_of_field(kind: str, *, optional: bool = False) -> CelType:
    """The type of a parameter or form field; an optional list or mapping may be null, so nothing is known of it."""
    declared = _FIELD_TYPES.get(kind, CelType.DYN)
    return CelType.DYN if optional and declared in (CelType.LIST, CelType.MAP) else declared


def type_of_value(value: Any) -> CelType:
    """The type of a JSON value as expressions see it; ``DYN`` for null."""
    if isinstance(value, bool):
        return CelType.BOOL
    kinds = {int: CelType.INT, float: CelType.DOUBLE, str: CelType.STRING, list: CelType.LIST, dict: CelType.MAP}
    return kinds.get(type(value), CelType.DYN)


def static_type(source: str, types: Mapping[str, CelType]) -> CelType | TypeProblem:
    """The type of an expression, or the first thing in it that cannot work whatever the values are.

    ``types`` maps names and dotted paths (``params.day``) to their types; other names are ``DYN``. Meant for
    expressions that can be read; others are ``DYN``.
    """
    try:
        tree = parse(source)
    except SyntaxTrouble:
        return CelType.DYN
    checked = _without_has(source, tree)
    environment = _environment(_needed(tree, types))
    try:
        checked_type = _type_named(environment.compile(checked).return_type().name())
        return _type_of_root(tree) if checked_type is CelType.DYN else checked_type
    except RuntimeError as error:
        report = str(error)
    for line, column, text in engine.errors_in(report):
        problem = _problem(source, tree, _position(source, line, column), text)
        if problem is not None:
            return problem
    return _type_of_root(tree)


def _needed(tree: Node, types: Mapping[str, CelType]) -> tuple[tuple[str, CelType], ...]:
    """The declared paths the expression reads, and its names."""
    needed: dict[str, CelType] = {}
    for reference in references_of(tree):
        needed.setdefault(reference.path[0], types.get(reference.path[0], CelType.DYN))
        for length in range(2, len(reference.path) + 1):
            dotted = ".".join(reference.path[:length])
            if dotted in types:
                needed[dotted] = types[dotted]
    return tuple(sorted(needed.items()))


@lru_cache(maxsize=512)
def _environment(declared: tuple[tuple[str, CelType], ...]) -> cel.Env:
    return engine.checking_environment({name: _DECLARED.get(kind, cel.Type.DYN) for name, kind in declared})


def _without_has(source: str, tree: Node) -> str:
    """``has(a.b)`` as ``dyn(a.b)``, of the same length: the checker takes a declared ``a.b`` for one name."""
    for node in walk(tree):
        if isinstance(node, Call) and node.function == "has" and node.target is None:
            source = f"{source[: node.name_at]}dyn{source[node.name_at + 3 :]}"
    return source


def _type_named(name: str) -> CelType:
    """The library's name of a type, such as ``LIST<INT>`` or ``google.protobuf.StringValue``."""
    head = re.split(r"[<(]", name, maxsplit=1)[0].lower()
    head = {"optional_type": "optional", "null_type": "null"}.get(head, head)
    return CelType(head) if head in set(CelType) else CelType.DYN


def _type_of_root(tree: Node) -> CelType:
    if isinstance(tree, Call) and (tree.function == "has" or tree.function in _COMPARISONS | _LOGIC):
        return CelType.BOOL
    return CelType.DYN


def _problem(source: str, tree: Node, at: int, text: str) -> TypeProblem | None:
    if (found := re.match(r"found no matching overload for '(.+?)' applied to '\((.*)\)'$", text)) is not None:
        sign = engine.operator_sign(found[1])
        operands = list(_split_types(found[2]))
        if _works_anyway(sign, operands):
            return None
        return _misfit(source, tree, at, sign, [_plain(operand) for operand in operands])
    if (found := re.match(r"expression of type '(.*)' cannot be the operand of a select", text)) is not None:
        return _misfit(source, tree, at, ".", [_plain(found[1])])
    if (found := re.match(r"expression of type '(.*)' cannot be the range of a comprehension", text)) is not None:
        return _not_a_range(source, tree, at, _plain(found[1]))
    if re.match(r"undeclared reference to", text) is not None:
        return _wrong_count(source, tree, at)
    return None


def _works_anyway(sign: str, operands: list[str]) -> bool:
    """What the checker refuses and the evaluation understands: mixed numbers, null, and branches of two types."""
    kinds = [_plain(operand) for operand in operands]
    if sign in _COMPARISONS and (set(kinds) <= _NUMBERS or (sign in ("==", "!=") and "null" in kinds)):
        return True
    if sign == "?:":
        return kinds[0] in ("bool", "dyn")
    if sign == "in":
        inner = re.match(r"(?:list|map)\(([^,()]*)", operands[1])
        return inner is not None and {kinds[0], inner[1]} <= _NUMBERS
    return "T%" in "".join(operands)


def _misfit(source: str, tree: Node, at: int, sign: str, kinds: list[str]) -> TypeProblem:
    if sign in ("?:", "&&", "||") and (loop := _loop_with_condition(tree, at)) is not None:
        sign, kinds = loop.function, kinds[:1] if sign == "?:" else kinds[1:]
    node = _node_at(tree, at, sign) or tree
    return TypeProblem(
        code="E409",
        message=f'"{sign}" cannot be used with {engine.listed(kinds)}: {source[node.start : node.end]}',
        hint=_hint(sign, kinds),
        offset=at,
    )


def _hint(sign: str, kinds: list[str]) -> str:
    if sign == "?:":
        return 'The part before "?" must be true or false.'
    if sign in _CONDITION_MACROS:
        return "The condition must be true or false."
    if sign in ("&&", "||", "!"):
        return (
            'Both sides must be true or false; compare, e.g. `!= ""`.'
            if sign != "!"
            else "Only true or false can be negated."
        )
    if sign == ".":
        return "Only mappings have fields."
    if sign in _COMPARISONS or sign in ("+", "-", "*", "/", "%"):
        return "Convert one side, e.g. string(…), int(…) or double(…)."
    return "Convert the value, e.g. string(…), int(…) or double(…)."


def _wrong_count(source: str, tree: Node, at: int) -> TypeProblem | None:
    node = next(
        (part for part in walk(tree) if isinstance(part, Call) and not part.is_operator and part.at == at), None
    )
    if node is None:
        return None
    count = len(node.arguments)
    arguments = "no arguments" if count == 0 else "1 argument" if count == 1 else f"{count} arguments"
    return TypeProblem(
        code="E409",
        message=f'"{node.function}" cannot be used with {arguments}: {source[node.start : node.end]}',
        hint="Check the number of arguments.",
        offset=at,
    )


def _node_at(tree: Node, at: int, sign: str) -> Node | None:
    for node in walk(tree):
        if isinstance(node, Call) and node.at == at and node.function in (sign, sign.rpartition(".")[2]):
            return node
        if sign == "." and isinstance(node, Select) and _dot_of(node) == at:
            return node
    return None


def _loop_with_condition(tree: Node, at: int) -> Call | None:
    """The macro the library turned into a choice at ``at``."""
    for node in walk(tree):
        if isinstance(node, Call) and node.at == at and node.function in _CONDITION_MACROS:
            return node
    return None


def _dot_of(node: Select) -> int:
    """Where the library reports trouble with a field: at its dot, just before the name."""
    return node.field_at - 1


def _not_a_range(source: str, tree: Node, at: int, kind: str) -> TypeProblem:
    loops = [node for node in walk(tree) if isinstance(node, Call) and node.target is not None and node.at > at]
    loop = min(loops, key=lambda node: node.at, default=None)
    shown = source if loop is None else source[loop.start : loop.end]
    return TypeProblem(
        code="E409",
        message=f'"{"map" if loop is None else loop.function}" cannot be used with {kind}: {shown}',
        hint="Only lists and mappings have items.",
        offset=at,
    )


def _split_types(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, character in enumerate(text):
        if character in "(<":
            depth += 1
        elif character in ")>":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text:
        yield text[start:].strip()


def _plain(name: str) -> str:
    """``string`` for the library's ``wrapper(string)``; containers without what they hold."""
    if (found := re.fullmatch(r"wrapper\((.*)\)", name)) is not None:
        return found[1]
    names = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration", "null_type": "null"}
    head = name.split("(", 1)[0]
    return names.get(head, "optional" if head == "optional_type" else head)


def _position(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
