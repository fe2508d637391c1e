"""Moments on a command line."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from workflows.management.moments import later_moment


def test_a_moment_without_a_zone_is_in_that_of_the_site() -> None:
    written = later_moment("2026-01-31T09:30")
    assert (written.hour, written.tzinfo) == (9, timezone.get_current_timezone())
    assert later_moment("2026-01-31T09:30+01:00") == datetime(2026, 1, 31, 8, 30, tzinfo=UTC)


def test_a_duration_is_from_now_on() -> None:
    assert timedelta(minutes=119) < later_moment("2h") - timezone.now() <= timedelta(hours=2)


@pytest.mark.parametrize("text", ["soon", "", "2026-02-31T09:30", "-2h"])
def test_what_is_no_moment_is_told_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        later_moment(text)
    examples = "2026-01-31T09:30, 2026-01-31T09:30+01:00, 2h"
    assert str(caught.value) == f"{text!r} is no moment; examples: {examples}"
