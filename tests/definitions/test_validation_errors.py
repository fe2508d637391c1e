"""Files under ``tests/data/validation``: a sentence, a workflow file, and every error that must be reported for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.definitions.validating import lines_of

FOLDER = Path(__file__).parent.parent / "data" / "validation"


def _cases() -> dict[str, tuple[str, str]]:
    found = {}
    for path in sorted(FOLDER.glob("*.txt")):
        for case in path.read_text(encoding="utf-8").split("=== ")[1:]:
            sentence, _, rest = case.partition("\n")
            text, _, expected = rest.partition("\n---\n")
            found[f"{path.stem}: {sentence}"] = (f"{text}\n", expected.strip("\n"))
    return found


CASES = _cases()


@pytest.mark.parametrize("case", CASES)
def test_every_error_of_the_file_is_reported_with_its_place_and_its_remedy(case: str) -> None:
    text, expected = CASES[case]

    assert lines_of(text) == expected


def test_there_are_cases_for_every_part_of_a_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {
        "expressions",
        "fields",
        "file",
        "routes",
        "steps",
        "values",
    }
