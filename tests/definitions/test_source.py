"""Reading workflow files: strict YAML, positions, E001 to E010."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.definitions.source import MAX_BYTES, SourceError, read_source
from workflows.errors import PROBLEMS, Problem

DATA = Path(__file__).parent.parent / "data"
CASES = json.loads((DATA / "errors" / "cases.json").read_text())
FILES = [*DATA.glob("cases/*/workflow.yaml"), *DATA.glob("examples/*.yaml"), DATA / "parameters" / "probe.yaml"]
SYNTAX_HINT = 'Check the indentation and the quotes near this line; a value that contains ": " or " #" needs quotes.'


def problem_of(text: str | bytes) -> Problem:
    with pytest.raises(SourceError) as caught:
        read_source(text)
    return caught.value.problem


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["code"].startswith("E0")], ids=lambda case: case["code"]
)
def test_every_sample_of_a_broken_file_gives_its_problem(case):
    found = problem_of(case["definition"]).as_json()
    del found["severity"]
    assert found == case["expect"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case["code"].startswith("E0")], ids=lambda case: case["code"]
)
def test_the_position_of_every_other_sample_is_found_by_its_path(case):
    expected = case["expect"]
    path = "" if expected["path"] == "(file)" else expected["path"]
    assert read_source(case["definition"]).position(path)[0] == expected["line"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_workflow_is_read_and_keeps_the_order_of_its_keys(path):
    source = read_source(path.read_bytes())
    assert next(iter(source.document)) == "format"
    assert source.document["steps"][0]["id"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0", 0),
        ("+12", 12),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("1.0", 1.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("0.1", 0.1),
        ("1.10", 1.1),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ('"1"', "1"),
        ("'true'", "true"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("9007199254740991", 9007199254740991),
        ("-9007199254740991", -9007199254740991),
    ],
)
def test_plain_scalars_have_the_core_types_of_yaml_1_2(written, value):
    found = read_source(f"a: {written}").document["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "written", ["9007199254740992", "-9007199254740993", "0x20000000000001", "1e400", "1e-400", ".inf", "-.INF", ".nan",
                "0.12345678901234567890123", "9" * 5000]
)  # fmt: skip
def test_a_number_that_loses_something_is_refused(written):
    found = problem_of(f"format: 1\nparams:\n  n: {{ default: {written} }}\n")
    assert (found.code, found.path, found.line) == ("E009", "params.n.default", 3)
    assert found.message == f"The number {written} cannot be stored exactly."
    assert found.hint == f'Write it as text: "{written}".'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("---\n", "empty"),
        ("- a\n", "a list"),
        ("hello", "text"),
        ("7", "a number"),
        ("true", "true or false"),
    ],
)
def test_a_file_that_is_not_a_mapping_is_told_what_it_is(text, kind):
    found = problem_of(text)
    assert found.code == "E003"
    assert found.message == (
        f"A workflow file must be a mapping of keys (format, name, steps, …), but this file is {kind}."
    )
    assert (found.path, found.line, found.hint) == ("(file)", 1, "Start with `format: 1`.")


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("a: b: c\n", 1, "mapping values are not allowed here", SYNTAX_HINT),
        ("a: 1\nb\nc: 1\n", 3, 'a key without ":"', SYNTAX_HINT),
        ('a: "open\nb: 1\n', 3, "a quote is not closed", SYNTAX_HINT),
        ("a: [1, 2\nb: 1\n", 2, 'expected "," or "]"', SYNTAX_HINT),
        ("a:\n\t- b\n", 2, "a tab was used for indentation", "Indent with spaces; YAML does not allow tabs there."),
        ("a: @b\n", 1, 'a value cannot begin with "@"', SYNTAX_HINT),
        ("a: `b`\n", 1, 'a value cannot begin with "`"', SYNTAX_HINT),
        ('a: "\\q"\n', 1, "an unknown escape after a backslash", SYNTAX_HINT),
    ],
)
def test_what_is_not_yaml_is_said_in_plain_words(text, line, what, hint):
    found = problem_of(text)
    assert (found.code, found.path, found.line) == ("E001", "(file)", line)
    assert found.message == f"This file is not valid YAML: {what}."
    assert found.hint == hint


def test_a_mapping_as_a_key_is_refused_with_the_right_way_to_write_an_expression():
    found = problem_of("ask: {{ params.who }}\n")
    assert found.message == "This file is not valid YAML: a mapping cannot be the key of a mapping."
    assert found.hint == "Quote a value that begins with { or [; expressions are written `${ … }`."
    assert (found.code, found.path, found.line) == ("E001", "ask", 1)


@pytest.mark.parametrize(
    ("text", "line"), [("a: &x 1\n", 1), ("a: 1\nb: *x\n", 2), ("a:\n  - &x\n    b: 1\n", 2), ("&k a: 1\n", 1)]
)
def test_anchors_and_aliases_are_refused(text, line):
    found = problem_of(text)
    assert (found.code, found.path, found.line) == ("E006", "(file)", line)
    assert found.message == "YAML anchors and aliases (& and *) are not supported."


def test_a_merge_key_is_refused_and_a_quoted_one_is_a_key():
    assert problem_of("a:\n  <<: { b: 1 }\n").message == "YAML merge keys (<<) are not supported."
    assert read_source('a: { "<<": 1 }').document == {"a": {"<<": 1}}


@pytest.mark.parametrize(
    ("tag", "shown"), [("!env", "!env"), ("!!str", "!!str"), ("!!python/name:x", "!!python/name:x")]
)
def test_tags_are_refused_at_the_path_of_their_value(tag, shown):
    found = problem_of(f"steps:\n  - run: {tag} X\n")
    assert (found.code, found.path, found.line) == ("E007", "steps[0].run", 2)
    assert found.message == f'The YAML tag "{shown}" is not supported.'


@pytest.mark.parametrize(
    ("key", "word", "hint"),
    [
        ("true", "boolean", "Conditions route with `then` and `else`. Quote the key if you mean the word."),
        ("False", "boolean", "Conditions route with `then` and `else`. Quote the key if you mean the word."),
        ("10", "number", "Quote the key if you mean the word."),
        ("null", "null", "Quote the key if you mean the word."),
    ],
)
def test_a_key_that_is_not_text_is_refused(key, word, hint):
    found = problem_of(f"a:\n  {key}: 1\n")
    assert found.message == f"The key {key} is a YAML {word}, not a name."
    assert (found.code, found.path, found.line, found.hint) == ("E008", "a", 2, hint)


def test_a_key_written_twice_names_both_lines():
    found = problem_of("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert found.message == 'Key "c" is written twice here (first on line 3).'
    assert (found.code, found.path, found.line, found.column) == ("E005", "b.c", 5, 3)


@pytest.mark.parametrize(
    ("text", "documents", "line"), [("a: 1\n---\nb: 1\n", 2, 3), ("a: 1\n---\nb: 1\n---\nc: 1\n", 3, 3)]
)
def test_documents_are_counted(text, documents, line):
    found = problem_of(text)
    assert (found.code, found.line) == ("E004", line)
    assert found.message == f"This file contains {documents} YAML documents."


@pytest.mark.parametrize(
    ("text", "path", "line", "character"),
    [
        ("a: 1\nb: x\x07y\n", "b", 2, "U+0007"),
        ("a: 1\nb:\n  - c\n  - x\x00y\n", "b[1]", 4, "U+0000"),
        ("a: |\n  one\n  t\x1bwo\n", "a", 3, "U+001B"),
        ('a: "x\\x7f"\n', "a", 1, "U+007F"),
        ('a: "x\\0"\n', "a", 1, "U+0000"),
        ("a: 1 # bell \x07\n", "(file)", 1, "U+0007"),
        ("a\x01b: 1\n", '["a\\u2400b"]', 1, "U+0001"),
    ],
)
def test_a_control_character_is_refused_at_the_path_of_its_text(text, path, line, character):
    found = problem_of(text)
    assert (found.code, found.line) == ("E010", line)
    assert found.message == f"This text contains the control character {character}."
    assert found.path == path


def test_tabs_and_line_breaks_in_text_are_kept():
    assert read_source('a: "x\\ty\\r\\nz"').document == {"a": "x\ty\r\nz"}


def test_the_first_problem_of_the_file_is_the_one_that_is_told():
    assert problem_of("a: 1\na: 2\nb: !x 1\nc: [\n").code == "E005"
    assert problem_of("a: !x 1\na: 2\n").code == "E007"


def test_a_byte_order_mark_is_ignored():
    assert read_source(b"\xef\xbb\xbfa: 1\n").document == {"a": 1}
    assert read_source("\ufeffa: 1\n").position("a") == (1, 1)


def test_bytes_that_are_not_utf_8_are_refused_with_their_line():
    found = problem_of(b"a: 1\nb: caf\xe9\n")
    assert found.message == "This file is not valid YAML: it is not UTF-8 text (byte 0xE9)."
    assert (found.code, found.line, found.column, found.hint) == ("E001", 2, 7, "Save the file as UTF-8.")


def test_a_file_of_512_kib_is_read_and_a_longer_one_refused():
    fitting = "a: " + "x" * (MAX_BYTES - 3)
    assert len(read_source(fitting).document["a"]) == MAX_BYTES - 3
    found = problem_of(fitting + "é")
    assert found.message == "This file is not a workflow file: it has 513 KiB; the limit is 512 KiB."


def test_64_levels_are_read_and_more_refused():
    assert read_source("a: " + "[" * 63 + "]" * 63).document
    found = problem_of("a: " + "[" * 64 + "]" * 64)
    assert found.code == "E001"
    assert found.message == "This file is nested too deeply: more than 64 levels."
    assert problem_of("[" * 200_000).code == "E001"


def test_positions_are_those_of_keys_items_and_values():
    source = read_source(
        "format: 1\nsteps:\n  - id: a\n    next: { ok: b,\n            failed: done }\n  -\n    id: b\n"
    )
    assert source.position("") == (1, 1)
    assert source.position("steps") == (2, 1)
    assert source.position("steps[0]") == (3, 5)
    assert source.position("steps[0].next.failed") == (5, 13)
    assert source.value_position("steps[0].next.failed") == (5, 21)
    assert source.position("steps[1]") == (7, 5)


def test_a_path_that_is_not_there_has_the_position_of_what_would_contain_it():
    source = read_source("steps:\n  - id: a\n    next: { ok: b }\n")
    assert source.position("steps[0].next.failed") == (3, 5)
    assert source.position("steps[0].argv[2]") == (2, 5)
    assert source.position("vars.x") == (1, 1)


def read_or_problem(text: str | bytes) -> dict | Problem:
    try:
        return read_source(text).document
    except SourceError as error:
        return error.problem


@given(
    st.text(alphabet=st.sampled_from("abc:-[]{}#&*!|>'\"%@`,? \n\t\r~.0123\\\x07\x85\ufeff\u2028é\ud800"), max_size=60)
)
def test_any_text_is_read_or_refused_with_a_problem(text):
    found = read_or_problem(text)
    if isinstance(found, Problem):
        assert found.code in PROBLEMS
        assert found.line >= 1
    else:
        assert json.dumps(found).encode()


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_with_a_problem(data):
    found = read_or_problem(data)
    assert isinstance(found, dict) or found.code in PROBLEMS


def test_a_long_file_is_read_in_linear_time():
    steps = "\n".join(f"  - {{ id: s{n}, kind: shell, run: 'echo {n}' }}" for n in range(8_000))
    source = read_source(f"format: 1\nname: demo\nsteps:\n{steps}\n")
    assert source.position("steps[7999].run") == (8003, 31)
