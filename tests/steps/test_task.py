"""Task steps: a registered function gets typed arguments and a context; whatever it does becomes a result (SET.5)."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tests.engine.workers import wait_until
from tests.steps.support import Bench, bench_in, enter, failure, output, task
from workflows.engine.contract import Effect, Missing
from workflows.functions import Outcome, Registry, TaskContext, TaskFunction
from workflows.steps.task import TaskKind


class Line(BaseModel):
    article: str
    count: int = 1


@dataclass
class Address:
    street: str
    since: date | None = None


class Colour(Enum):
    RED = "red"


def everything(
    day: date,
    at: datetime,
    price: Decimal,
    line: Line,
    address: Address,
    colours: list[Colour],
    mode: Literal["fast", "slow"],
    anything: Any,
    count: int = 7,
    *,
    label: str | None = None,
) -> list[str]:
    given = (day, at, price, line, address, colours, mode, anything, count, label)
    return [repr(value) for value in given]


def record(**fields: int) -> dict[str, int]:
    return fields


def context_of(context: TaskContext, text: str = "") -> dict[str, Any]:
    context.progress(f"halfway {text}")
    return {
        "key": context.idempotency_key,
        "run": context.run_id,
        "workflow": context.workflow,
        "step": context.step,
        "visit": context.visit,
        "round": context.round,
        "attempt": context.attempt,
        "index": context.index,
        "workspace": str(context.workspace),
    }


def echo(value: Any) -> Any:
    return value


def spoil(value: list[Any]) -> int:
    value.append("spoiled")
    return len(value)


def fail(message: str) -> None:
    raise RuntimeError(message)


def leave(code: int) -> None:
    sys.exit(code)


def decide(name: str) -> Outcome:
    return Outcome(name, {"chosen": name})


def rich() -> dict[str, Any]:
    return {
        "line": Line(article="tea"),
        "address": Address("Elm Street", date(2026, 1, 31)),
        "price": Decimal("1.10"),
        "set": {3},
        "pair": (1, 2),
        "colour": Colour.RED,
        "path": Path("a/b"),
    }


def unserialisable() -> object:
    return object()


async def gently(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def stubborn(seconds: float) -> str:
    time.sleep(seconds)
    return "late"


def polite(context: TaskContext) -> str:
    context.progress("begun")
    while True:
        try:
            context.check_cancelled()
            context.cancelled.wait(10)
        except Exception:
            return "swallowed"


def gives_up(context: TaskContext) -> str:
    context.cancelled.wait(10)
    raise ConnectionError("closed by the cancel")


def finishes_anyway(context: TaskContext) -> str:
    context.progress("begun")
    context.cancelled.wait(10)
    return "done after all"


def use_secret(context: TaskContext, how: str) -> Any:
    value = context.secret("api_token")
    if how == "raise":
        raise ValueError(f"refused {value}")
    if how == "progress":
        context.progress(f"using {value}")
    return {value: f"got {value}"}


def open_database() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return int(cursor.fetchone()[0])


def open_connections() -> int:
    from django.db import connections

    return len([c for c in connections.all(initialized_only=True) if c.connection is not None])


def make_registry() -> Registry:
    registry = Registry()
    for function in (
        everything,
        record,
        context_of,
        echo,
        spoil,
        fail,
        leave,
        rich,
        unserialisable,
        gently,
        stubborn,
        polite,
        gives_up,
        finishes_anyway,
        use_secret,
        open_database,
        open_connections,
    ):
        registry.add(
            TaskFunction(function, name=f"demo.{function.__name__}", access="write", idempotent=False, outcomes=())
        )
    registry.add(TaskFunction(decide, name="demo.decide", access="read", idempotent=True, outcomes=("declined",)))
    return registry


KIND = TaskKind(make_registry())


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Bench]:
    """A bench whose functions count as still running 0.3 s after their stop."""
    with bench_in(tmp_path, abandon_seconds=0.3) as made:
        yield made


# ---- entering ---------------------------------------------------------------------------------------------------------


def test_inputs_are_the_call_and_its_arguments() -> None:
    effect = enter(task("demo.echo", {"value": "${ params.v }"}, timeout=None), kind=KIND, params={"v": [1]})

    assert effect == Effect(
        inputs={"call": "demo.echo", "with": {"value": [1]}},
        access="write",
        idempotent=False,
        workspace="none",
        timeout_ms=None,
    )


@pytest.mark.parametrize(
    ("in_file", "frozen", "expected"),
    [
        ({}, {}, ("read", True)),
        ({}, {"functions": {"demo.decide": {"access": "write", "idempotent": False}}}, ("write", False)),
        ({"access": "write", "idempotent": False}, {}, ("write", False)),
    ],
)
def test_the_file_decides_then_what_was_frozen_then_the_declaration(
    in_file: Any, frozen: Any, expected: tuple[str, bool]
) -> None:
    effect = enter(task("demo.decide", {"name": "ok"}, **in_file), kind=KIND, frozen=frozen)

    assert isinstance(effect, Effect)
    assert (effect.access, effect.idempotent) == expected


def test_a_function_that_is_gone_is_missing_code() -> None:
    assert enter(task("demo.gone"), kind=KIND) == Missing(what="task function", name="demo.gone", step="work")


# ---- arguments --------------------------------------------------------------------------------------------------------


def test_arguments_are_converted_by_the_annotations(bench: Bench) -> None:
    arguments = {
        "day": "2026-01-31",
        "at": "2026-01-31T09:00:00+01:00",
        "price": "1.10",
        "line": {"article": "tea", "count": 2},
        "address": {"street": "Elm Street"},
        "colours": ["red"],
        "mode": "fast",
        "anything": {"a": [None]},
    }

    assert output(bench.run(task("demo.everything", arguments), kind=KIND)) == [
        "datetime.date(2026, 1, 31)",
        "datetime.datetime(2026, 1, 31, 9, 0, tzinfo=TzInfo(3600))",
        "Decimal('1.10')",
        "Line(article='tea', count=2)",
        "Address(street='Elm Street', since=None)",
        "[<Colour.RED: 'red'>]",
        "'fast'",
        "{'a': [None]}",
        "7",
        "None",
    ]


def test_every_argument_that_does_not_fit_is_named(bench: Bench) -> None:
    arguments = {
        "day": "31.12.2026",
        "at": "2026-01-31T09:00:00Z",
        "price": "dear",
        "line": {"article": "tea", "count": "two"},
        "address": {},
        "colours": ["red", "blue"],
        "mode": "fast",
        "extra": 1,
    }

    outcome, code, message = failure(bench.run(task("demo.everything", arguments), kind=KIND))

    assert (outcome, code) == ("failed", "task_error")
    assert message.startswith('demo.everything: there is no argument "extra"; it takes day, at, price, line, ')
    for told in ('"day"', '"price"', '"line.count"', '"address.street"', '"colours[1]"', '"anything" is missing'):
        assert f"argument {told}" in message
    assert '"mode"' not in message


def test_a_function_may_take_any_names(bench: Bench) -> None:
    assert output(bench.run(task("demo.record", {"a": 1, "fields": "2"}), kind=KIND)) == {"a": 1, "fields": 2}


def test_a_function_cannot_spoil_the_inputs_of_its_next_attempt(bench: Bench) -> None:
    step = task("demo.spoil", {"value": "${ v }"})
    value = [1]

    assert output(bench.run(step, {"v": value}, kind=KIND)) == 2
    assert output(bench.run(step, {"v": value}, kind=KIND)) == 2
    assert value == [1]


def test_the_context_says_where_the_function_is(bench: Bench) -> None:
    assert output(bench.run(task("demo.context_of", {"text": "there"}), kind=KIND, index=4)) == {
        "key": "6b0c2f5e-0000-4000-8000-000000000001",
        "run": 7,
        "workflow": "demo",
        "step": "work",
        "visit": 12,
        "round": 3,
        "attempt": 2,
        "index": 4,
        "workspace": str(bench.workspace),
    }
    assert bench.progress == ["halfway there"]


def test_the_context_cannot_be_an_argument_of_the_file(bench: Bench) -> None:
    result = bench.run(task("demo.context_of", {"context": 1}), kind=KIND)

    assert failure(result)[2] == 'demo.context_of: there is no argument "context"; it takes text.'


# ---- results ----------------------------------------------------------------------------------------------------------


def test_values_become_json(bench: Bench) -> None:
    assert output(bench.run(task("demo.rich"), kind=KIND)) == {
        "line": {"article": "tea", "count": 1},
        "address": {"street": "Elm Street", "since": "2026-01-31"},
        "price": "1.10",
        "set": [3],
        "pair": [1, 2],
        "colour": "red",
        "path": "a/b",
    }


def test_a_coroutine_function_is_awaited(bench: Bench) -> None:
    assert output(bench.run(task("demo.gently", {"n": 1}), kind=KIND)) == 2


def test_a_declared_outcome_ends_the_step_with_it(bench: Bench) -> None:
    result = bench.run(task("demo.decide", {"name": "declined"}), kind=KIND)

    assert (result.outcome, output(result)) == ("declined", {"chosen": "declined"})
    assert bench.run(task("demo.decide", {"name": "ok"}), kind=KIND).outcome == "ok"


def test_an_undeclared_outcome_is_an_error(bench: Bench) -> None:
    assert failure(bench.run(task("demo.decide", {"name": "lost"}), kind=KIND)) == (
        "failed",
        "task_error",
        'demo.decide returned the outcome "lost", which it does not declare (declined).',
    )


def test_what_json_cannot_hold_fails_by_name(bench: Bench) -> None:
    assert failure(bench.run(task("demo.unserialisable"), kind=KIND)) == (
        "failed",
        "invalid_output",
        "demo.unserialisable returned what JSON cannot hold: Unable to serialize unknown type: <class 'object'>.",
    )


def test_a_schema_is_checked(bench: Bench) -> None:
    step = task("demo.echo", {"value": 1}, schema={"type": "string"})

    assert failure(bench.run(step, kind=KIND)) == (
        "failed",
        "invalid_output",
        'The output does not fit the schema of the step: output: 1 is not of type "string".',
    )


def test_too_large_a_value_fails_by_name(bench: Bench) -> None:
    result = bench.run(task("demo.echo", {"value": "${ v }"}), {"v": "x" * 1_048_576}, kind=KIND)

    assert failure(result) == (
        "failed",
        "output_too_large",
        "The output cannot be stored: The value is 1,048,578 bytes as JSON; the limit is 1,048,576 bytes.",
    )


def test_an_exception_is_stored_as_class_message_and_trimmed_trace(bench: Bench) -> None:
    result = bench.run(task("demo.fail", {"message": "no route\0"}), kind=KIND)

    assert failure(result) == ("failed", "task_error", "RuntimeError: no route\ufffd")
    assert result.failure is not None
    assert result.repaired
    lines = result.failure.trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "test_task.py" in lines[1]
    assert "workflows/" not in result.failure.trace


def test_long_messages_and_traces_are_cut(bench: Bench) -> None:
    result = bench.run(task("demo.fail", {"message": "${ v }"}), {"v": "ä" * 100_000}, kind=KIND)

    assert result.failure is not None
    assert 4090 < len(result.failure.message.encode()) <= 4096
    assert 16380 < len(result.failure.trace.encode()) <= 16384


def test_an_exit_does_not_end_the_worker(bench: Bench) -> None:
    assert failure(bench.run(task("demo.leave", {"code": 3}), kind=KIND)) == ("failed", "task_error", "SystemExit: 3")
    assert output(bench.run(task("demo.echo", {"value": 1}), kind=KIND)) == 1


def test_secrets_are_masked_in_outputs_messages_and_progress(bench: Bench) -> None:
    bench.secrets["api_token"] = "tok-12345"

    returned = bench.run(task("demo.use_secret", {"how": "progress"}), kind=KIND)
    raised = bench.run(task("demo.use_secret", {"how": "raise"}), kind=KIND)

    assert output(returned) == {"***": "got ***"}
    assert bench.progress == ["using ***"]
    assert failure(raised)[2] == "ValueError: refused ***"
    assert raised.failure is not None
    assert "tok-12345" not in raised.failure.trace


def test_a_missing_secret_has_its_own_error(bench: Bench) -> None:
    assert failure(bench.run(task("demo.use_secret", {"how": ""}), kind=KIND)) == (
        "failed",
        "secret_missing",
        'Secret "api_token" has no value on this server. Set WAYPOST_SECRET_API_TOKEN for the workers.',
    )


@pytest.mark.django_db(transaction=True)
def test_connections_of_a_function_are_closed_after_it(tmp_path: Path) -> None:
    """DB.3: one thread runs both, so the second would see what the first left open."""
    with bench_in(tmp_path) as bench:
        assert output(bench.run(task("demo.open_database"), kind=KIND)) == 1
        assert output(bench.run(task("demo.open_connections"), kind=KIND)) == 0


# ---- stopping ---------------------------------------------------------------------------------------------------------


def test_a_cancel_cannot_be_swallowed(bench: Bench) -> None:
    """SET.7"""
    token, _ = bench.start(task("demo.polite"), kind=KIND)
    wait_until(lambda: bench.progress == ["begun"])

    bench.pool.stop(token, "cancelled")

    assert failure(bench.deliveries.get(timeout=5).result)[:2] == ("cancelled", "cancelled")


def test_what_a_function_raises_because_it_was_stopped_is_not_its_error(bench: Bench) -> None:
    result = bench.run(task("demo.gives_up", timeout=100), kind=KIND)

    assert failure(result)[:2] == ("timed_out", "timeout")


def test_a_success_after_the_timeout_comes_late(bench: Bench) -> None:
    """SET.4"""
    token, _ = bench.start(task("demo.finishes_anyway", timeout=100), kind=KIND)

    settled, late = bench.deliveries.get(timeout=5), bench.deliveries.get(timeout=5)

    assert (settled.token, settled.late, settled.result.outcome) == (token, False, "timed_out")
    assert (late.token, late.late, output(late.result)) == (token, True, "done after all")


def test_a_success_after_a_cancel_is_told_as_it_is(bench: Bench) -> None:
    """SET.3: the engine keeps it as a late result of the cancelled attempt."""
    token, _ = bench.start(task("demo.finishes_anyway"), kind=KIND)
    wait_until(lambda: bench.progress == ["begun"])

    bench.pool.stop(token, "cancelled")

    delivery = bench.deliveries.get(timeout=5)
    assert (delivery.late, output(delivery.result)) == (False, "done after all")


def test_a_function_that_does_not_return_is_settled_without_it_and_comes_late(quick: Bench) -> None:
    """SET.4"""
    token, _ = quick.start(task("demo.stubborn", {"seconds": 1.2}, timeout=100), kind=KIND)

    settled = quick.deliveries.get(timeout=5)
    assert failure(settled.result) == (
        "timed_out",
        "timeout",
        "The step took longer than its timeout and was stopped. Its function is still running.",
    )
    assert quick.pool.still_running(token)
    assert quick.pool.abandoned() == [token]
    assert quick.pool.running() == []

    late = quick.deliveries.get(timeout=5)
    assert (late.token, late.late, output(late.result)) == (token, True, "late")
    assert not quick.pool.still_running(token)


def test_lost_threads_are_replaced(quick: Bench) -> None:
    for _ in range(quick.pool.threads):
        quick.start(task("demo.stubborn", {"seconds": 1.5}, timeout=50), kind=KIND)
    for _ in range(quick.pool.threads):
        assert quick.deliveries.get(timeout=5).result.outcome == "timed_out"

    assert output(quick.run(task("demo.echo", {"value": "free"}), kind=KIND)) == "free"
