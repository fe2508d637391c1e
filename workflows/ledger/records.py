"""Rows that every verb without a lease writes next to a change of the run: its event and its row versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workflows.models import Event, RowVersion, Run


def compact(value: Any) -> str:
    """Small JSON of our own making: sorted keys, no spaces; moments as ISO text."""
    return _encode(value)


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_moment).encode


def record_event(
    run: Run,
    type: str,
    *,
    at: datetime,
    actor: str = "",
    offset: int = 0,
    visit: int | None = None,
    attempt: int | None = None,
    **payload: Any,
) -> int:
    """Insert the event of the revision that follows the locked run's present one. Returns its number.

    Called before ``Run.objects.change`` hands the numbers out; ``offset`` counts further events of the same change.
    """
    sequence = run.next_event + offset
    Event.objects.create(
        run=run,
        sequence=sequence,
        revision=run.revision + 1,
        type=type,
        at=at,
        actor=actor,
        visit=visit,
        attempt=attempt,
        payload=compact(payload),
    )
    return sequence


def record_version(run: Run, table: str, key: str, changed: Mapping[str, Any], *, revision: int | None = None) -> None:
    """Insert the version of a row for the revision that follows the locked run's present one."""
    RowVersion.objects.create(
        run=run, revision=run.revision + 1 if revision is None else revision, table=table, key=key, row=compact(changed)
    )
