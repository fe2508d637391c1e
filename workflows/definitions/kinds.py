"""The kinds of steps, once: outcomes, failures, defaults and keys of each (FORMAT 2.2 and 2.3).

The validator refuses by this table, the compiler routes by it, and the documentation of keys is made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Targets that are not steps.
CONTINUE = "continue"
DONE = "done"
FAIL = "fail"
RESERVED_TARGETS = (DONE, FAIL, CONTINUE)

SKIPPED = "skipped"
EXHAUSTED = "exhausted"
TIMED_OUT = "timed_out"
FAILED = "failed"

#: Outcomes that the format itself produces and that fail the list of steps unless `next` names them.
FAIL_BY_DEFAULT = frozenset(
    {FAILED, "rejected", "expired", "refused", "blocked", "not_passed", "over_budget", EXHAUSTED}
)
#: Outcomes that follow another one: the main outcome, or ``failed``.
FOLLOW_MAIN = frozenset({SKIPPED, "empty"})

ONE_TRY_TIMEOUT_MS = 600_000
PEOPLE_TIMEOUT_MS = 7 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """One key of a kind.

    ``type`` is the word of FORMAT 2.3 (duration, text, fixed text, mapping, steps, …); ``values`` are the allowed words;
    ``least`` and ``most`` bound a whole number; ``expressions`` says whether ``${ }`` is evaluated in it.
    """

    name: str
    type: str
    expressions: bool = False
    required: bool = False
    values: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """One kind. ``main`` None: the kind has no main outcome. ``one_of``: exactly one of these keys must be there.

    ``timeout`` says what the key means: ``attempt`` (default 10 minutes), ``people`` (default 7 days, outcome
    ``expired``), ``whole`` (no default) or "" for kinds without one.
    """

    name: str
    does: str
    main: str | None
    others: tuple[str, ...] = ()
    failures: tuple[str, ...] = (FAILED, TIMED_OUT)
    named_in: str | None = None
    access: str | None = None
    workspace: str = "none"
    retry: bool = False
    default_retry: bool = False
    timeout: str = ""
    effect: bool = False
    one_of: tuple[str, ...] = ()
    keys: Mapping[str, KeyRule] = field(default_factory=dict)

    @property
    def required_keys(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in self.keys.values() if rule.required)


def _key(name: str, kind_of_value: str, *, expressions: bool = False, required: bool = False, **more: Any) -> KeyRule:
    return KeyRule(name=name, type=kind_of_value, expressions=expressions, required=required, **more)


def _keys(*rules: KeyRule) -> dict[str, KeyRule]:
    return {rule.name: rule for rule in rules}


#: Keys of every step.
COMMON_KEYS = _keys(
    _key("id", "name", required=True),
    _key("kind", "kind", required=True),
    _key("title", "text", expressions=True),
    _key("note", "fixed text"),
    _key("only_if", "true/false", expressions=True),
    _key("next", "target or mapping"),
    _key("max_visits", "whole number", least=1, most=1000),
    _key("sensitive", "true/false"),
)
#: Keys of the kinds whose steps have attempts with an effect in the outside world.
EFFECT_KEYS = _keys(
    _key("access", "choice", values=("read", "write")),
    _key("workspace", "choice", values=("none", "read", "shared", "write")),
    _key("idempotent", "true/false"),
)
_TIMEOUT = _key("timeout", "duration", expressions=True)
_RETRY = _key("retry", "number, policy, list")
_LIMIT = _key("limit", "mapping")
_SCHEMA = _key("schema", "JSON Schema")
_WITH = _key("with", "mapping", expressions=True)
_TRY = (_TIMEOUT, _RETRY, _LIMIT)
_JOIN = _key("join", "rule")

_RULES = (
    KindRule(
        name="shell", does="runs a script or program", main="ok", named_in="exits", access="write", workspace="shared",
        retry=True, default_retry=True, timeout="attempt", effect=True, one_of=("run", "argv"),
        keys=_keys(
            *_TRY,
            _key("run", "script"),
            _key("argv", "list", expressions=True),
            _key("env", "mapping, secrets allowed", expressions=True),
            _key("stdin", "any value", expressions=True),
            _key("cwd", "text", expressions=True),
            _key("parse", "choice", values=("text", "json", "lines", "none")),
            _SCHEMA,
            _key("exits", "name: [codes]"),
        ),
    ),
    KindRule(
        name="task", does="calls a registered Python function", main="ok", access="write", retry=True,
        default_retry=True, timeout="attempt", effect=True,
        keys=_keys(*_TRY, _key("call", "fixed text", required=True), _WITH, _SCHEMA),
    ),
    KindRule(
        name="http", does="one HTTP request", main="ok", named_in="statuses", access="write", retry=True,
        default_retry=True, timeout="attempt", effect=True,
        keys=_keys(
            *_TRY,
            _key("method", "choice", values=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")),
            _key("url", "text", expressions=True, required=True),
            _key("idempotency_header", "fixed text"),
            _key("query", "mapping", expressions=True),
            _key("headers", "mapping, secrets allowed", expressions=True),
            _key("auth", "secret"),
            _key("json", "any value", expressions=True),
            _key("body", "text", expressions=True),
            _key("statuses", "name: [codes]"),
            _key("parse", "choice", values=("json", "text", "none")),
            _SCHEMA,
        ),
    ),
    KindRule(
        name="llm", does="one call of a language model", main="ok", others=("refused", "over_budget"), access="read",
        retry=True, default_retry=True, timeout="attempt", effect=True,
        keys=_keys(
            *_TRY,
            _key("model", "fixed text"),
            _key("system", "text", expressions=True),
            _key("prompt", "text", expressions=True, required=True),
            _key("context", "mapping", expressions=True),
            _SCHEMA,
            _key("max_tokens", "whole number", least=1, most=200_000),
            _key("temperature", "number"),
        ),
    ),
    KindRule(
        name="agent", does="an agent with tools in the run's workspace", main="ok", others=("blocked", "over_budget"),
        access="read", workspace="access", retry=True, default_retry=True, timeout="attempt", effect=True,
        keys=_keys(
            *_TRY,
            _key("agent", "fixed text"),
            _key("prompt", "text", expressions=True, required=True),
            _key("context", "mapping", expressions=True),
            _key("access", "choice", values=("read", "write")),
            _key("session", "choice", values=("keep", "fresh")),
            _SCHEMA,
        ),
    ),
    KindRule(
        name="verify", does="runs checks and leaves a receipt", main="passed", others=("not_passed",), access="read",
        workspace="read", timeout="attempt", effect=True,
        keys=_keys(
            _TIMEOUT, _LIMIT, _key("checks", "list", required=True), _key("subject", "text", expressions=True)
        ),
    ),
    KindRule(
        name="assign", does="sets variables", main="ok", failures=(FAILED,),
        keys=_keys(_key("set", "mapping", expressions=True, required=True)),
    ),
    KindRule(
        name="condition", does="chooses a route", main=None, others=("then", "else"), failures=(FAILED,),
        named_in="cases", one_of=("if", "cases"),
        keys=_keys(_key("if", "true/false", expressions=True), _key("cases", "list", expressions=True)),
    ),
    KindRule(
        name="approval", does="asks for a decision", main="approved", others=("rejected", "expired"),
        failures=(FAILED,), timeout="people",
        keys=_keys(
            _TIMEOUT,
            _key("remind", "duration"),
            _key("ask", "text", expressions=True, required=True),
            _key("show", "mapping", expressions=True),
            _key("by", "people", expressions=True),
            _key("quorum", "whole number", least=1, most=20),
            _key("not_by", "list", expressions=True),
            _key("form", "fields"),
        ),
    ),
    KindRule(
        name="question", does="asks for data or a choice", main="answered", others=("expired",), failures=(FAILED,),
        named_in="choices", timeout="people",
        keys=_keys(
            _TIMEOUT,
            _key("remind", "duration"),
            _key("ask", "text", expressions=True, required=True),
            _key("show", "mapping", expressions=True),
            _key("to", "people", expressions=True),
            _key("choices", "list or name: label"),
            _key("form", "fields"),
        ),
    ),
    KindRule(
        name="wait", does="timer, point in time or signal", main="elapsed", failures=(FAILED,), timeout="people",
        one_of=("for", "until", "signal"),
        keys=_keys(
            _key("for", "duration", expressions=True),
            _key("until", "any value", expressions=True),
            _key("signal", "text", expressions=True),
            _key("match", "true/false", expressions=True),
            _TIMEOUT,
        ),
    ),
    KindRule(
        name="map", does="a body for every item of a list", main="ok", others=("empty", "over_budget"),
        timeout="whole", one_of=("do", "use"),
        keys=_keys(
            _key("over", "any value", expressions=True, required=True),
            _key("as", "name"),
            _key("key", "any value", expressions=True),
            _key("concurrency", "whole number", least=1, most=64),
            _key("max_items", "whole number", least=1, most=10_000),
            _key("vars", "variables", expressions=True),
            _key("do", "steps"),
            _key("use", "fixed text"),
            _WITH,
            _key("collect", "any value", expressions=True),
            _JOIN,
            _key("budget", "budget"),
            _TIMEOUT,
        ),
    ),
    KindRule(
        name="parallel", does="fixed branches side by side", main="ok", others=("over_budget",), timeout="whole",
        keys=_keys(_key("branches", "name: steps", required=True), _JOIN, _TIMEOUT),
    ),
    KindRule(
        name="block", does="steps defined once in this file", main="ok", timeout="whole",
        keys=_keys(_key("use", "fixed text", required=True), _WITH, _TIMEOUT),
    ),
    KindRule(
        name="workflow", does="another workflow", main="ok", retry=True, timeout="whole",
        keys=_keys(_TIMEOUT, _RETRY, _key("ref", "fixed text", required=True), _WITH, _key("detach", "true/false")),
    ),
    KindRule(
        name="external", does="work that another program reserves and finishes through the API", main="ok",
        named_in="outcomes", access="write", retry=True, timeout="whole", effect=True,
        keys=_keys(
            *_TRY,
            _key("queue", "name", required=True),
            _key("input", "any value", expressions=True),
            _key("outcomes", "list of names"),
            _SCHEMA,
            _key("lease", "duration"),
        ),
    ),
    KindRule(
        name="langgraph", does="runs a registered LangGraph graph with durable checkpoints", main="ok",
        others=("over_budget",), access="write", retry=True, timeout="whole", effect=True,
        keys=_keys(
            _TIMEOUT,
            _RETRY,
            _key("graph", "fixed text", required=True),
            _key("input", "mapping", expressions=True),
            _key("collect", "any value", expressions=True),
        ),
    ),
    KindRule(
        name="end", does="ends the run (or the body)", main=None, failures=(),
        keys=_keys(
            _key("status", "choice", required=True, values=("succeeded", "failed")),
            _key("reason", "text", expressions=True),
            _key("output", "any value", expressions=True),
            _key("requires", "list"),
        ),
    ),
)

KINDS: dict[str, KindRule] = {rule.name: rule for rule in _RULES}


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
