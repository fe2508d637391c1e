"""Why is this run not moving? Pure: from how a run stands to reasons that a person can act on (promise WEB.5).

Each reason names what is missing, since when, until when, and what to do; the surfaces add links and words for moments.
A cause that this version does not know is told as it is (promise WEB.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from workflows.statuses import LIVE_STATUSES, RunStatus, WaitsFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a reason is about: ``kind`` is question, reconcile, visit, run, or actions."""

    kind: str
    run: int
    visit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """One reason. ``until`` is when it passes by itself; ``advice`` what a person can do, as a sentence; ``verb`` the
    operation of the run that does it, if there is one. ``passes`` False: somebody has to act."""

    code: str
    sentence: str
    since: datetime | None = None
    until: datetime | None = None
    advice: str = ""
    target: Target | None = None
    verb: str = ""
    passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFacts:
    """The lease of a run. ``expires_at`` None: it was handed back, or nobody ever had it (``epoch`` 0)."""

    owner: str = ""
    epoch: int = 0
    heartbeat_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFacts:
    """A place in a line: for the concurrency key of the run, or for a limit of a step. ``holders`` are the runs that
    may be named, ``hidden_holders`` counts those of workflows that the viewer may not see."""

    name: str
    since: datetime | None = None
    holders: tuple[int, ...] = ()
    hidden_holders: int = 0
    ahead: int = 0
    max: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFacts:
    """A scope that waits. ``step`` is told with its place (``each[3]/fetch``); what is known besides the cause depends
    on it: ``signal``, ``people`` (who may answer), ``missing`` (code), ``attempt``, ``child``, ``line``."""

    cause: str
    step: str
    visit: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    signal: str = ""
    people: str = ""
    missing: str = ""
    attempt: int = 0
    child: int | None = None
    child_status: str = ""
    child_reason: str = ""
    line: LineFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a run stands at ``now``. ``works``: an effect runs. ``parked``: it has given its worker back until something
    happens, at ``wake_at`` at the latest."""

    run: int
    status: str
    now: datetime
    created_at: datetime
    changed_at: datetime | None = None
    works: bool = False
    wake_at: datetime | None = None
    lease: LeaseFacts = field(default_factory=LeaseFacts)
    silent_after: timedelta = timedelta(seconds=30)
    held: Mapping[str, str] | None = None
    line: LineFacts | None = None
    waits: tuple[WaitFacts, ...] = ()
    further_waits: int = 0
    engine_version: int = 1
    known_engines: frozenset[int] = frozenset({1})
    worker_seen_at: datetime | None = None
    crashes: int = 0
    poison_limit: int = 5
    error_code: str = ""
    closing: str = ""


def why(standing: Standing) -> list[Because]:
    """The reasons why a run does not go on, those about the whole run first; empty for one that moves or is over."""
    if standing.status not in LIVE_STATUSES:
        return [_poisoned(standing)] if standing.error_code == "run.poisoned" else []
    return [*_of_the_run(standing), *_of_its_steps(standing)]


def needs_somebody(reasons: list[Because]) -> bool:
    """Whether nothing of this passes by itself."""
    return bool(reasons) and not any(reason.passes for reason in reasons)


# ---- the run as a whole ----------------------------------------------------------------------------------------------


def _of_the_run(standing: Standing) -> Iterator[Because]:
    if standing.held is not None:
        yield _held(standing)
    if standing.line is not None:
        yield _in_line(standing, standing.line)
    if standing.engine_version not in standing.known_engines:
        yield _unknown_engine(standing)
    elif standing.line is None:
        yield from _driver(standing)
    if standing.crashes:
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


def _in_line(standing: Standing, line: LineFacts) -> Because:
    behind = f" behind {_counted(line.ahead, 'other run')}" if line.ahead else ""
    return Because(
        code="concurrency",
        sentence=f'It waits in line for a slot of "{line.name}"{behind}{_holders(line)}.',
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
        sentence=f"{_counted(standing.crashes, 'driver')} died at this place in a row.",
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


# ---- its steps -------------------------------------------------------------------------------------------------------


def _of_its_steps(standing: Standing) -> Iterator[Because]:
    for wait in standing.waits:
        yield _TOLD.get(wait.cause, _unknown)(standing, wait)
    if standing.further_waits:
        yield Because(
            code="more", sentence=f"{_counted(standing.further_waits, 'further step')} of it wait, too.", passes=True
        )


def _visit(standing: Standing, wait: WaitFacts, kind: str = "visit") -> Target | None:
    return None if wait.visit is None else Target(kind=kind, run=standing.run, visit=wait.visit)


def _timer(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="timer",
        sentence=f"{wait.step} waits for a moment to come.",
        since=wait.since,
        until=wait.until,
        target=_visit(standing, wait),
        passes=True,
    )


def _retry(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="retry",
        sentence=f"{wait.step} failed{f' ({wait.missing})' if wait.missing else ''} and waits for its next attempt.",
        since=wait.since,
        until=wait.until,
        advice="“Retry now” ends the waiting; the attempts that are left stay the same.",
        target=_visit(standing, wait),
        verb="retry",
        passes=True,
    )


def _signal(standing: Standing, wait: WaitFacts) -> Because:
    named = f'the signal "{wait.signal}"' if wait.signal else "a signal"
    command = f"python manage.py runs signal {standing.run} {wait.signal or 'NAME'}"
    return Because(
        code="signal",
        sentence=f"{wait.step} waits for {named}.",
        since=wait.since,
        until=wait.until,
        advice=f"Whoever knows of it sends the signal, here or with `{command}`.",
        target=_visit(standing, wait),
        verb="signal",
        passes=wait.until is not None,
    )


def _people(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="people",
        sentence=f"{wait.step} waits for an answer{f' of {wait.people}' if wait.people else ''}.",
        since=wait.since,
        until=wait.until,
        advice="It goes on with the answer." if wait.people else "Anybody may answer; it goes on with the answer.",
        target=_visit(standing, wait, "question"),
        passes=wait.until is not None,
    )


def _child(standing: Standing, wait: WaitFacts) -> Because:
    if wait.child is None:
        return Because(code="child", sentence=f"{wait.step} waits for a child run.", since=wait.since, passes=True)
    stands = f", which is {wait.child_status}{f': {wait.child_reason}' if wait.child_reason else ''}"
    return Because(
        code="child",
        sentence=f"{wait.step} waits for run {wait.child}{stands}.",
        since=wait.since,
        until=wait.until,
        target=Target(kind="run", run=wait.child),
        passes=wait.child_status not in (RunStatus.BLOCKED, RunStatus.PAUSED),
    )


def _slot(standing: Standing, wait: WaitFacts) -> Because:
    line = wait.line
    if line is None:
        return Because(code="limit", sentence=f"{wait.step} waits for a place of its limit.", passes=True)
    behind = f" behind {_counted(line.ahead, 'other')}" if line.ahead else ""
    return Because(
        code="limit",
        sentence=f'{wait.step} waits for a place in "{line.name}"{behind}{_holders(line)}.',
        since=line.since or wait.since,
        advice=f"At most {_counted(line.max, 'attempt')} of this limit may run at once, over all runs.",
        target=Target(kind="run", run=line.holders[0]) if line.holders else None,
        passes=True,
    )


def _reconcile(standing: Standing, wait: WaitFacts) -> Because:
    which = f"attempt {wait.attempt} of {wait.step}" if wait.attempt else wait.step
    return Because(
        code="reconcile",
        sentence=f"The worker of {which} died, and nobody knows whether its effect happened.",
        since=wait.since,
        advice="Look where the effect would show, then say what happened. It is not repeated by itself.",
        target=_visit(standing, wait, "reconcile"),
        verb="reconcile",
    )


def _code(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="missing_code",
        sentence=f"{wait.step} needs {wait.missing or 'code'}, which the worker that drove the run lacks.",
        since=wait.since,
        advice="Install it on the workers, then resume the run.",
        target=_visit(standing, wait),
        verb="resume",
    )


def _external(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="external",
        sentence=f"{wait.step} waits for another program that does its work.",
        since=wait.since,
        until=wait.until,
        target=_visit(standing, wait),
        passes=True,
    )


def _unknown(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code=wait.cause,
        sentence=f'{wait.step} waits for "{wait.cause}".',
        since=wait.since,
        until=wait.until,
        target=_visit(standing, wait),
    )


_TOLD: dict[str, Callable[[Standing, WaitFacts], Because]] = {
    WaitsFor.TIMER: _timer,
    WaitsFor.RETRY: _retry,
    WaitsFor.SIGNAL: _signal,
    WaitsFor.PEOPLE: _people,
    WaitsFor.CHILD: _child,
    WaitsFor.SLOT: _slot,
    WaitsFor.RECONCILE: _reconcile,
    WaitsFor.CODE: _code,
    WaitsFor.EXTERNAL: _external,
}


def _holders(line: LineFacts) -> str:
    named = [f"run {number}" for number in line.holders]
    if line.hidden_holders:
        named.append(_counted(line.hidden_holders, "run") + " that you may not see")
    return f", held by {', '.join(named)}" if named else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
