"""``task``: calls a registered Python function."""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import Any

from django.db import connections
from pydantic_core import PydanticSerializationError, to_jsonable_python

from workflows.engine.contract import EffectCancelled, EffectContext, Entered, Entry, Missing, Result
from workflows.engine.results import exception_result, failure_result, output_result, short
from workflows.engine.secrets import AttemptSecrets, SecretMissing
from workflows.engine.workspaces import WorkspaceRefused
from workflows.expressions import BadExpression
from workflows.functions import ArgumentError, Outcome, Registry, TaskContext, TaskFunction, registry
from workflows.jsonvalue import clean_text
from workflows.statuses import Access
from workflows.steps.entering import effect, kind_of_value

#: A line of progress is for the eye.
PROGRESS_LIMIT = 500

_PLAIN = frozenset({str, int, float, bool, type(None)})


class TaskKind:
    name = "task"

    def __init__(self, functions: Registry = registry) -> None:
        self._functions = functions

    def enter(self, entry: Entry) -> Entered:
        """What the function declared when the run was published decides, not what it declares today."""
        options = entry.step.options
        name = options["call"]
        function = self._functions.get(name)
        if function is None:
            return Missing(what="task function", name=name, step=entry.step.id)
        arguments = {} if options.get("with") is None else entry.evaluate(options["with"])
        if not isinstance(arguments, dict):
            raise BadExpression(f'"with" must be a mapping, but it is {kind_of_value(arguments)}.')
        declared = entry.frozen.get("functions", {}).get(name, function.declaration)
        return effect(
            entry,
            {"call": name, "with": arguments},
            access=declared.get("access", Access.WRITE),
            idempotent=declared.get("idempotent", False),
        )

    def execute(self, context: EffectContext) -> Result:
        name = context.inputs["call"]
        function = self._functions.get(name)
        if function is None:
            return failure_result("start_failed", f'The task function "{name}" is not registered here.')
        secrets = AttemptSecrets(context.secrets)
        try:
            value = _call(function, context, secrets)
        except EffectCancelled:
            raise
        except ArgumentError as error:
            return failure_result("task_error", secrets.masker().text(str(error)))
        except SecretMissing as error:
            return failure_result("secret_missing", str(error))
        except WorkspaceRefused as error:
            return failure_result("start_failed", str(error))
        except BaseException as error:
            return exception_result(error, mask=secrets.masker().text)
        finally:
            close_connections()
        return _result(function, context, value, secrets)


def _call(function: TaskFunction, context: EffectContext, secrets: AttemptSecrets) -> Any:
    # A copy: what a function does to its arguments must not reach the next attempt.
    bound = function.bind(copy.deepcopy(dict(context.inputs["with"])), _task_context(context, secrets))
    value = function.function(*bound.args, **bound.kwargs)
    if inspect.iscoroutine(value):
        return asyncio.run(value)
    return value


def _task_context(context: EffectContext, secrets: AttemptSecrets) -> TaskContext:
    def report(text: str) -> None:
        context.progress(short(secrets.masker().text(clean_text(str(text))[0]), PROGRESS_LIMIT))

    def check() -> None:
        if context.stop.is_set():
            raise EffectCancelled(context.stop_reason() or "cancelled")

    return TaskContext(
        run_id=context.run_id,
        workflow=context.workflow,
        step=context.step.id,
        visit=context.visit,
        round=context.round,
        attempt=context.attempt,
        index=context.index,
        idempotency_key=context.dispatch_id,
        cancelled=context.stop,
        report=report,
        check=check,
        read_secret=secrets.read,
        make_workspace=context.workspace,
    )


def _result(function: TaskFunction, context: EffectContext, value: Any, secrets: AttemptSecrets) -> Result:
    outcome = "ok"
    if isinstance(value, Outcome):
        outcome, value = value.name, value.value
        if outcome != "ok" and outcome not in function.outcomes:
            declared = ", ".join(function.outcomes) or "none"
            return failure_result(
                "task_error",
                f'{function.name} returned the outcome "{outcome}", which it does not declare ({declared}).',
            )
    try:
        value = _as_json(value)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return failure_result("invalid_output", f"{function.name} returned what JSON cannot hold: {error}.")
    schema = context.step.options.get("schema")
    return output_result(secrets.masker().value(value), outcome=outcome, schema=schema)


def _as_json(value: Any) -> Any:
    """Models, dataclasses, dates, decimals and the like as JSON; plain values as they are."""
    if type(value) in _PLAIN:
        return value
    return to_jsonable_python(value, inf_nan_mode="constants")


def close_connections() -> None:
    """Closes the database connections that a function opened in this thread, whatever it left open in them."""
    for connection in connections.all(initialized_only=True):
        connection.close()
