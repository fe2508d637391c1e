"""Which payloads are named where: by columns, and inside of the JSON of histories, endings and decisions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from django.db.models import Model, Q

from workflows.models import Attempt, ExternalOffer, Fanout, Interrupt, RowVersion, Run, Scope, Visit, Vote

#: Columns that hold the digest of a payload.
DIGEST_COLUMNS: tuple[tuple[type[Model], tuple[str, ...]], ...] = (
    (Run, ("params_digest", "output_digest")),
    (Visit, ("output_digest", "detail_digest")),
    (Scope, ("output_digest", "input_digest")),
    (Attempt, ("output_digest", "late_output_digest", "log_digest")),
    (ExternalOffer, ("input_digest", "output_digest")),
    (Fanout, ("items_digest",)),
    (Interrupt, ("shown_digest",)),
    (Vote, ("shown_digest",)),
)
#: JSON that may hold digests: former outputs in history (``closing`` is JSON inside of JSON there), the output of a run
#: that closes, what a fork replaced, what a person entered.
_TEXTS: tuple[tuple[type[Model], str, Q], ...] = (
    (RowVersion, "row", Q(row__contains='_digest":"') | Q(row__contains='output\\":\\"')),
    (Run, "closing", Q(closing__contains='"output"')),
    (Run, "fork_request", ~Q(fork_request="")),
    (Attempt, "authorization", Q(authorization__contains='"output"')),
)
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_ROWS_AT_ONCE = 500
#: SQLite refuses a statement with more parameters than 32 766.
_NAMES_AT_ONCE = 5_000


def digests_of_runs(runs: Collection[int]) -> frozenset[str]:
    """Every payload that these runs name, their history included."""
    found: set[str] = set()
    for model, columns in DIGEST_COLUMNS:
        rows = model._default_manager.filter(**_of_runs(model, runs)).order_by()
        for values in rows.values_list(*columns).iterator(chunk_size=_ROWS_AT_ONCE):
            found.update(value for value in values if value)
    for model, column, condition in _TEXTS:
        found |= set(_digests_in(model._default_manager.filter(condition, **_of_runs(model, runs)), column))
    return frozenset(found)


def _of_runs(model: type[Model], runs: Collection[int]) -> dict[str, list[int]]:
    return {"pk__in" if model is Run else "run_id__in": list(runs)}


def referenced(digests: Collection[str]) -> set[str]:
    """Those of these payloads that something names. Reads every table once for each few thousand of them."""
    wanted = set(digests)
    found: set[str] = set()
    for model, column, condition in _TEXTS:
        found.update(name for name in _digests_in(model._default_manager.filter(condition), column) if name in wanted)
    for names in _parts(sorted(wanted - found)):
        for model, columns in DIGEST_COLUMNS:
            for column in columns:
                rows = model._default_manager.filter(**{f"{column}__in": names}).order_by()
                found.update(rows.values_list(column, flat=True).distinct())
    return found


def _digests_in(rows: object, column: str) -> Iterator[str]:
    for text in rows.order_by().values_list(column, flat=True).iterator(chunk_size=_ROWS_AT_ONCE):  # type: ignore[attr-defined]
        yield from _DIGEST.findall(text)


def _parts(names: list[str]) -> Iterable[list[str]]:
    return (names[start : start + _NAMES_AT_ONCE] for start in range(0, len(names), _NAMES_AT_ONCE))
