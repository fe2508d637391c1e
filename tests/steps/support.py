"""Runs one step the way the engine does, without a run: enter, then execute in the effect pool."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflows.definitions.plan import Body, StepPlan
from workflows.engine.contract import Effect, EffectContext, Entered, Entry, Result, StepKind
from workflows.engine.pool import Delivery, EffectPool, Stop
from workflows.engine.secrets import SecretMissing
from workflows.engine.supervisor import Supervisor
from workflows.expressions import compile_value
from workflows.steps import KINDS

_BODY = Body(name="main", kind="section")


def step_of(kind: str, options: Mapping[str, Any], **changes: Any) -> StepPlan:
    """A compiled step; ``timeout`` is in milliseconds."""
    values: dict[str, Any] = {
        "id": "work",
        "kind": kind,
        "body": _BODY,
        "position": 0,
        "title": compile_value("Work"),
        "only_if": None,
        "routes": {},
        "main_outcome": "ok",
        "max_visits": None,
        "timeout": 600_000,
        "retry": (),
        "access": None,
        "idempotent": None,
        "workspace": "shared" if kind == "shell" else "none",
        "sensitive": False,
        "limit": None,
        "options": options,
    }
    return StepPlan(**{**values, **changes})


def shell(
    run: str | None = None, *, argv: Any = None, env: Mapping[str, Any] | None = None, **changes: Any
) -> StepPlan:
    """A shell step. ``env`` and ``argv`` may hold templates; other keys of the format go in ``changes``."""
    options: dict[str, Any] = {
        "run": run,
        "argv": None if argv is None else compile_value(argv),
        "env": {
            name: value if isinstance(value, dict) and set(value) == {"secret"} else compile_value(value)
            for name, value in (env or {}).items()
        },
        "parse": changes.pop("parse", "text"),
        "schema": changes.pop("schema", None),
        "exits": changes.pop("exits", {}),
    }
    for key in ("stdin", "cwd"):
        options[key] = compile_value(changes.pop(key)) if key in changes else None
    return step_of("shell", options, **changes)


def task(call: str, arguments: Any = None, *, schema: Any = None, **changes: Any) -> StepPlan:
    return step_of("task", {"call": call, "with": compile_value(arguments or {}), "schema": schema}, **changes)


def enter(
    step: StepPlan, *, kind: StepKind | None = None, frozen: Any = None, now_ms: int = 0, **names: Any
) -> Entered:
    return (kind or KINDS[step.kind]).enter(
        Entry(
            step=step,
            evaluate=lambda value: value.evaluate(names),
            evaluate_with=lambda value, extra: value.evaluate({**names, **extra}),
            evaluate_escaped=lambda value, escape: value.evaluate(names, escape=escape),
            variables=names.get("vars", {}),
            now_ms=now_ms,
            round=1,
            frozen=frozen or {},
        )
    )


@dataclass
class Bench:
    """Runs effects; ``secrets`` are the declared ones."""

    workspace: Path
    pool: EffectPool
    supervisor: Supervisor
    secrets: dict[str, str] = field(default_factory=dict)
    progress: list[str] = field(default_factory=list)
    deliveries: queue.SimpleQueue[Delivery] = field(default_factory=queue.SimpleQueue)
    _tokens: int = 0

    def read_secret(self, name: str) -> str:
        if name not in self.secrets:
            raise SecretMissing(name)
        return self.secrets[name]

    def context(self, step: StepPlan, inputs: Mapping[str, Any], stop: Stop, **changes: Any) -> EffectContext:
        values: dict[str, Any] = {
            "run_id": 7,
            "workflow": "demo",
            "step": step,
            "path": step.id,
            "visit": 12,
            "round": 3,
            "attempt": 2,
            "dispatch_id": "6b0c2f5e-0000-4000-8000-000000000001",
            "index": None,
            "inputs": inputs,
            "secrets": self.read_secret,
            "workspace": lambda: self.workspace,
            "deadline": None,
            "stop": stop.event,
            "stop_reason": stop.reason,
            "groups": self.supervisor,
            "progress": self.progress.append,
        }
        return EffectContext(**{**values, **changes})

    def start(
        self, step: StepPlan, names: Mapping[str, Any] | None = None, *, kind: Any = None, **changes: Any
    ) -> tuple[int, Stop]:
        kind = kind or KINDS[step.kind]
        effect = enter(step, kind=kind, **(names or {}))
        assert isinstance(effect, Effect), effect
        stop = Stop()
        self._tokens += 1
        self.pool.submit(
            kind,
            self.context(step, effect.inputs, stop, **changes),
            token=self._tokens,
            stop=stop,
            timeout_ms=effect.timeout_ms,
            deliver=self.deliveries.put,
        )
        return self._tokens, stop

    def run(self, step: StepPlan, names: Mapping[str, Any] | None = None, **changes: Any) -> Result:
        token, _ = self.start(step, names, **changes)
        delivery = self.deliveries.get(timeout=30)
        assert (delivery.token, delivery.late) == (token, False)
        return delivery.result


@contextmanager
def bench_in(workspace: Path, **options: Any) -> Iterator[Bench]:
    pool, supervisor = EffectPool(4, **options), Supervisor()
    try:
        yield Bench(workspace=workspace, pool=pool, supervisor=supervisor)
    finally:
        pool.stop_all("shutdown")
        pool.close(wait_seconds=3)
        supervisor.close()


def output(result: Result) -> Any:
    """The output of a successful result."""
    assert result.failure is None, result.failure
    return None if result.output is None else result.output.value()


def failure(result: Result) -> tuple[str, str, str]:
    """Outcome, code and message of a failed result."""
    assert result.failure is not None, result
    assert result.output is None
    return result.outcome, result.failure.code, result.failure.message


Predicate = Callable[[], bool]
