"""Why a run does not move, as a table: from how it stands to a reason, since when, and what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workflows.queries.why import needs_somebody, why
from workflows.queries.why_facts import Because, LeaseFacts, LineFacts, Standing, Target, WaitFacts, WorkFacts
from workflows.statuses import WaitsFor

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(minutes=5)
LATER = NOW + timedelta(hours=2)


def standing(status: str = "waiting", **more: Any) -> Standing:
    return Standing(run=7, status=status, now=NOW, created_at=BEFORE, **more)


def only(**more: Any) -> Because:
    (reason,) = why(standing(**more))
    return reason


def wait(cause: str, **more: Any) -> Because:
    return only(waits=(WaitFacts(cause=cause, step="each[3]/fetch", visit=12, since=BEFORE, **more),))


def test_a_run_that_moves_or_is_over_has_no_reason() -> None:
    """WEB.5: nothing is told where nothing is missing."""
    driven = LeaseFacts(owner="w1", epoch=1, heartbeat_at=NOW, expires_at=LATER)
    assert why(standing("running", lease=driven, works=True)) == []
    for status in ("succeeded", "failed", "cancelled", "abandoned"):
        assert why(standing(status)) == []


def test_a_run_that_nobody_has_taken_says_since_when_and_how_to_start_a_worker() -> None:
    """WEB.5: no worker listening."""
    reason = only(status="queued", changed_at=BEFORE)
    assert (reason.code, reason.since, reason.passes) == ("no_worker", BEFORE, False)
    assert reason.sentence == "No worker has taken it yet; no worker is at work on any run."
    assert "`python manage.py run_worker`" in reason.advice
    assert "`python manage.py run_workflow 7`" in reason.advice


@pytest.mark.parametrize(
    ("seen_at", "words", "passes"),
    [
        (NOW - timedelta(seconds=3), "workers are busy with other runs", True),
        (NOW - timedelta(hours=3), "the workers of other runs are silent, too", False),
    ],
)
def test_what_the_workers_of_other_runs_do_is_told(seen_at: datetime, words: str, passes: bool) -> None:
    """WEB.5: a queue that is worked on differs from one that nobody works on."""
    reason = only(status="queued", changed_at=BEFORE, worker_seen_at=seen_at)
    assert words in reason.sentence
    assert reason.passes is passes


def test_a_parked_run_whose_moment_has_come_lacks_a_worker_since_then() -> None:
    """WEB.5: a timer that is over does not hold a run up; the missing worker does."""
    lease = LeaseFacts(epoch=2)
    assert only(wake_at=BEFORE, lease=lease).since == BEFORE
    assert "It could go on" in only(wake_at=BEFORE, lease=lease).sentence
    assert why(standing(wake_at=LATER, lease=lease)) == []


def test_a_silent_worker_is_named_with_its_last_heartbeat_and_the_end_of_its_lease() -> None:
    """WEB.5: lease held by a silent worker."""
    lease = LeaseFacts(owner="host:41:ab", epoch=3, heartbeat_at=BEFORE, expires_at=LATER)
    reason = only(status="running", lease=lease)
    assert (reason.code, reason.since, reason.until) == ("silent_worker", BEFORE, LATER)
    assert "host:41:ab" in reason.sentence
    assert why(standing("running", lease=replace(lease, heartbeat_at=NOW))) == []


def test_a_worker_whose_lease_has_ended_is_taken_over_from() -> None:
    """WEB.5: a dead worker's run waits for the next one."""
    lease = LeaseFacts(owner="host:41:ab", epoch=3, heartbeat_at=BEFORE, expires_at=NOW)
    reason = only(status="running", lease=lease)
    assert (reason.code, reason.since) == ("worker_lost", BEFORE)
    assert reason.advice.startswith("The next worker takes over.")


def test_a_held_run_says_who_since_when_and_why() -> None:
    """CTL.4: the page says that deadlines of people go on."""
    held = {"by": "bob", "since": BEFORE.isoformat(), "reason": "wait for the network"}
    reason = only(status="paused", held=held)
    assert reason.sentence == "bob holds the run: wait for the network"
    assert (reason.code, reason.since, reason.verb) == ("held", BEFORE, "resume")
    assert "deadlines of questions go on" in reason.advice


def test_a_run_in_line_names_the_holders_it_may_name() -> None:
    """PUB.4: holders are named to those who may see them, and only counted for others."""
    line = LineFacts(name="deploy", since=BEFORE, holders=(4,), hidden_holders=2, ahead=1, max=3)
    reason = only(status="queued", line=line)
    assert reason.sentence == (
        'It waits in line for a slot of "deploy" behind 1 other run, held by run 4, 2 runs that you may not see.'
    )
    assert reason.target == Target(kind="run", run=4)
    assert only(status="queued", line=replace(line, holders=())).target is None


def test_a_run_of_another_engine_version_waits_for_a_worker_that_knows_it() -> None:
    """PLAN.6: such runs wait untouched and say so."""
    reason = only(status="queued", engine_version=9)
    assert (reason.code, reason.passes) == ("unknown_engine", False)
    assert "engine version 9; this server knows 1" in reason.sentence


def test_deaths_of_drivers_are_counted_and_a_poisoned_run_says_what_to_do() -> None:
    """ADM.8: crashes in a row end a run; before that they are told."""
    lease = LeaseFacts(owner="w", epoch=3, heartbeat_at=NOW, expires_at=LATER)
    reason = only(status="running", lease=lease, crashes=2, poison_limit=5)
    assert reason.sentence == "2 drivers died at this place in a row."
    poisoned = only(status="failed", error_code="run.poisoned", changed_at=BEFORE)
    assert (poisoned.code, poisoned.verb, poisoned.since) == ("run.poisoned", "resume", BEFORE)


@pytest.mark.parametrize(
    ("cause", "more", "code", "sentence", "kind"),
    [
        (WaitsFor.TIMER, {"until": LATER}, "timer", "each[3]/fetch waits for a moment to come.", "visit"),
        (
            WaitsFor.RETRY,
            {"until": LATER, "missing": "network"},
            "retry",
            "each[3]/fetch failed (network) and waits for its next attempt.",
            "visit",
        ),
        (WaitsFor.SIGNAL, {"signal": "go"}, "signal", 'each[3]/fetch waits for the signal "go".', "visit"),
        (WaitsFor.PEOPLE, {"people": "ann"}, "people", "each[3]/fetch waits for an answer of ann.", "question"),
        (
            WaitsFor.CHILD,
            {"child": 9, "child_status": "paused", "child_reason": "ask waits for an answer"},
            "child",
            "each[3]/fetch waits for run 9, which is paused: ask waits for an answer.",
            "run",
        ),
        (
            WaitsFor.SLOT,
            {"line": LineFacts(name="api", holders=(3,), ahead=2, max=2)},
            "limit",
            'each[3]/fetch waits for a place in "api" behind 2 others, held by run 3.',
            "run",
        ),
        (
            WaitsFor.RECONCILE,
            {"attempt": 2},
            "reconcile",
            "The worker of attempt 2 of each[3]/fetch died, and nobody knows whether its effect happened.",
            "reconcile",
        ),
        (
            WaitsFor.CODE,
            {"missing": "function chat.post"},
            "missing_code",
            "each[3]/fetch needs function chat.post, which the worker that drove the run lacks.",
            "visit",
        ),
        (WaitsFor.EXTERNAL, {}, "external", "each[3]/fetch waits for another program that does its work.", "visit"),
        (
            WaitsFor.EXTERNAL,
            {"work": WorkFacts(queue="labelling")},
            "external",
            'each[3]/fetch waits in the queue "labelling" for a program that takes it.',
            "visit",
        ),
        (
            WaitsFor.EXTERNAL,
            {"work": WorkFacts(queue="labelling", times=2)},
            "external",
            'each[3]/fetch waits in the queue "labelling" for a program that takes it, not for the first time.',
            "visit",
        ),
        (
            WaitsFor.EXTERNAL,
            {"work": WorkFacts(queue="labelling", worker="robot 1", renewals=2)},
            "external",
            'robot 1 has the work of each[3]/fetch, from the queue "labelling", renewed 2 times.',
            "visit",
        ),
        ("moonrise", {}, "moonrise", 'each[3]/fetch waits for "moonrise".', "visit"),
    ],
)
def test_each_cause_is_told_with_its_place_and_what_it_is_about(
    cause: str, more: dict[str, Any], code: str, sentence: str, kind: str
) -> None:
    """WEB.4, WEB.5: every cause of waiting, also one that this version does not know."""
    reason = wait(cause, **more)
    assert (reason.code, reason.sentence) == (code, sentence)
    assert reason.target is not None
    assert reason.target.kind == kind
    assert reason.since == BEFORE or code == "limit"


def test_every_cause_of_waiting_has_words_of_its_own() -> None:
    """WEB.5: none falls back on its raw name."""
    for cause in set(WaitsFor) - {WaitsFor.JOIN}:
        assert f'waits for "{cause}"' not in wait(cause).sentence


def test_reasons_of_the_run_come_before_those_of_its_steps_and_the_rest_is_counted() -> None:
    """WEB.5: all causes are listed; a long list ends with how many more there are."""
    waits = (WaitFacts(cause=WaitsFor.TIMER, step="a"), WaitFacts(cause=WaitsFor.PEOPLE, step="b"))
    held = {"by": "bob"}
    reasons = why(standing("paused", held=held, waits=waits, further_waits=30))
    assert [reason.code for reason in reasons] == ["held", "timer", "people", "more"]
    assert reasons[-1].sentence == "30 further steps of it wait, too."


def test_a_run_needs_somebody_only_if_nothing_of_it_passes_by_itself() -> None:
    """WEB.5: the page tells apart what passes from what somebody has to end."""
    timer = WaitFacts(cause=WaitsFor.TIMER, step="a", until=LATER)
    broken = WaitFacts(cause=WaitsFor.RECONCILE, step="b")
    assert needs_somebody(why(standing(waits=(broken,))))
    assert not needs_somebody(why(standing(waits=(broken, timer))))
    assert not needs_somebody([])
