"""The tree of an expression: the same grammar as the library's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.expressions import engine
from workflows.expressions.references import walk
from workflows.expressions.syntax import Call, Literal, SyntaxTrouble, parse

ATOMS = st.sampled_from(
    ["a", "a.b", "a['b c']", "1", "-2", "1.5e3", "0x1F", "1u", "'x'", '"""y"""', "r'\\d'", "b'z'", "null", "true", "[]", "{}"]
)  # fmt: skip


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"])
    return (
        st.tuples(inner, binary, inner).map(" ".join)
        | inner.map("({})".format)
        | inner.map("!({})".format)
        | st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]}) ? {parts[1]} : {parts[2]}")
        | st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
        | st.tuples(inner, inner).map(lambda parts: f"{{{parts[0]}: {parts[1]}}}")
        | st.tuples(inner, inner).map(lambda parts: f"({parts[0]}).map(x, {parts[1]})")
        | inner.map("size({})".format)
        | inner.map("a.?b[{}] // remark\n".format)
    )


@given(st.recursive(ATOMS, combined, max_leaves=6))
def test_every_part_of_what_the_library_reads_is_an_expression_too(source: str) -> None:
    try:
        engine.program(source)
    except engine.Refused:
        return
    for node in walk(parse(source)):
        if not isinstance(node, Literal):
            engine.program(source[node.start : node.end])


@pytest.mark.parametrize(
    ("source", "at"),
    [("", 0), ("1 +", 3), ("a.", 2), ("(1", 2), ("f(1,", 4), ("[1", 2), ("{1", 2), ("{1: 2", 5), ("a b", 2), ("1 ? 2", 5), ("#", 0)],
)  # fmt: skip
def test_what_is_no_expression_has_a_place(source: str, at: int) -> None:
    with pytest.raises(SyntaxTrouble) as trouble:
        parse(source)
    assert trouble.value.at == at


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("1 + 2 * 3", ["1 + 2 * 3", "2 * 3"]),
        ("(1 + 2) * 3", ["(1 + 2) * 3", "1 + 2"]),
        ("a ? b : c ? d : e", ["a ? b : c ? d : e", "c ? d : e"]),
        ("a.b(c)[d]", ["a.b(c)[d]", "a.b(c)"]),
        ("!a || b in c", ["!a || b in c", "!a", "b in c"]),
    ],
)
def test_operators_bind_as_in_cel(source: str, parts: list[str]) -> None:
    calls = [node for node in walk(parse(source)) if isinstance(node, Call)]
    assert [source[node.start : node.end] for node in calls] == parts
