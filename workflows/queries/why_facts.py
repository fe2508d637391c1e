"""How a run stands, and a reason why it does not move: the seam between reading and judging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


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
    may be named, ``hidden_holders`` counts those of workflows that the viewer may not see. ``max`` 0: any number;
    ``starts`` in ``per_ms`` is the rate of a limit, 0 without one."""

    name: str
    since: datetime | None = None
    holders: tuple[int, ...] = ()
    hidden_holders: int = 0
    ahead: int = 0
    max: int = 1
    starts: int = 0
    per_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFacts:
    """Work that is offered to other programs. ``worker`` "": nobody has it."""

    queue: str
    worker: str = ""
    renewals: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFacts:
    """A scope that waits. ``step`` is told with its place (``each[3]/fetch``); what is known besides the cause depends
    on it: ``signal``, ``people`` (who may answer), ``missing`` (code), ``attempt``, ``child``, ``line``, ``work``."""

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
    work: WorkFacts | None = None


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
    starts_at: datetime | None = None
    closing: str = ""


def holders_words(line: LineFacts) -> str:
    """Who holds what is waited for, as the end of a sentence; "" if nobody does."""
    named = [f"run {number}" for number in line.holders]
    if line.hidden_holders:
        named.append(counted(line.hidden_holders, "run") + " that you may not see")
    return f", held by {', '.join(named)}" if named else ""


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
