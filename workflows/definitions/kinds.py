"""The kinds of steps: their outcomes, default routes, access and keys.

The validator refuses by this, the compiler routes by it, and the documentation of keys is made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workflows.definitions.kind_table import COMMON_KEYS, EFFECT_KEYS, FAILED, KINDS, TIMED_OUT, KeyRule, KindRule

__all__ = [
    "COMMON_KEYS",
    "CONTINUE",
    "DONE",
    "EFFECT_KEYS",
    "EXHAUSTED",
    "FAIL",
    "FAILED",
    "FAIL_BY_DEFAULT",
    "FOLLOW_MAIN",
    "KINDS",
    "ONE_TRY_TIMEOUT_MS",
    "PEOPLE_TIMEOUT_MS",
    "RESERVED_TARGETS",
    "SKIPPED",
    "STEP_ATTRIBUTES",
    "TIMED_OUT",
    "KeyRule",
    "KindRule",
    "Outcomes",
    "default_access",
    "default_route",
    "keys_of",
    "kinds_with_key",
    "outcomes_of",
    "spelled_out",
    "workspace_use",
]

#: Targets that are not steps.
CONTINUE = "continue"
DONE = "done"
FAIL = "fail"
RESERVED_TARGETS = (DONE, FAIL, CONTINUE)

#: What expressions may read of a step: `steps.x.output` and the like.
STEP_ATTRIBUTES = (
    "output",
    "outcome",
    "visits",
    "attempts",
    "error",
    "exit_code",
    "items",
    "counts",
    "started_at",
    "finished_at",
)

SKIPPED = "skipped"
EXHAUSTED = "exhausted"

#: Outcomes that the format itself produces and that fail the list of steps unless `next` names them.
FAIL_BY_DEFAULT = frozenset(
    {FAILED, "rejected", "expired", "refused", "blocked", "not_passed", "over_budget", EXHAUSTED}
)
#: Outcomes that follow another one: the main outcome, or ``failed``.
FOLLOW_MAIN = frozenset({SKIPPED, "empty"})

ONE_TRY_TIMEOUT_MS = 600_000
PEOPLE_TIMEOUT_MS = 7 * 86_400_000


def keys_of(kind: str) -> dict[str, KeyRule]:
    """Every key that a step of ``kind`` may have, the common ones first."""
    rule = KINDS[kind]
    return {**COMMON_KEYS, **rule.keys, **(EFFECT_KEYS if rule.effect else {}), **rule.keys}


def kinds_with_key(key: str) -> tuple[str, ...]:
    """Names of the kinds that have ``key``, in the order of the table."""
    return tuple(name for name in KINDS if key in keys_of(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The outcomes of one step as written.

    ``named`` are the ones that the author (or the task function) invented: they must be routed.
    ``all`` lists everything ``next`` may name: main, others, named, failures, then ``skipped`` and ``exhausted``
    where the step can have them.
    """

    main: str | None
    named: tuple[str, ...]
    all: tuple[str, ...]


def outcomes_of(step: Mapping[str, Any], declared: Iterable[str] = ()) -> Outcomes:
    """Outcomes of a step document, written or frozen. ``declared`` are the outcomes of its task function.

    Tolerates keys of a wrong form, since the validator asks about files that are not right yet.
    """
    rule = KINDS[step["kind"]]
    main, others = _usual_outcomes(rule, step)
    named = tuple(dict.fromkeys([*_named_outcomes(rule, step), *declared]))
    conditional = [
        outcome for outcome, key in ((SKIPPED, "only_if"), (EXHAUSTED, "max_visits")) if step.get(key) is not None
    ]
    first = [] if main is None else [main]
    if rule.name == "condition" and "cases" in step:
        listed = [*named, *rule.failures, *conditional]
    else:
        listed = [*first, *(named if rule.name == "question" else ()), *others]
        listed += [*(() if rule.name == "question" else named), *rule.failures, *conditional]
    return Outcomes(main=main, named=named, all=tuple(dict.fromkeys(listed)))


def _usual_outcomes(rule: KindRule, step: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    if rule.name == "wait" and "signal" in step:
        return "received", ("expired",)
    if rule.name == "question" and "choices" in step:
        return None, rule.others
    return rule.main, rule.others


def _named_outcomes(rule: KindRule, step: Mapping[str, Any]) -> list[str]:
    written = step.get(rule.named_in) if rule.named_in else None
    if rule.name == "condition":
        if not isinstance(written, list):
            return []
        return [*_texts(case.get("outcome") for case in written if isinstance(case, Mapping)), "else"]
    if isinstance(written, Mapping):
        return _texts(written)
    if isinstance(written, list):
        return _texts(entry.get("name") if isinstance(entry, Mapping) else entry for entry in written)
    return []


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def default_route(outcome: str, routes: Mapping[str, str], outcomes: Outcomes) -> str | None:
    """Where ``outcome`` goes when `next` (``routes``) does not list it: a target, or None when it must be listed."""
    if outcome in FOLLOW_MAIN:
        return routes.get(outcomes.main or "", CONTINUE)
    if outcome in outcomes.named:
        return None
    if outcome == TIMED_OUT:
        return routes.get(FAILED, FAIL)
    if outcome in FAIL_BY_DEFAULT:
        return FAIL
    return CONTINUE


def default_access(step: Mapping[str, Any]) -> str:
    """``read`` or ``write`` for a step that does not say it: what a crash of its attempt leaves behind."""
    if step["kind"] == "http":
        return "read" if step.get("method", "GET") in ("GET", "HEAD") else "write"
    return KINDS[step["kind"]].access or "read"


def workspace_use(step: Mapping[str, Any]) -> str:
    """How a step uses the run's workspace: none, read, shared or write."""
    written = step.get("workspace")
    if isinstance(written, str):
        return written
    usual = KINDS[step["kind"]].workspace
    return str(step.get("access", default_access(step))) if usual == "access" else usual


def spelled_out(name: str) -> str:
    """A name as a label: ``roll_out`` is "Roll out"."""
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]
