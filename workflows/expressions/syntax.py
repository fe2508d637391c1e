"""The syntax of an expression as a tree with positions, for questions the CEL library does not answer.

The library decides what is a valid expression and evaluates it. This parser reads the same grammar
(https://github.com/cel-expr/cel-spec/blob/master/doc/langdef.md#syntax) to find out which names an expression needs,
which functions it calls, and where in the text they are. It expects text the library has accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: One CEL string or bytes literal; the longest alternatives first.
STRING = re.compile(
    r'[bB]?[rR]"""(?:[^"]|"(?!""))*"""|[bB]?[rR]' + r"'''(?:[^']|'(?!''))*'''"
    r'|[rR]?[bB]?"""(?:[^"\\]|\\.|"(?!""))*"""|[rR]?[bB]?' + r"'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|(?:[bB]?[rR]|[rR][bB])"[^"\r\n]*"|(?:[bB]?[rR]|[rR][bB])' + r"'[^'\r\n]*'"
    r'|[bB]?"(?:[^"\\\r\n]|\\.)*"|[bB]?' + r"'(?:[^'\\\r\n]|\\.)*'",
    re.DOTALL,
)
_SPACE = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)*")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]?")
_WORD = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*|`[a-zA-Z0-9_.\-/ ]+`")
_SYMBOL = re.compile(r"&&|\|\||[<>=!]=|[-+*/%!<>?:.,()\[\]{}]")

_BINARY: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("<=", ">=", "==", "!=", "<", ">", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_CONSTANTS = frozenset({"true", "false", "null"})


class SyntaxTrouble(Exception):
    """The text is not an expression; ``at`` is the position (from 0) where the reading stopped."""

    def __init__(self, at: int) -> None:
        super().__init__(f"position {at}")
        self.at = at


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    kind: str  # word, text, number, symbol, end
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression: its text is ``source[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Node):
    kind: str  # text, number, constant
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    operand: Node
    field: str
    field_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """A function, method or operator. ``at`` is where the library reports trouble with it: the bracket or the operator.

    Operators have their own sign as ``function``; ``[]`` is indexing and ``?:`` the choice.
    """

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None
    name_at: int = 0
    at: int = 0
    is_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Node):
    """A list, a mapping or a message: the nodes in it, keys included."""

    members: tuple[Node, ...] = field(default=())


#: Signs (`!`, `-`) in one expression; more of them in a row would nest deeper than it can be evaluated.
MOST_SIGNS = 200


def parse(source: str) -> Node:
    """The tree of ``source``. Raises :class:`SyntaxTrouble` for text that is not an expression, or nests too deeply."""
    try:
        return _Parser(source).whole()
    except RecursionError:
        raise SyntaxTrouble(0) from None


def tokens_of(source: str) -> Iterator[Token]:
    """The tokens of ``source`` and an empty one at its end. Raises :class:`SyntaxTrouble`."""
    at = 0
    while True:
        at = _after(_SPACE, source, at)
        if at == len(source):
            yield Token(kind="end", text="", start=at)
            return
        for kind, pattern in (("text", STRING), ("number", _NUMBER), ("word", _WORD), ("symbol", _SYMBOL)):
            if (found := pattern.match(source, at)) is not None:
                yield Token(kind=kind, text=found.group(), start=at)
                at = found.end()
                break
        else:
            raise SyntaxTrouble(at)


def text_of_literal(token: str) -> str | None:
    """The text of a string literal without escapes; None when it has any or is not plain text."""
    quote = token[:1]
    if quote not in ("'", '"') or token.startswith(quote * 3) or "\\" in token:
        return None
    return token[1:-1]


def _after(pattern: re.Pattern[str], source: str, at: int) -> int:
    found = pattern.match(source, at)
    return at if found is None else found.end()


class _Parser:
    def __init__(self, source: str) -> None:
        self.tokens = list(tokens_of(source))
        self.index = 0
        self.signs = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def whole(self) -> Node:
        node = self.expression()
        if self.token.kind != "end":
            raise SyntaxTrouble(self.token.start)
        return node

    def is_at(self, *texts: str) -> bool:
        return self.token.kind in ("symbol", "word") and self.token.text in texts

    def take(self) -> Token:
        token = self.token
        if token.kind == "end":
            raise SyntaxTrouble(token.start)
        self.index += 1
        return token

    def took(self, text: str) -> bool:
        if not self.is_at(text):
            return False
        self.index += 1
        return True

    def need(self, text: str) -> Token:
        if not self.is_at(text):
            raise SyntaxTrouble(self.token.start)
        return self.take()

    def expression(self) -> Node:
        start = self.token.start
        condition = self.binary(0)
        if not self.is_at("?"):
            return condition
        mark = self.take()
        first = self.binary(0)
        self.need(":")
        second = self.expression()
        return self.operator("?:", mark, (condition, first, second), start)

    def operator(self, sign: str, token: Token, operands: tuple[Node, ...], start: int) -> Call:
        """An operator's node from ``start`` to the last token read, so that it covers the brackets around operands."""
        return Call(
            start=start,
            end=self.tokens[self.index - 1].end,
            function=sign,
            arguments=operands,
            name_at=token.start,
            at=token.start,
            is_operator=True,
        )

    def binary(self, level: int) -> Node:
        if level == len(_BINARY):
            return self.unary()
        start = self.token.start
        node = self.binary(level + 1)
        while self.is_at(*_BINARY[level]):
            sign = self.take()
            node = self.operator(sign.text, sign, (node, self.binary(level + 1)), start)
        return node

    def unary(self) -> Node:
        if not self.is_at("!", "-"):
            return self.member()
        sign = self.take()
        self.signs += 1
        if self.signs > MOST_SIGNS:
            raise SyntaxTrouble(sign.start)
        return self.operator(sign.text, sign, (self.unary(),), sign.start)

    def member(self) -> Node:
        start = self.token.start
        node = self.primary()
        while True:
            if self.is_at("."):
                node = self.selected(node, start)
            elif self.is_at("["):
                node = self.indexed(node, start)
            elif self.is_at("{") and _is_type_name(node):
                node = self.message(node)
            else:
                return node

    def selected(self, operand: Node, start: int) -> Node:
        dot = self.need(".")
        optional = self.took("?")
        word = self.word()
        if self.is_at("(") and not optional:
            return self.call(word, operand, start)
        name = word.text.strip("`")
        if optional:
            field = Literal(start=word.start, end=word.end, kind="text", text=f'"{name}"')
            return self.operator(".?", dot, (operand, field), start)
        return Select(start=start, end=word.end, operand=operand, field=name, field_at=word.start)

    def indexed(self, operand: Node, start: int) -> Node:
        bracket = self.need("[")
        sign = "[?]" if self.took("?") else "[]"
        key = self.expression()
        self.need("]")
        return self.operator(sign, bracket, (operand, key), start)

    def call(self, word: Token, target: Node | None, start: int) -> Node:
        bracket = self.need("(")
        arguments = tuple(self.listed(")"))
        return Call(
            start=start,
            end=self.tokens[self.index - 1].end,
            function=word.text,
            arguments=arguments,
            target=target,
            name_at=word.start,
            at=bracket.start,
        )

    def listed(self, closing: str) -> Iterator[Node]:
        while not self.took(closing):
            self.took("?")
            yield self.expression()
            if not self.took(","):
                self.need(closing)
                return

    def primary(self) -> Node:
        token = self.token
        if token.kind in ("text", "number"):
            self.index += 1
            return Literal(start=token.start, end=token.end, kind=token.kind, text=token.text)
        if token.kind == "word":
            return self.named(token.start)
        if self.took("("):
            inner = self.expression()
            self.need(")")
            return inner
        if self.took("["):
            members = tuple(self.listed("]"))
            return Collection(start=token.start, end=self.tokens[self.index - 1].end, members=members)
        if self.took("{"):
            return self.mapping(token.start)
        if self.took("."):
            return self.named(token.start)
        raise SyntaxTrouble(token.start)

    def named(self, start: int) -> Node:
        word = self.word()
        if word.text in _CONSTANTS:
            return Literal(start=start, end=word.end, kind="constant", text=word.text)
        if self.is_at("("):
            return self.call(word, None, start)
        return Name(start=start, end=word.end, name=word.text)

    def mapping(self, start: int) -> Node:
        members: list[Node] = []
        while not self.took("}"):
            self.took("?")
            members.append(self.expression())
            self.need(":")
            members.append(self.expression())
            if not self.took(","):
                self.need("}")
                break
        return Collection(start=start, end=self.tokens[self.index - 1].end, members=tuple(members))

    def message(self, name: Node) -> Node:
        self.need("{")
        members: list[Node] = []
        while not self.took("}"):
            self.took("?")
            self.word()
            self.need(":")
            members.append(self.expression())
            if not self.took(","):
                self.need("}")
                break
        return Collection(start=name.start, end=self.tokens[self.index - 1].end, members=tuple(members))

    def word(self) -> Token:
        if self.token.kind != "word":
            raise SyntaxTrouble(self.token.start)
        return self.take()


def _is_type_name(node: Node) -> bool:
    return isinstance(node, Name) or (isinstance(node, Select) and _is_type_name(node.operand))
