"""The words of the templates: times, statuses, text that means harm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from tests.pages.world import HARM
from workflows.pages import tags
from workflows.pages.icons import picture
from workflows.pages.wording import age_words, count_words, duration_words, exact_words, rough_words
from workflows.statuses import AttemptStatus, RunStatus, VisitStatus


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=2), "just now"),
        (timedelta(seconds=59.9), "59 s ago"),
        (timedelta(minutes=60), "1 h ago"),
        (timedelta(hours=47), "47 h ago"),
        (timedelta(hours=48), "2 d ago"),
        (timedelta(days=90), "2 months ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(minutes=-5), "in 5 min"),
        (timedelta(0), "just now"),
    ],
)
def test_ages(passed: timedelta, words: str) -> None:
    assert age_words(passed) == words


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 ms"),
        (timedelta(milliseconds=999.4), "999 ms"),
        (timedelta(seconds=9.94), "9.9 s"),
        (timedelta(seconds=9.96), "10 s"),
        (timedelta(seconds=59.6), "1 min"),
        (timedelta(minutes=61), "1 h 1 min"),
        (timedelta(days=1, minutes=5), "1 d"),
        (timedelta(seconds=-3), "0 ms"),
    ],
)
def test_durations(length: timedelta, words: str) -> None:
    assert duration_words(length) == words


def test_other_words() -> None:
    assert rough_words(timedelta(seconds=75)) == "1 min"
    assert count_words(1234567) == "1\u202f234\u202f567"
    assert exact_words(datetime(2026, 1, 31, 9, 30, tzinfo=UTC)) == "2026-01-31 09:30:00 UTC"


def test_a_moment_is_told_to_people_and_to_machines() -> None:
    at = timezone.now() - timedelta(minutes=3, seconds=1)
    told = tags.age(at)
    assert ">3 min ago</time>" in told
    assert f'title="{exact_words(at)}"' in told
    assert tags.age(at.isoformat()) == told
    assert tags.age(None) == tags.exact("") == "–"


@pytest.mark.parametrize("status", [*RunStatus.values, *AttemptStatus.values, *VisitStatus.values])
def test_every_status_has_a_word_and_a_picture_of_its_own(status: str) -> None:
    told = tags.status(status)
    assert f"<span>{status}</span>" in told
    if status != "settled":  # never shown: its outcome is
        assert f"icon-{status}" in told


def test_a_status_of_a_newer_version_is_shown_as_it_is() -> None:
    """WEB.4"""
    assert "<span>pondering</span>" in tags.status("pondering")
    assert "icon-unknown" in tags.status("pondering")
    assert 'class="status status-unknown"' in tags.status('x" onclick="alert(1)')
    assert picture("pondering") == picture("unknown")


@pytest.mark.parametrize(
    "told",
    [
        tags.bdi(HARM),
        tags.person(HARM),
        tags.cut(HARM, 20),
        tags.cut(HARM, 2000),
        tags.long_text(HARM),
        tags.json_text({HARM: [HARM]}),
        tags.shown_value(HARM),
        tags.shown_value([HARM]),
        tags.coded(HARM),
        tags.coded(f"`{HARM}`"),
        tags.status(HARM),
    ],
)
def test_text_of_others_is_escaped(told: str) -> None:
    """WEB.1"""
    assert "<script" not in told
    assert "<b " not in told


def test_writing_direction_stays_inside() -> None:
    """WEB.1"""
    for told in (tags.bdi("\u202ex"), tags.cut("\u202ex"), tags.long_text("\u202ex"), tags.shown_value(["\u202ex"])):
        assert "<bdi" in told
        assert "</bdi>" in told


def test_what_is_long_is_cut_with_a_way_to_the_rest() -> None:
    """WEB.3"""
    told = tags.long_text("x" * 100_000, "/all/", 1_000)
    assert len(told) < 1_500
    assert "1\u202f000 of 100\u202f000 characters are shown." in told
    assert '<a href="/all/">' in told
    assert len(tags.cut("y" * 100_000, 50)) < 500


def test_backticks_mark_code() -> None:
    assert tags.coded("Run `a <b>` now") == "Run <code>a &lt;b&gt;</code> now"
    assert tags.coded("a ` alone") == "a ` alone"


def test_hints_about_commands_are_left_out_on_pages() -> None:
    assert tags.page_hint("Add it with `--field count=…`.") == ""
    assert tags.page_hint("`runs show 4` lists what is.") == ""
    assert tags.page_hint("Look at it again. `runs answer 4` does it.") == "Look at it again."
    assert tags.page_hint("Run `python manage.py migrate`.") == "Run `python manage.py migrate`."
    assert tags.page_hint(None) == ""
    assert tags.page_message("Skipping a step needs a reason (`--reason`).") == "Skipping a step needs a reason."
