"""RunFilter: which runs a list or a bulk action is about, the same for pages, commands and the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q
from django.db.models.lookups import Exact
from django.utils import timezone

from workflows.clock import DatabaseNow
from workflows.models.error_code import ErrorCode
from workflows.models.run import Run
from workflows.statuses import LIVE_STATUSES

#: A run that could go on and has not been driven for this long counts as stalled.
STALLED_AFTER = timedelta(minutes=1)
#: The largest number that a row can have.
_MOST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are meant; what is None or empty does not matter.

    ``text`` is a part of the title, or a number; ``waits_for`` a cause of waiting (``people``, ``reconcile``, …);
    ``is_stalled``: could go on, and no worker drives it; ``error_code`` how it failed. ``created_from`` is included,
    ``created_to`` is not, and the same with ``ended``. ``before`` and ``after`` are numbers between which a page of a
    list lies; ``numbers`` names the runs one by one.
    """

    workflow: str | None = None
    statuses: tuple[str, ...] = ()
    started_by: str | None = None
    live: bool | None = None
    text: str | None = None
    concurrency_key: str | None = None
    parent: int | None = None
    waits_for: str | None = None
    is_stalled: bool = False
    error_code: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    ended_from: datetime | None = None
    ended_to: datetime | None = None
    numbers: tuple[int, ...] = ()
    before: int | None = None
    after: int | None = None

    def rows(self, runs: Any = None) -> Any:
        """The runs of ``runs`` (None: of all) that are meant, in no order."""
        found = Run.objects.all() if runs is None else runs
        return found.filter(*self._conditions()) if not self.is_stalled else _stalled(found.filter(*self._conditions()))

    def _conditions(self) -> list[Q]:
        given: list[tuple[Any, Q]] = [
            (self.workflow, Q(workflow__name=self.workflow)),
            (self.statuses, Q(status__in=self.statuses)),
            (self.started_by, Q(started_by=self.started_by)),
            (self.text, _text(self.text or "")),
            (self.concurrency_key, Q(concurrency_key=self.concurrency_key)),
            (self.waits_for, Q(reasons__contains=f'"cause":{json.dumps(self.waits_for)}', status__in=LIVE_STATUSES)),
            (self.error_code, ~Q(error="") & Q(Exact(ErrorCode(F("error")), self.error_code))),
            (self.created_from, Q(created_at__gte=self.created_from)),
            (self.created_to, Q(created_at__lt=self.created_to)),
            (self.ended_from, Q(ended_at__gte=self.ended_from)),
            (self.ended_to, Q(ended_at__lt=self.ended_to)),
            (self.numbers, Q(pk__in=self.numbers)),
        ]
        found = [condition for value, condition in given if value]
        if self.live is not None:
            found.append(Q(status__in=LIVE_STATUSES) if self.live else ~Q(status__in=LIVE_STATUSES))
        bounds = (("parent_run_id", self.parent), ("pk__lt", self.before), ("pk__gt", self.after))
        return [*found, *(Q(**{name: _number(value)}) for name, value in bounds if value is not None)]

    @property
    def is_empty(self) -> bool:
        """Whether it means every run; the place in a list is no choice."""
        return not {name for name in self.as_json() if name not in ("before", "after")}

    def as_json(self) -> dict[str, Any]:
        """What was chosen, as JSON; moments are texts."""
        chosen = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        if not self.is_stalled:
            del chosen["is_stalled"]
        return {name: _plain(value) for name, value in chosen.items()}

    @classmethod
    def from_json(cls, chosen: Mapping[str, Any]) -> RunFilter:
        """The reverse of ``as_json``; names that this version does not know are refused with KeyError."""
        known = {one.name for one in fields(cls)}
        if unknown := set(chosen) - known:
            raise KeyError(", ".join(sorted(unknown)))
        moments = {"created_from", "created_to", "ended_from", "ended_to"}
        values: dict[str, Any] = {
            name: datetime.fromisoformat(value) if name in moments else value for name, value in chosen.items()
        }
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _number(value: int) -> int:
    return max(0, min(value, _MOST_ID))


def _text(text: str) -> Q:
    condition = Q(title__icontains=text)
    digits = text.strip().removeprefix("#")
    if digits.isascii() and digits.isdigit() and int(digits) <= _MOST_ID:
        condition |= Q(pk=int(digits))
    return condition


def _stalled(runs: Any) -> Any:
    passed = round(STALLED_AFTER.total_seconds() * 1000)
    return runs.runnable(DatabaseNow() - passed).filter(created_at__lte=timezone.now() - STALLED_AFTER, held="")
