"""Texts with ``${ … }``: where expressions begin and end, what they become, and which names they need."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.expressions import BadExpression, TemplateProblem, Value, analyse, compile_value

NAMES: dict[str, Any] = {
    "params": {"n": 3, "who": "Zoë", "none": None, "rate": 2.0, "list": [1, "ä", None], "on": True},
    "vars": {"round": 1},
    "steps": {
        "fetch": {"output": {"rows": [{"id": 1}, {"id": 2}], "a b": "spaced"}, "visits": 2, "outcome": "ok"},
        "later": {"output": None, "visits": 0, "outcome": None},
    },
    "run": {"id": 7},
}


def evaluated(source: Any) -> Any:
    return compile_value(source).evaluate(NAMES)


def failure(source: Any) -> str:
    with pytest.raises(BadExpression) as failed:
        evaluated(source)
    return failed.value.message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("plain", "plain"),
        (5, 5),
        (None, None),
        ("${ params.n }", 3),
        ("${params.n}", 3),
        ("${\n  params.n\n}", 3),
        ("${ params.none }", None),
        ("${ params.list }", [1, "ä", None]),
        ("${ params.rate }", 2.0),
        (" ${ params.n }", " 3"),
        ("n=${ params.n }, ${ params.who }!", "n=3, Zoë!"),
        ("${ params.n }${ params.n }", "33"),
        ("${ params.rate } ${ params.rate / 4.0 } ${ params.on }", "2 0.5 true"),
        ("${ params.list }.", '[1,"ä",null].'),
        ('${ {"b": params.n, "a": {"c": []}} }.', '{"a":{"c":[]},"b":3}.'),
        ('${ {"a": {"b": "}"}} }', {"a": {"b": "}"}}),
        ("${ '}' + \"{\" }", "}{"),
        ("${ r'\\}' }", "\\}"),
        ("${ '''a'}''' }", "a'}"),
        ("${ 'it\\'s }' }", "it's }"),
        ("$${ params.n }", "${ params.n }"),
        ("$${x} ${ params.n }", "${x} 3"),
        ("$ {} $a ${ params.n }$", "$ {} $a 3$"),
        ("$$", "$$"),
        ({"a": ["${ params.n }", {"b": "x${ params.n }"}], "c": 1}, {"a": [3, {"b": "x3"}], "c": 1}),
        ("${ steps.fetch.output.rows.map(row, row.id) }", [1, 2]),
        ("${ steps['fetch'].output[\"a b\"] }", "spaced"),
        ("${ steps.fetch.output.rows[1].id }", 2),
        ("${ has(steps.fetch.output.x) }", False),
        ("${ steps.later.visits > 0 ? steps.later.output.x : 'never' }", "never"),
        ("${ params.?missing.orValue('x') }", "x"),
    ],
)
def test_a_value_is_evaluated(source: Any, value: Any) -> None:
    result = evaluated(source)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "Hello ${ params.none }",
            'The expression "params.none" is null, which has no text; '
            'write a fallback, e.g. ${ params.none != null ? params.none : "none" }.',
        ),
        ("${ params.nothing }", 'The expression "params.nothing" failed: there is no key "nothing".'),
        ("${ params['nothing'] + 1 }", """The expression "params['nothing'] + 1" failed: there is no key "nothing"."""),
        ("${ nobody }", 'The expression "nobody" failed: "nobody" has no value here.'),
        ("${ nobody + 1 }", 'The expression "nobody + 1" failed: "nobody" has no value here.'),
        (
            "${ steps.later.output.x }",
            'The expression "steps.later.output.x" failed: "steps.later.output" is null and has no "x".',
        ),
        ("${ params.n.x }", 'The expression "params.n.x" failed: "params.n" is a number and has no "x".'),
        ("${ params.n + 'x' }", """The expression "params.n + 'x'" failed: "+" cannot be used with int and string."""),
        ("${ params.n * 1.5 }", 'The expression "params.n * 1.5" failed: "*" cannot be used with int and double.'),
        ("${ params.n ? 1 : 2 }", 'The expression "params.n ? 1 : 2" failed: a condition must be true or false.'),
        ("${ params.n / 0 }", 'The expression "params.n / 0" failed: divide by zero.'),
        ("${ params.rate / 0.0 }", 'The expression "params.rate / 0.0" failed: the result is inf, which JSON cannot hold.'),
        ("${ int(params.who) }", 'The expression "int(params.who)" failed: cannot convert string to int.'),
        ("${ b'x' }", """The expression "b'x'" failed: the result is bytes, which is not JSON."""),
        ("${ type(1) }", 'The expression "type(1)" failed: the result is a type, which is not JSON.'),
        ("${ {1: 2} }", 'The expression "{1: 2}" failed: the result has the key 1, but keys of JSON are texts.'),
        ("${ optional.none() }", 'The expression "optional.none()" failed: the result is optional; end it with .orValue(…).'),
        (
            "${ 9007199254740992 }",
            'The expression "9007199254740992" failed: '
            "9007199254740992 is beyond ±9007199254740991, where whole numbers lose digits.",
        ),
        ("${ 'a\\u0000' }", """The expression "'a\\u0000'" failed: the result contains the character U+0000."""),
        ("${ params.list[5] }", 'The expression "params.list[5]" failed: index error: index=5 size=3.'),
    ],
)  # fmt: skip
def test_an_evaluation_that_fails_says_why(source: str, message: str) -> None:
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "code", "message", "hint", "offset"),
    [
        ("${ params.n", "E402", 'The expression "${" is not closed.', 'Add the missing "}"; write `$${` for a literal "${".', 0),
        ("ab ${ {1: 2 }", "E402", 'The expression "${" is not closed.', 'Add the missing "}"; write `$${` for a literal "${".', 3),
        ("${ params.n > }", "E401", 'The expression "params.n >" cannot be read: unexpected end at character 11.', "Check for a missing operand, quote or parenthesis.", 13),
        ("x ${}", "E401", 'The expression "" cannot be read: it is empty.', "Check for a missing operand, quote or parenthesis.", 4),
        ("${ 'it }", "E401", """The expression "'it" cannot be read: quote that is not closed at character 1.""", "Check for a missing operand, quote or parenthesis.", 3),
        ('${ "\\q" }', "E401", 'The expression ""\\q"" cannot be read: unknown escape in the text at character 1.', "Write a backslash as `\\\\`.", 3),
        ("${ params.n = 3 }", "E401", 'The expression "params.n = 3" cannot be read: unexpected "=" at character 10.', 'Compare with "==".', 12),
        ("${ a & b }", "E401", 'The expression "a & b" cannot be read: unexpected "&" at character 3.', 'Write "&&" for "and".', 5),
        ("${ a and b }", "E401", 'The expression "a and b" cannot be read: unexpected "and" at character 3.', "Write `&&`.", 5),
        ("${ (1 + 2 }", "E401", 'The expression "(1 + 2" cannot be read: unexpected end at character 7.', "Check for a missing operand, quote or parenthesis.", 9),
        ("${ 1 + 2) }", "E401", 'The expression "1 + 2)" cannot be read: unexpected ")" at character 6.', "Check for a missing operand, quote or parenthesis.", 8),
        ("${ 1 +\n * 2 }", "E401", 'The expression "1 +\n * 2" cannot be read: unexpected "*" at character 6.', "Check for a missing operand, quote or parenthesis.", 8),
        ("${ if }", "E401", 'The expression "if" cannot be read: "if" is a reserved word at character 1.', "Choose another name.", 3),
        ("${ " + "(" * 40 + "1" + ")" * 40 + " }", "E401", f'The expression "{"(" * 40}1{")" * 40}" cannot be read: it is nested too deeply.', "Split it into variables or steps.", 3),
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_read_is_refused_when_it_is_compiled(
    source: str, code: str, message: str, hint: str, offset: int
) -> None:
    with pytest.raises(TemplateProblem) as refused:
        compile_value(source)
    problem = refused.value
    assert (problem.code, problem.message, problem.hint, problem.offset) == (code, message, hint, offset)


@pytest.mark.parametrize(
    ("source", "references"),
    [
        ("plain", set()),
        ("${ 1 + 2 }", set()),
        ("${ params.day }", {("params", "day")}),
        ("${ steps.a }", {("steps", "a")}),
        ("${ steps.a.output.x[0].y }", {("steps", "a", "output", "x")}),
        ("${ steps['a'].output }", {("steps", "a", "output")}),
        ("${ steps[params.which].output }", {("steps",), ("params", "which")}),
        ("${ steps.a.output.map(o, o.x + vars.n) }", {("steps", "a", "output"), ("vars", "n")}),
        ("${ [1].map(vars, vars + 1) }", set()),
        ("${ vars.list.filter(vars, vars.x) }", {("vars", "list")}),
        ("${ has(params.day) }", {("params", "day")}),
        ("${ params.?day.orValue(1) }", {("params",)}),
        ('${ get(steps, "a.output[0].x", vars.n) }', {("steps", "a", "output"), ("vars", "n")}),
        ("${ get(item, vars.path) }", {("item",), ("vars", "path")}),
        ("${ math.greatest(params.a, 1) }", {("params", "a")}),
        ("${ type(item) == int }", {("item",)}),
        ("${ item.split(',').map(x, x.trim()) }", {("item",)}),
        ({"a": ["${ item }", "b ${ index }"]}, {("item",), ("index",)}),
    ],
)
def test_references_are_the_longest_fixed_paths_of_outer_names(source: Any, references: set[tuple[str, ...]]) -> None:
    value = compile_value(source)
    assert value.references == references
    assert value.names == {path[0] for path in references}


@pytest.mark.parametrize(
    ("source", "is_fixed"),
    [("plain", True), ("$${ x }", True), ({"a": [1, "b"]}, True), ("${ 1 }", False), ({"a": ["${ 1 }"]}, False)],
)
def test_a_value_without_expressions_is_fixed(source: Any, is_fixed: bool) -> None:
    value = compile_value(source)
    assert value.is_fixed is is_fixed
    assert value.source == source


class Unreadable(dict[str, Any]):
    """A mapping of steps that may not be read as a whole."""

    def __iter__(self) -> Any:
        raise AssertionError("read as a whole")

    def values(self) -> Any:
        raise AssertionError("read as a whole")

    def items(self) -> Any:
        raise AssertionError("read as a whole")


def test_only_the_parts_that_are_needed_are_read() -> None:
    names = Unreadable(steps=Unreadable(a=Unreadable(output={"x": [1, 2]}, visits=1)))
    assert compile_value("${ steps.a.output.x.map(x, x + steps.a.visits) }").evaluate(names) == [2, 3]


def test_a_result_is_fresh() -> None:
    names = {"params": {"list": [1, {"a": []}]}}
    value = compile_value({"whole": "${ params.list }", "fixed": [1]})
    result = value.evaluate(names)
    result["whole"][1]["a"].append(1)
    result["fixed"].append(2)
    assert names == {"params": {"list": [1, {"a": []}]}}
    assert value.evaluate(names) == {"whole": [1, {"a": []}], "fixed": [1]}


def test_expressions_in_text_can_be_escaped() -> None:
    value = compile_value("https://x/${ params.a }/?q=${ params.n }")
    assert value.evaluate({"params": {"a": "a b", "n": 1}}, escape=lambda text: f"<{text}>") == "https://x/<a b>/?q=<1>"


def test_values_with_the_same_source_are_equal() -> None:
    assert compile_value("${ a }") == compile_value("${ a }")
    assert compile_value("1") != compile_value(1)
    assert isinstance(compile_value(1), Value)


@given(st.text(st.sampled_from("$${}'\"\\ab1+ .\n[]()rR/"), max_size=30))
def test_any_text_compiles_or_is_refused_for_the_first_problem_the_analysis_finds(text: str) -> None:
    problems = [problem for expression in analyse(text) for problem in expression.problems if problem.code != "E411"]
    if not problems:
        compile_value(text)
        return
    with pytest.raises(TemplateProblem) as refused:
        compile_value(text)
    first = (problems[0].code, problems[0].message, problems[0].offset)
    assert (refused.value.code, refused.value.message, refused.value.offset) == first
    assert 0 <= refused.value.offset <= len(text)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_text_passes_through_unchanged(text: str) -> None:
    names = {"item": text}
    assert compile_value("${ item }").evaluate(names) == text
    assert compile_value("${ item + '' }").evaluate(names) == text
    assert compile_value("<${ item }>").evaluate(names) == f"<{text}>"
    assert compile_value(text.replace("${", "$${")).evaluate(names) == text
