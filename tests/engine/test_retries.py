"""Retry arithmetic as tables (docs/format.md, Retry; promise ADM 7)."""

from __future__ import annotations

import json

import pytest

from workflows.definitions.plan import RetryPolicy
from workflows.engine.retries import covers, next_attempt, wait_before
from workflows.errors import FAILURES

READ, WRITE = "read", "write"


@pytest.mark.parametrize(
    ("code", "read", "write"),
    [
        ("exit_nonzero", True, True),
        ("http_status", True, True),
        ("rate_limited", True, True),
        ("invalid_output", True, True),
        ("task_error", True, True),
        ("refused", True, True),
        ("child_failed", True, True),
        ("timeout", True, False),
        ("network", True, False),
        ("crashed", False, False),
        ("output_too_large", False, False),
        ("bad_expression", False, False),
        ("command_not_found", False, False),
        ("start_failed", False, False),
        ("secret_missing", False, False),
        ("budget_exceeded", False, False),
        ("cancelled", False, False),
        ("no_such_code", False, False),
    ],
)
def test_what_a_policy_without_errors_covers(code: str, read: bool, write: bool) -> None:
    """ADM.7: never a crash, and no write of which nobody knows whether it happened."""
    policy = RetryPolicy(attempts=3)
    assert (covers(policy, code, READ), covers(policy, code, WRITE)) == (read, write)


@pytest.mark.parametrize("access", [READ, WRITE])
@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_policy_with_errors_covers_exactly_those_that_can_be_repeated(code: str, access: str) -> None:
    """ADM.7"""
    policy = RetryPolicy(attempts=3, errors=frozenset({code}))
    assert covers(policy, code, access) is FAILURES[code].retryable
    assert [other for other in FAILURES if other != code and covers(policy, other, access)] == []


@pytest.mark.parametrize(
    ("failures", "wait"), [(1, 5_000), (2, 10_000), (3, 20_000), (4, 40_000), (5, 60_000), (100_000, 60_000)]
)
def test_the_wait_grows_by_its_factor_up_to_its_maximum(failures: int, wait: int) -> None:
    policy = RetryPolicy(attempts=9, wait_ms=5_000, factor=2.0, max_wait_ms=60_000, jitter=False)
    assert wait_before(policy, failures, "seed") == wait


@pytest.mark.parametrize(("factor", "waits"), [(1.0, [100, 100, 100]), (1.5, [100, 150, 225]), (3.0, [100, 300, 900])])
def test_the_factor_may_be_any_number(factor: float, waits: list[int]) -> None:
    policy = RetryPolicy(attempts=9, wait_ms=100, factor=factor, jitter=False)
    assert [wait_before(policy, failures, "") for failures in (1, 2, 3)] == waits


def test_jitter_is_a_part_of_the_wait_that_is_the_same_whenever_it_is_computed() -> None:
    policy = RetryPolicy(attempts=9, wait_ms=1_000, factor=1.0)
    waits = [wait_before(policy, 1, f"7:{number}:1") for number in range(1000)]
    assert waits == [wait_before(policy, 1, f"7:{number}:1") for number in range(1000)]
    assert 0 <= min(waits) < 50
    assert 950 < max(waits) < 1_000
    assert 450 < sum(waits) / 1000 < 550


def test_a_policy_counts_its_own_attempts_including_the_first() -> None:
    """ADM.7"""
    policies = (
        RetryPolicy(attempts=3, wait_ms=10, factor=1.0, jitter=False, errors=frozenset({"timeout"})),
        RetryPolicy(attempts=2, wait_ms=20, factor=1.0, jitter=False, errors=frozenset({"exit_nonzero"})),
    )
    counts, waits = "", []
    for code in ("timeout", "exit_nonzero", "timeout", "timeout"):
        decision = next_attempt(policies, code=code, access=READ, counts=counts, seed="")
        waits.append(decision and decision.wait_ms)
        counts = decision.counts if decision else counts
    assert waits == [10, 20, 10, None]
    assert json.loads(counts) == [2, 1]


def test_the_first_policy_that_covers_a_failure_decides() -> None:
    policies = (
        RetryPolicy(attempts=1, errors=frozenset({"timeout"})),
        RetryPolicy(attempts=9),
    )
    assert next_attempt(policies, code="timeout", access=READ, counts="", seed="") is None
    assert next_attempt(policies, code="network", access=READ, counts="", seed="") is not None
    assert next_attempt((), code="network", access=READ, counts="", seed="") is None
