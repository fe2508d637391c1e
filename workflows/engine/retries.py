"""Retry arithmetic: which policy covers a failure, and how long to wait. Pure (docs/format.md, Retry)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from workflows.definitions.plan import RetryPolicy
from workflows.errors import FAILURES
from workflows.statuses import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """``counts`` is the visit's new tally per policy; ``wait_ms`` the time before the next attempt."""

    counts: str
    wait_ms: int


def covers(policy: RetryPolicy, code: str, access: str) -> bool:
    """Whether a policy repeats an attempt that failed with ``code``.

    Without ``errors`` it covers every retryable error except ``crashed``, and for a write also except the uncertain
    ones (timeout, network): an uncertain write is repeated only where the file names the error.
    """
    rule = FAILURES.get(code)
    if rule is None or not rule.retryable:
        return False
    if policy.errors is not None:
        return code in policy.errors
    return code != "crashed" and not (rule.uncertain and access == Access.WRITE)


def next_attempt(
    policies: Sequence[RetryPolicy], *, code: str, access: str, counts: str, seed: str, at_least_ms: int = 0
) -> RetryDecision | None:
    """The retry of a failed attempt, or None. ``counts`` is the visit's tally, ``seed`` names run, visit, attempt.

    ``at_least_ms``: the other side asked for no attempt before that.
    """
    for position, policy in enumerate(policies):
        if covers(policy, code, access):
            tally = json.loads(counts) if counts else [0] * len(policies)
            tally[position] += 1
            if tally[position] >= policy.attempts:
                return None
            wait_ms = wait_before(policy, tally[position], seed, at_least_ms=at_least_ms)
            return RetryDecision(counts=json.dumps(tally), wait_ms=wait_ms)
    return None


def wait_before(policy: RetryPolicy, failures: int, seed: str, *, at_least_ms: int = 0) -> int:
    """Milliseconds before the attempt after the n-th failure: ``wait × factor^(n-1)``, at most ``max_wait``.

    Full jitter takes a part of it that is a hash of ``seed``, so that it is the same whenever it is computed. It comes
    after ``at_least_ms``, never before: callers that were sent away together do not come back together.
    """
    wait = min(policy.wait_ms * policy.factor ** min(failures - 1, 60), policy.max_wait_ms)
    if not policy.jitter:
        return max(int(wait), at_least_ms)
    return at_least_ms + int(wait * int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") / 2**64)
