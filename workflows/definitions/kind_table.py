"""The table of the kinds of steps: outcomes, failures, defaults and keys of each (docs/format.md).

Data only; ``kinds`` holds what is derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FAILED = "failed"
TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """One key of a kind.

    ``type`` is the word of docs/format.md (duration, text, mapping, steps, …); ``values`` are the allowed words;
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
        name="shell",
        does="runs a script or program",
        main="ok",
        named_in="exits",
        access="write",
        workspace="shared",
        retry=True,
        default_retry=True,
        timeout="attempt",
        effect=True,
        one_of=("run", "argv"),
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
        name="task",
        does="calls a registered Python function",
        main="ok",
        access="write",
        retry=True,
        default_retry=True,
        timeout="attempt",
        effect=True,
        keys=_keys(*_TRY, _key("call", "fixed text", required=True), _WITH, _SCHEMA),
    ),
    KindRule(
        name="http",
        does="one HTTP request",
        main="ok",
        named_in="statuses",
        access="write",
        retry=True,
        default_retry=True,
        timeout="attempt",
        effect=True,
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
        name="llm",
        does="one call of a language model",
        main="ok",
        others=("refused", "over_budget"),
        access="read",
        retry=True,
        default_retry=True,
        timeout="attempt",
        effect=True,
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
        name="agent",
        does="an agent with tools in the run's workspace",
        main="ok",
        others=("blocked", "over_budget"),
        access="read",
        workspace="access",
        retry=True,
        default_retry=True,
        timeout="attempt",
        effect=True,
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
        name="verify",
        does="runs checks and leaves a receipt",
        main="passed",
        others=("not_passed",),
        access="read",
        workspace="read",
        timeout="attempt",
        effect=True,
        keys=_keys(
            _TIMEOUT,
            _LIMIT,
            _key("checks", "list", expressions=True, required=True),
            _key("subject", "text", expressions=True),
        ),
    ),
    KindRule(
        name="assign",
        does="sets variables",
        main="ok",
        failures=(FAILED,),
        keys=_keys(_key("set", "mapping", expressions=True, required=True)),
    ),
    KindRule(
        name="condition",
        does="chooses a route",
        main=None,
        others=("then", "else"),
        failures=(FAILED,),
        named_in="cases",
        one_of=("if", "cases"),
        keys=_keys(_key("if", "true/false", expressions=True), _key("cases", "list", expressions=True)),
    ),
    KindRule(
        name="approval",
        does="asks for a decision",
        main="approved",
        others=("rejected", "expired"),
        failures=(FAILED,),
        timeout="people",
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
        name="question",
        does="asks for data or a choice",
        main="answered",
        others=("expired",),
        failures=(FAILED,),
        named_in="choices",
        timeout="people",
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
        name="wait",
        does="timer, point in time or signal",
        main="elapsed",
        failures=(FAILED,),
        timeout="people",
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
        name="map",
        does="a body for every item of a list",
        main="ok",
        others=("empty", "over_budget"),
        timeout="whole",
        one_of=("do", "use"),
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
        name="parallel",
        does="fixed branches side by side",
        main="ok",
        others=("over_budget",),
        timeout="whole",
        keys=_keys(_key("branches", "name: steps", required=True), _JOIN, _TIMEOUT),
    ),
    KindRule(
        name="block",
        does="steps defined once in this file",
        main="ok",
        timeout="whole",
        keys=_keys(_key("use", "fixed text", required=True), _WITH, _TIMEOUT),
    ),
    KindRule(
        name="workflow",
        does="another workflow",
        main="ok",
        retry=True,
        timeout="whole",
        keys=_keys(_TIMEOUT, _RETRY, _key("ref", "fixed text", required=True), _WITH, _key("detach", "true/false")),
    ),
    KindRule(
        name="external",
        does="work that another program reserves and finishes through the API",
        main="ok",
        named_in="outcomes",
        access="write",
        retry=True,
        timeout="whole",
        effect=True,
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
        name="langgraph",
        does="runs a registered LangGraph graph with durable checkpoints",
        main="ok",
        others=("over_budget",),
        access="write",
        retry=True,
        timeout="whole",
        effect=True,
        keys=_keys(
            _TIMEOUT,
            _RETRY,
            _key("graph", "fixed text", required=True),
            _key("input", "mapping", expressions=True),
            _key("collect", "any value", expressions=True),
        ),
    ),
    KindRule(
        name="end",
        does="ends the run (or the body)",
        main=None,
        failures=(),
        keys=_keys(
            _key("status", "choice", required=True, values=("succeeded", "failed")),
            _key("reason", "text", expressions=True),
            _key("output", "any value", expressions=True),
            _key("requires", "list"),
        ),
    ),
)

KINDS: dict[str, KindRule] = {rule.name: rule for rule in _RULES}
