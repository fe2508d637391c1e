"""The seam between the engine and the step kinds: frozen values in, frozen values out.

A kind is an object with a ``name``, an ``enter`` method that is pure (it looks at the plan and at evaluated values and
says what the visit needs), and, when it has an effect, an ``execute`` method that runs in a thread of the effect pool
and touches no database. The engine owns everything else: numbers, revisions, retries, routes, deadlines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from workflows.definitions.plan import StepPlan
from workflows.errors import Failure
from workflows.expressions import Value
from workflows.jsonvalue import Stored

# ---- entering a step -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a kind sees when its step is entered. ``evaluate`` renders a template with exactly the names it needs.

    ``now_ms`` is the moment of the decision (Unix milliseconds), the only clock a kind may look at.
    ``frozen`` is what was frozen beside the plan for this step (declared access of a task function and the like).
    ``evaluate_escaped`` renders like ``evaluate`` and passes the text of each expression through a function first.
    """

    step: StepPlan
    evaluate: Callable[[Value], Any]
    variables: Mapping[str, Any]
    now_ms: int
    round: int
    frozen: Mapping[str, Any]
    evaluate_with: Callable[[Value, Mapping[str, Any]], Any]
    evaluate_escaped: Callable[[Value, Callable[[str], str]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The visit is over without an effect. ``variables`` are new values for the scope's variables."""

    outcome: str
    output: Any = None
    failure: Failure | None = None
    variables: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The visit needs an attempt. ``inputs`` is JSON: all that the effect depends on, hashed with the attempt.

    ``workspace`` says how the attempt uses the run's workspace (none, read, shared, write).
    """

    inputs: Mapping[str, Any]
    access: str
    idempotent: bool = False
    workspace: str = "none"
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """The visit waits for a moment (Unix milliseconds) and then settles with ``outcome``."""

    until_ms: int
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBody:
    """The ``end`` step: ends the run or the body. ``replaces``: its output takes the place of the usual one."""

    succeeded: bool
    reason: str | None = None
    output: Any = None
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """The visit runs a body for every value. ``keys`` are unique texts; None: the index is the key."""

    values: Sequence[Any]
    keys: Sequence[str] | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The visit runs a block with these parameters."""

    params: Mapping[str, Any]
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The visit asks people. ``form`` and ``choices`` are as in the plan, ``audience`` {users, groups}."""

    kind: str
    ask: str
    show: Sequence[Mapping[str, Any]] = ()
    form: Sequence[Mapping[str, Any]] = ()
    choices: Sequence[Mapping[str, Any]] = ()
    audience: Mapping[str, Any] = field(default_factory=dict)
    not_by: Sequence[str] = ()
    quorum: int = 1
    timeout_ms: int | None = None
    remind_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitSignal:
    """The visit waits for a signal of this name for which ``match`` holds (None: any)."""

    name: str
    match: Value | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The visit runs another workflow as a child run. ``detach``: it is only started."""

    ref: str
    params: Mapping[str, Any]
    detach: bool = False
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The visit needs an attempt that another program makes. ``inputs`` is JSON: queue and input of the work.

    ``lease_ms``: how long a reservation lasts that is not renewed; ``timeout_ms`` counts from the first reservation.
    """

    queue: str
    inputs: Mapping[str, Any]
    access: str
    lease_ms: int
    timeout_ms: int | None = None
    workspace: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Code that a plan names and this process does not have (``task`` function, kind, …)."""

    what: str
    name: str
    step: str = ""


Entered = Settled | Effect | Sleep | EndBody | FanOut | Call | Ask | AwaitSignal | Child | Work | Missing


# ---- executing an effect ---------------------------------------------------------------------------------------------


class EffectCancelled(BaseException):
    """Raised inside a Python function whose attempt was cancelled. Not an ``Exception``: a step cannot swallow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectContext:
    """What ``execute`` gets. It holds no database connection and must not open one.

    ``stop`` is set when the attempt shall end early; ``stop_reason`` then returns ``timeout``, ``cancelled`` or
    ``shutdown``. ``deadline`` is a ``time.monotonic()`` value or None. ``groups`` registers process groups with the
    supervisor so that nothing outlives the worker. ``progress`` stores a short line for the live view.
    """

    run_id: int
    workflow: str
    step: StepPlan
    path: str
    visit: int
    round: int
    attempt: int
    dispatch_id: str
    index: int | None
    inputs: Mapping[str, Any]
    secrets: Callable[[str], str]
    workspace: Callable[[], Path]
    deadline: float | None
    stop: threading.Event
    stop_reason: Callable[[], str | None]
    groups: GroupKeeper
    progress: Callable[[str], None]


class GroupKeeper(Protocol):
    """Told of every process group an effect starts and ends (``engine.supervisor``).

    ``forget`` says whether the keeper may have killed the group itself, because the worker could not vouch for it.
    """

    def watch(self, group: int, mark: str = "") -> None: ...

    def forget(self, group: int) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one attempt ended; only storable things inside.

    ``output`` is canonical text with its digest, None for JSON null. ``repaired``: characters that cannot be stored
    were replaced. ``exit_code`` belongs to processes. ``log`` is at most 1 MiB of text. ``retry_after_ms``: the other
    side asked for no further attempt before this many milliseconds.
    """

    outcome: str
    output: Stored | None = None
    failure: Failure | None = None
    exit_code: int | None = None
    log: str = ""
    repaired: bool = False
    retry_after_ms: int | None = None


@runtime_checkable
class StepKind(Protocol):
    name: str

    def enter(self, entry: Entry) -> Entered: ...


@runtime_checkable
class EffectKind(StepKind, Protocol):
    def execute(self, context: EffectContext) -> Result: ...


Kinds = Mapping[str, StepKind]

#: The outcome of a :class:`Result` whose effect was killed because the worker shuts down: it may have happened.
INTERRUPTED = "interrupted"


def describe_missing(missing: Sequence[Missing]) -> str:
    return ", ".join(sorted({f"{item.what} {item.name}" for item in missing}))
