"""Whatever is wrong with a file, checking it ends with sentences for people."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.definitions.mutations import DATA, mutations, small_files
from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.kinds import KINDS, keys_of
from workflows.definitions.source import read_source
from workflows.definitions.validation import Known, check_document, validate
from workflows.definitions.validation.report import Report
from workflows.errors import PROBLEMS, Problem

#: Words of the code that must never reach a person.
CODE_WORDS = re.compile(
    r"pydantic|Traceback|Input should|\$defs|#/definitions|\b\w+(?:Step|Model|Error)\b|\b(?:dict|NoneType|str)\b|\x00"
)
PARTS = small_files()
KEYS = sorted({key for kind in KINDS for key in keys_of(kind)})


def problems_of(document: dict[str, object]) -> list[Problem]:
    report = Report(position=lambda path: (1, 1))
    check_document(document, Known(workflows={}, functions={}, models=[], agents=[], graphs=[]), report)
    return report.problems


def assert_for_people(problems: list[Problem]) -> None:
    for problem in problems:
        assert problem.code in PROBLEMS
        assert problem.message.endswith((".", "?")) or problem.code == "E409"
        assert CODE_WORDS.search(problem.message + problem.hint) is None, problem


@pytest.mark.parametrize("part", PARTS)
def test_changed_files_give_sentences_for_people(part: str) -> None:
    for _, document in mutations(PARTS[part]):
        assert_for_people(problems_of(document))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "a", "b", "done", "fail", "${ steps.a.output }", "${ params.x + 1 }", "${", "{{ x }}", "5m"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "a", "b", "x-y"]), inner, max_size=3)
    ),
    max_leaves=8,
)
STEPS = st.tuples(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["a", "b", "c", "done", "x-y"]),
            "kind": st.sampled_from([*KINDS, "unknown"]),
        },
    ),
).map(lambda parts: parts[0] | parts[1])


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {"format": st.just(1), "name": st.just("demo"), "steps": st.lists(STEPS, max_size=4)},
        optional=dict.fromkeys(
            ("params", "vars", "secrets", "defaults", "budget", "schedule", "blocks", "finally", "output", "x"), VALUES
        ),
    )
)
def test_files_made_by_chance_give_sentences_for_people(document: dict[str, object]) -> None:
    assert_for_people(problems_of(document))


@pytest.mark.parametrize("path", sorted((DATA / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_files_with_a_line_lost_or_twice_give_sentences_for_people(path: object) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)  # type: ignore[attr-defined]
    choice = random.Random(7)
    for index in choice.sample(range(len(lines)), min(40, len(lines))):
        for changed in (lines[:index] + lines[index + 1 :], [*lines[:index], lines[index], *lines[index:]]):
            assert_for_people(list(validate("".join(changed)).problems))


def test_checking_changes_nothing_in_the_document() -> None:
    text = (DATA / "examples" / "reference.yaml").read_bytes()

    assert validate(text).document == read_source(text).document


def test_every_changed_file_without_errors_freezes_and_compiles() -> None:
    document = read_source((DATA / "examples" / "core.yaml").read_bytes()).document
    valid = [
        changed
        for _, changed in list(mutations(document))[::3]
        if not any(problem.severity == "error" for problem in problems_of(changed))
    ]

    assert len(valid) > 40
    assert {compile_plan(freeze(changed).document).name for changed in valid} <= {"publish_report", "text"}
