"""Expressions that were found to cost too much or to nest too deeply; each is an error of the step, never a crash."""

from __future__ import annotations

import pytest

from workflows.expressions import BadExpression, TemplateProblem, analyse, compile_value


@pytest.mark.parametrize("sign", ["!", "-"])
def test_signs_in_a_row_are_bounded(sign: str) -> None:
    text = f"${{ {sign * 600}{'true' if sign == '!' else '1'} }}"
    with pytest.raises(TemplateProblem) as caught:
        compile_value(text)
    assert caught.value.code == "E401"
    (info,) = analyse(text)
    assert [problem.code for problem in info.problems] == ["E401"]


def test_a_file_full_of_signs_is_one_problem() -> None:
    (info,) = analyse(f"${{ {'-' * 60_000}1 }}")
    assert [problem.code for problem in info.problems] == ["E401"]


def test_a_hundred_signs_are_evaluated() -> None:
    assert compile_value(f"${{ {'!' * 100}params.a }}").evaluate({"params": {"a": True}}) is True


def test_a_long_pattern_on_a_long_text_is_refused_before_it_freezes_the_worker() -> None:
    value = compile_value("${ params.big.matches(params.big) }")
    with pytest.raises(BadExpression) as caught:
        value.evaluate({"params": {"big": "a" * 100_000}})
    assert "could take too much time or memory" in str(caught.value)


def test_a_short_pattern_on_a_long_text_is_matched() -> None:
    value = compile_value("${ params.big.matches('^[a-z]+$') }")
    assert value.evaluate({"params": {"big": "a" * 500_000}}) is True
