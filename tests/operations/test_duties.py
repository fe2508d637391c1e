"""Duties of workers: each in its time, and one that fails stops no other."""

from __future__ import annotations

import logging

import pytest

from workflows.operations.duties import Duties, Duty


def test_a_duty_is_done_again_when_its_time_has_passed():
    done: list[str] = []
    duties = Duties(
        (
            Duty(name="often", every_s=1.0, do=lambda: done.append("often")),
            Duty(name="seldom", every_s=10.0, do=lambda: done.append("seldom")),
        )
    )

    for now in (0.0, 0.5, 1.0, 5.0, 10.0):
        duties.perform(now=now)

    assert done == ["often", "seldom", "often", "often", "often", "seldom"]


def test_a_duty_that_fails_is_logged_and_the_others_are_done(caplog: pytest.LogCaptureFixture):
    done: list[str] = []

    def fail() -> None:
        raise RuntimeError("no luck")

    duties = Duties(
        (Duty(name="broken", every_s=1.0, do=fail), Duty(name="sound", every_s=1.0, do=lambda: done.append("sound")))
    )
    with caplog.at_level(logging.ERROR):
        assert duties.perform(now=0.0) == 1

    assert done == ["sound"]
    assert [record.getMessage() for record in caplog.records] == ["The duty 'broken' failed; it is done again."]
