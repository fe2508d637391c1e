"""A step kind whose effects do what the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from workflows.engine.contract import INTERRUPTED, EffectContext, Entered, Entry, Result, StepKind
from workflows.engine.results import failure_result, output_result
from workflows.steps import KINDS
from workflows.steps.entering import effect

Script = Callable[[EffectContext], Result]


def ok(output: Any = None, *, outcome: str = "ok", log: str = "") -> Result:
    return output_result(output, outcome=outcome, schema=None, exit_code=0, log=log)


def bad(code: str = "exit_nonzero", message: str = "It did not work.") -> Result:
    return failure_result(code, message)


def interrupted() -> Result:
    """What a worker that shuts down has for an effect it killed."""
    return failure_result("crashed", "The worker was shut down while the step ran.", outcome=INTERRUPTED)


class Scripted:
    """The kind ``shell`` with scripted effects: per step id a result, a function, or a list of either, one per try.

    A step without a script succeeds and outputs its own id.
    """

    name = "shell"

    def __init__(self, **scripts: Any) -> None:
        self.scripts = scripts
        self.calls: list[EffectContext] = []
        self._lock = threading.Lock()

    def enter(self, entry: Entry) -> Entered:
        env = {
            name: entry.evaluate(value) if hasattr(value, "evaluate") else value
            for name, value in (entry.step.options.get("env") or {}).items()
        }
        return effect(entry, {"run": entry.step.options["run"], "env": env})

    def execute(self, context: EffectContext) -> Result:
        with self._lock:
            self.calls.append(context)
            script = self.scripts.get(context.step.id, ok(context.step.id))
            if isinstance(script, list):
                script = script.pop(0)
        return script(context) if callable(script) else script

    @property
    def executed(self) -> list[str]:
        """``step v1.1`` of every effect, in order."""
        return [f"{call.step.id} v{call.visit}" for call in self.calls]


def kinds_with(scripted: Scripted | None = None, **scripts: Any) -> Mapping[str, StepKind]:
    """The kinds of the product with ``shell`` replaced by a scripted one."""
    return {**KINDS, "shell": scripted or Scripted(**scripts)}
