from __future__ import annotations

import time

from tests.definitions.validating import HEAD, errors_of
from workflows.definitions.validation import Known, validate

STEP = "steps:\n  - { id: a, kind: shell, run: x }\n"


def test_a_file_that_cannot_be_read_gives_its_first_problem_only() -> None:
    found = validate("format: 1\nname: &x demo\nname: demo\n")

    assert [problem.code for problem in found.problems] == ["E006"]
    assert (found.document, found.source, found.is_valid) == (None, None, False)


def test_a_valid_file_comes_with_its_document() -> None:
    found = validate((HEAD + STEP).encode())

    assert found.is_valid
    assert found.problems == ()
    assert found.document == {
        "format": 1,
        "name": "demo",
        "steps": [{"id": "a", "kind": "shell", "run": "x"}],
    }


def test_warnings_do_not_block() -> None:
    found = validate(f"{HEAD}params: {{ day: {{ type: date }} }}\n{STEP}")

    assert [problem.code for problem in found.warnings] == ["W105"]
    assert found.is_valid


def test_problems_are_sorted_by_line_with_errors_before_warnings() -> None:
    text = (
        "steps:\n  - { id: a, kind: approval, aks: x }\n  - { id: b, kind: shell, run: x, next: nowhere }\nparms: {}\n"
    )
    found = validate(HEAD + text)

    assert [(problem.line, problem.code) for problem in found.problems] == [
        (4, "E207"),
        (4, "W104"),
        (5, "E302"),
        (6, "E105"),
    ]


def test_at_most_fifty_problems_are_reported_errors_first() -> None:
    steps = "".join(f"  - {{ id: s{index}, kind: shell, run: x, key{index}: 1 }}\n" for index in range(60))
    found = validate(f"{HEAD}params: {{ day: {{ type: date }} }}\nsteps:\n{steps}")

    assert len(found.problems) == 50
    assert found.warnings == ()
    assert [problem.line for problem in found.problems] == list(range(5, 55))


def test_columns_are_those_of_the_key() -> None:
    (problem,) = validate(f"{HEAD}steps:\n  - id: a\n    kind: shell\n    run: x\n    timeot: 5m\n").problems

    assert (problem.line, problem.column) == (7, 5)


def test_keys_with_odd_characters_are_quoted_in_paths() -> None:
    text = "steps:\n  - { id: a, kind: shell, run: x, env: { 'A B': '${ params.x }' } }\n"

    assert errors_of(text) == ['E404 steps[0].env["A B"]: Parameter "x" is not declared. Declare it under `params:`.']


def test_a_file_holds_at_most_five_hundred_steps() -> None:
    def file(main: int, inner: int) -> str:
        steps = "".join(f"  - {{ id: s{index}, kind: shell, run: x }}\n" for index in range(main))
        body = "".join(f"      - {{ id: i{index}, kind: shell, run: x }}\n" for index in range(inner))
        return f"steps:\n{steps}" + (f"blocks:\n  one:\n    steps:\n{body}" if inner else "")

    advice = "Move a part into a workflow of its own and call it with `kind: workflow`."

    assert errors_of(file(500, 0)) == []
    assert errors_of(file(501, 0)) == [f"E213 steps: A file may hold 500 steps, but this list has 501. {advice}"]
    assert errors_of(file(300, 201)) == [f"E213 steps: A file may hold 500 steps, but this one has 501. {advice}"]


def test_a_newer_format_is_refused() -> None:
    found = validate(f"format: 7\nname: demo\n{STEP}")

    assert [error.message for error in found.errors] == ["This server reads format 1, but the file says 7."]


def test_five_hundred_steps_are_checked_within_a_second() -> None:
    lines = [
        f"  - {{ id: s{index}, kind: shell, run: x, retry: {{ attempts: 3, errors: [timeout] }}, "
        f'env: {{ A: "${{ params.s }}-{index}", B: "${{ steps.s{max(index - 1, 0)}.visits }}" }} }}\n'
        for index in range(1, 500)
    ]
    text = f"{HEAD}params: {{ s: {{ type: string }} }}\nsteps:\n  - {{ id: s0, kind: shell, run: x }}\n{''.join(lines)}"
    started = time.process_time()

    found = validate(text, Known(workflows={}))

    assert found.problems == ()
    assert time.process_time() - started < 1
