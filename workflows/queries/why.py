"""Why is this run not moving? Pure: from how a run stands to reasons that a person can act on (promise WEB.5).

Each reason names what is missing, since when, until when, and what to do; the surfaces add links and words for moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from workflows.queries.why_facts import Because, LineFacts, Standing, Target, counted, holders_words
from workflows.queries.why_steps import reasons_of_steps
from workflows.statuses import LIVE_STATUSES, RunStatus


def why(standing: Standing) -> list[Because]:
    """The reasons why a run does not go on, those about the whole run first; empty for one that moves or is over."""
    if standing.status not in LIVE_STATUSES:
        return [_poisoned(standing)] if standing.error_code == "run.poisoned" else []
    return [*_of_the_run(standing), *reasons_of_steps(standing)]


def needs_somebody(reasons: list[Because]) -> bool:
    """Whether nothing of this passes by itself."""
    return bool(reasons) and not any(reason.passes for reason in reasons)


# ---- the run as a whole ----------------------------------------------------------------------------------------------


def _of_the_run(standing: Standing) -> Iterator[Because]:
    if standing.held is not None:
        yield _held(standing)
    if standing.starts_at is not None and standing.starts_at > standing.now:
        yield _later(standing)
        return
    if standing.line is not None:
        yield _in_line(standing, standing.line)
    if standing.engine_version not in standing.known_engines:
        yield _unknown_engine(standing)
    elif standing.line is None:
        yield from _driver(standing)
    if standing.crashes > 1 and standing.status in (RunStatus.QUEUED, RunStatus.RUNNING):
        yield _crashes(standing)


def _held(standing: Standing) -> Because:
    held = standing.held or {}
    reason = held.get("reason", "")
    since = held.get("since")
    return Because(
        code="held",
        sentence=f"{held.get('by') or 'Somebody'} holds the run{f': {reason}' if reason else '.'}",
        since=datetime.fromisoformat(since) if since else None,
        advice="Nothing new starts until somebody resumes it; only the deadlines of questions go on.",
        target=Target(kind="actions", run=standing.run),
        verb="resume",
    )


def _later(standing: Standing) -> Because:
    return Because(
        code="later",
        sentence="It starts later, as whoever started it wished.",
        since=standing.created_at,
        until=standing.starts_at,
        advice="Until then it takes no place and no worker. It can be cancelled, and started anew at another moment.",
        passes=True,
    )


def _in_line(standing: Standing, line: LineFacts) -> Because:
    behind = f" behind {counted(line.ahead, 'other run')}" if line.ahead else ""
    return Because(
        code="concurrency",
        sentence=f'It waits in line for a slot of "{line.name}"{behind}{holders_words(line)}.',
        since=line.since,
        advice="It goes on when a slot is free. A holder that is not needed any more can be cancelled.",
        target=Target(kind="run", run=line.holders[0]) if line.holders else None,
        passes=True,
    )


def _unknown_engine(standing: Standing) -> Because:
    known = ", ".join(str(version) for version in sorted(standing.known_engines))
    return Because(
        code="unknown_engine",
        sentence=f"It was published by engine version {standing.engine_version}; this server knows {known}.",
        since=standing.created_at,
        advice="Start a worker of the newer version: it drives the run, and others leave it alone.",
    )


def _driver(standing: Standing) -> Iterator[Because]:
    lease = standing.lease
    if lease.expires_at is not None and lease.expires_at > standing.now:
        yield from _silent(standing)
    elif lease.expires_at is not None:
        yield Because(
            code="worker_lost",
            sentence=f"Its worker {lease.owner or ''} fell silent; its lease has ended.".replace("  ", " "),
            since=lease.heartbeat_at,
            advice=f"The next worker takes over. {_start(standing)}",
        )
    elif standing.status in (RunStatus.QUEUED, RunStatus.RUNNING):
        yield _no_worker(standing, since=standing.changed_at or standing.created_at)
    elif standing.wake_at is not None and standing.wake_at <= standing.now:
        yield _no_worker(standing, since=standing.wake_at)


def _silent(standing: Standing) -> Iterator[Because]:
    lease = standing.lease
    if lease.heartbeat_at is None or standing.now - lease.heartbeat_at <= standing.silent_after:
        return
    yield Because(
        code="silent_worker",
        sentence=f"Its worker {lease.owner} holds the lease and has been silent.",
        since=lease.heartbeat_at,
        until=lease.expires_at,
        advice="When the lease ends, the next worker takes over; nothing is lost.",
        passes=True,
    )


def _no_worker(standing: Standing, *, since: datetime) -> Because:
    first = "No worker has taken it yet" if standing.lease.epoch == 0 else "It could go on, and no worker drives it"
    seen = standing.worker_seen_at
    if seen is None:
        rest = "no worker is at work on any run"
    elif standing.now - seen <= standing.silent_after:
        rest = "workers are busy with other runs"
    else:
        rest = "the workers of other runs are silent, too"
    return Because(
        code="no_worker",
        sentence=f"{first}; {rest}.",
        since=since,
        advice=_start(standing),
        passes=seen is not None and standing.now - seen <= standing.silent_after,
    )


def _start(standing: Standing) -> str:
    return (
        f"`python manage.py run_worker` drives all runs, `python manage.py run_workflow {standing.run}` only this one."
    )


def _crashes(standing: Standing) -> Because:
    return Because(
        code="crashes",
        sentence=f"{counted(standing.crashes, 'driver')} died at this place in a row.",
        advice=f"After {standing.poison_limit} the run is ended as failed. The log of the workers says why.",
        passes=True,
    )


def _poisoned(standing: Standing) -> Because:
    return Because(
        code="run.poisoned",
        sentence="Its drivers died again and again at the same place, so it was ended.",
        since=standing.changed_at,
        advice="Read the log of the workers, mend what kills them, then resume the run.",
        verb="resume",
    )
