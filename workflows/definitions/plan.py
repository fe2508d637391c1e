"""The compiled form of a frozen plan: what the engine executes.

A :class:`Plan` is made from a canonical plan document by ``definitions.compiler.compile_plan`` and never changes.
Every shorthand and every default of the file format is resolved here, so the engine asks no questions about files:
routes name a step of the same body, ``done`` or ``fail``; durations are milliseconds; values are compiled templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.expressions import Value

#: Route targets that are not steps. ``continue`` is resolved by the compiler.
DONE = "done"
FAIL = "fail"
#: Visits a run may make, all bodies included, when its budget does not say it.
DEFAULT_VISITS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """``attempts`` counts the first; ``errors`` None means every retryable error of the default rule."""

    attempts: int
    wait_ms: int = 1_000
    factor: float = 2.0
    max_wait_ms: int = 300_000
    jitter: bool = True
    errors: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """One step. ``options`` holds the kind's own keys; templates in them are compiled :class:`Value` objects.

    ``routes`` covers every outcome the kind can have in this plan, ``exhausted`` and ``skipped`` included; ``unrouted``
    are those that go to ``fail`` only because the file says nothing about them.
    ``access``, ``idempotent`` are None where the file leaves them to the kind or to the task function.
    ``timeout`` is per attempt for effect kinds, for the whole for containers and people; milliseconds or a template
    that gives duration text; None means no limit.
    """

    id: str
    kind: str
    body: Body = field(repr=False, compare=False)
    position: int
    title: Value
    only_if: Value | None
    routes: Mapping[str, str]
    main_outcome: str | None
    max_visits: int | None
    timeout: int | Value | None
    retry: tuple[RetryPolicy, ...]
    access: str | None
    idempotent: bool | None
    workspace: str
    sensitive: bool
    limit: Mapping[str, Any] | None
    options: Mapping[str, Any]
    bodies: Mapping[str, Body] = field(default_factory=dict, repr=False)
    unrouted: frozenset[str] = frozenset()

    def is_routed(self, outcome: str) -> bool:
        """Whether the file says where ``outcome`` goes, or the format has another default for it than ``fail``.

        In the `finally` section an outcome that is not routed is noted and the next step runs.
        """
        return outcome in self.routes and outcome not in self.unrouted

    def route(self, outcome: str) -> str:
        """The target of ``outcome``: a step id of the same body, ``done`` or ``fail``.

        An operator may skip any step: it then goes on where its main outcome goes, without one to the next step.
        """
        if outcome == "skipped" and outcome not in self.routes:
            return self.routes[self.main_outcome] if self.main_outcome else self.body.following(self)
        return self.routes.get(outcome, FAIL)


@dataclass(slots=True, kw_only=True, eq=False)
class Body:
    """A list of steps: a section of the run, a map body (``do``), a branch, or a block.

    ``owner`` is the id of the step that holds it, the name of the block, or "" for the sections of the run.
    ``vars`` are initial values of the variables that live in the scope of this body. ``collect`` is the result of
    the scope; None means: the output of the last step that ran.
    """

    name: str
    kind: str  # section, item, branch, block
    owner: str = ""
    steps: tuple[StepPlan, ...] = ()
    vars: Mapping[str, Value] = field(default_factory=dict)
    params: tuple[Mapping[str, Any], ...] = ()
    collect: Value | None = None

    @property
    def first(self) -> str:
        """Id of the first step."""
        return self.steps[0].id

    def following(self, step: StepPlan) -> str:
        """Id of the step after ``step``, or ``done``."""
        after = step.position + 1
        return self.steps[after].id if after < len(self.steps) else DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    visits: int = DEFAULT_VISITS
    time_ms: int | None = None
    cost_usd: str | None = None
    tokens: int | None = None
    llm_calls: int | None = None
    failures: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """Runs with the same ``key`` share ``max`` slots. ``when_full``: queue, reject or cancel_oldest."""

    key: Value
    max: int = 1
    when_full: str = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole workflow, ready to run. ``document`` is the canonical document it was compiled from."""

    name: str
    title: str
    document: Mapping[str, Any] = field(repr=False)
    params: tuple[Mapping[str, Any], ...]
    secrets: tuple[str, ...]
    budget: Budget
    main: Body = field(repr=False)
    on_failure: Body | None = field(repr=False)
    closing: Body | None = field(repr=False)  # the `finally` section
    blocks: Mapping[str, Body] = field(repr=False)
    steps: Mapping[str, StepPlan] = field(repr=False)  # every step of the file by id; ids are unique
    output: Value | None
    returns: Mapping[str, Any] | None = None
    description: str = field(default="", repr=False)
    owner: str = ""
    tags: tuple[str, ...] = ()
    concurrency: Concurrency | None = None
    schedule: tuple[Mapping[str, Any], ...] = ()

    def section(self, name: str) -> Body | None:
        return {"main": self.main, "on_failure": self.on_failure, "finally": self.closing}[name]
