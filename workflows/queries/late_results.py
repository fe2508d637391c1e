"""What a displaced worker reported after its attempt was taken from it (promise ADM.6): for who reconciles."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.models import Attempt
from workflows.queries.excerpts import Excerpt, excerpts


@dataclass(frozen=True, slots=True, kw_only=True)
class LateResult:
    """It moved nothing. ``output`` is its beginning."""

    outcome: str
    output: Excerpt


def late_result(run_id: int, visit: int) -> LateResult | None:
    """The late result of the latest attempt of a visit; None: nothing came. Two queries."""
    attempts = Attempt.objects.filter(run_id=run_id, visit=visit).order_by("-number")
    row = attempts.values_list("late_outcome", "late_output_digest").first()
    if row is None or not row[0]:
        return None
    return LateResult(outcome=row[0], output=excerpts([row[1]])[row[1]])
