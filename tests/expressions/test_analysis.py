"""What the validator is told about the expressions of a text."""

from __future__ import annotations

import pytest

from workflows.expressions import analyse, double_braces


def test_every_expression_of_a_text_is_described_with_places_in_the_text() -> None:
    text = "Hi ${ params.who }, ${ [1].map(o, o + vars.n)[0] } ${ lower('A') }"
    first, second, third = analyse(text)
    assert (first.source, first.offset, first.is_whole_text) == ("params.who", 6, False)
    assert [(each.path, each.offset) for each in first.references] == [(("params", "who"), 6)]
    assert [(each.path, text[each.offset :][:6]) for each in second.references] == [(("vars", "n"), "vars.n")]
    assert [(each.name, each.is_method, text[each.offset :][:3]) for each in second.calls] == [("map", True, "map")]
    assert [(each.name, each.arguments) for each in third.calls] == [("lower", 1)]
    assert (first.problems, second.problems) == ((), ())
    assert [(each.code, text[each.offset :][:5]) for each in third.problems] == [("E411", "lower")]


def test_an_expression_alone_is_the_whole_text() -> None:
    assert [each.is_whole_text for each in analyse("${ 1 }")] == [True]
    assert analyse("no expression $${ here }") == ()


@pytest.mark.parametrize(
    ("text", "code", "message", "offset"),
    [
        (
            "a ${ params.n > }",
            "E401",
            'The expression "params.n >" cannot be read: unexpected end at character 11.',
            15,
        ),
        ("a ${ params.n", "E402", 'The expression "${" is not closed.', 2),
    ],
)
def test_what_cannot_be_read_is_a_problem_with_its_place(text: str, code: str, message: str, offset: int) -> None:
    (expression,) = analyse(text)
    assert [(each.code, each.message, each.offset) for each in expression.problems] == [(code, message, offset)]


@pytest.mark.parametrize(
    ("source", "name", "hint"),
    [
        ("now()", "now", "Expressions give the same value on every evaluation. Use run.started_at or a step that prints the time."),
        ("params.x.today()", "today", "Expressions give the same value on every evaluation. Use run.started_at or a step that prints the time."),
        ("uuid()", "uuid", "Expressions give the same value on every evaluation. Use run.id or a step that prints a random value."),
        ("env('HOME')", "env", "Expressions give the same value on every evaluation. Use a step that prints what is needed."),
        ("len(params.x)", "len", 'Did you mean "size"?'),
        ("lenght(params.x)", "lenght", 'Did you mean "size"?'),
        ("params.x.startWith('a')", "startWith", 'Did you mean "startsWith"?'),
        ("max(1, 2)", "max", 'Did you mean "math.greatest"?'),
        ("to_jsn(1)", "to_jsn", 'Did you mean "to_json"?'),
        ("frobnicate(1)", "frobnicate", "Functions: those of CEL, and get, sum, unique, sort, keys, to_json, from_json."),
    ],
)  # fmt: skip
def test_an_unknown_function_is_named_with_advice(source: str, name: str, hint: str) -> None:
    (expression,) = analyse(f"${{ {source} }}")
    assert [(each.code, each.message) for each in expression.problems] == [("E411", f'There is no function "{name}".')]
    assert expression.problems[0].hint == hint


def test_a_function_written_as_a_method_is_explained() -> None:
    (expression,) = analyse("${ params.list.sort() }")
    assert [(each.message, each.hint) for each in expression.problems] == [
        ('"sort" cannot be written after a dot.', "Write sort(value) instead of value.sort().")
    ]


@pytest.mark.parametrize(
    ("text", "braces"),
    [
        ("Hello {{ params.who }}", ["{{ params.who }}"]),
        ("{{who}} and {{- x | upper }}", ["{{who}}", "{{- x | upper }}"]),
        ("docker ps --format {{.Names}}", []),
        ('${ {"a": {"b": {{}: 1}}} }', []),
        ('{"a": {"b": 1}}', []),
        ("{{ not closed", []),
        ("${ {{ x }}", []),
    ],
)
def test_double_braces_of_other_templates_are_found(text: str, braces: list[str]) -> None:
    assert [(each.code, each.message, each.hint) for each in double_braces(text)] == [
        ("E416", f'"{each}" is not replaced: this format has no {{{{ }}}} templates.', "Write `${ … }`.")
        for each in braces
    ]
