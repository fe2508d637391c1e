"""The ``options`` of a compiled step: the keys of its own kind, with defaults filled in and templates compiled.

One function per kind, so that what a kind can read is in one place. Keys keep the names of the format; a key that was
left out and has no default is None. Keys that take secrets are mappings from a name to a ``Value`` or to
``{"secret": name}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workflows.definitions.durations import parse_duration
from workflows.expressions import Value, compile_value

Options = dict[str, Any]
StepDocument = Mapping[str, Any]
Defaults = Mapping[str, Any]

#: The form of a question that has neither `form` nor `choices`.
ANSWER_FORM: tuple[Mapping[str, Any], ...] = ({"name": "answer", "type": "string", "title": "Answer"},)


def template(step: StepDocument, key: str, default: Any = None) -> Value | None:
    """The compiled value of ``key``; None when it is left out and has no default."""
    if key in step:
        return compile_value(step[key])
    return None if default is None else compile_value(default)


def duration(written: str) -> int | Value:
    """Milliseconds, or the template that will give the text of a duration."""
    value = compile_value(written)
    return parse_duration(written) if value.is_fixed else value


def with_secrets(written: Mapping[str, Any]) -> dict[str, Any]:
    """Compiled entries; a reference to a secret stays ``{"secret": name}``."""
    return {
        name: {"secret": entry["secret"]} if is_secret(entry) else compile_value(entry)
        for name, entry in written.items()
    }


def is_secret(entry: Any) -> bool:
    return isinstance(entry, Mapping) and set(entry) == {"secret"}


def _by_code(named: Mapping[str, Sequence[int]]) -> dict[int, str]:
    return {code: name for name, codes in named.items() for code in codes}


def _milliseconds(step: StepDocument, key: str, default: str | None = None) -> int | None:
    written = step.get(key, default)
    return None if written is None else parse_duration(written)


def _shell(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "run": step.get("run"),
        "argv": template(step, "argv"),
        "env": with_secrets({**defaults.get("env", {}), **step.get("env", {})}),
        "stdin": template(step, "stdin"),
        "cwd": template(step, "cwd"),
        "parse": step.get("parse", "text"),
        "schema": step.get("schema"),
        "exits": _by_code(step.get("exits", {})),
    }


def _task(step: StepDocument, defaults: Defaults) -> Options:
    return {"call": step["call"], "with": template(step, "with", {}), "schema": step.get("schema")}


def _http(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "method": step.get("method", "GET"),
        "url": template(step, "url"),
        "idempotency_header": step.get("idempotency_header", "Idempotency-Key"),
        "query": template(step, "query", {}),
        "headers": with_secrets(step.get("headers", {})),
        "auth": step.get("auth"),
        "json": template(step, "json"),
        "body": template(step, "body"),
        "statuses": _by_code(step.get("statuses", {})),
        "parse": step.get("parse", "json"),
        "schema": step.get("schema"),
    }


def _llm(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "model": step.get("model", defaults.get("model")),
        "system": template(step, "system"),
        "prompt": template(step, "prompt"),
        "context": template(step, "context", {}),
        "schema": step.get("schema"),
        "max_tokens": step.get("max_tokens", 1024),
        "temperature": step.get("temperature", 0),
    }


def _agent(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "agent": step.get("agent", defaults.get("agent")),
        "prompt": template(step, "prompt"),
        "context": template(step, "context", {}),
        "session": step.get("session", "keep"),
        "schema": step.get("schema"),
    }


def _verify(step: StepDocument, defaults: Defaults) -> Options:
    checks = tuple(
        {
            "name": check["name"],
            "run": check["run"],
            "env": with_secrets(check.get("env", {})),
            "timeout": duration(check["timeout"]) if "timeout" in check else None,
        }
        for check in step["checks"]
    )
    return {"checks": checks, "subject": template(step, "subject", "workspace")}


def _assign(step: StepDocument, defaults: Defaults) -> Options:
    return {"set": {name: compile_value(value) for name, value in step["set"].items()}}


def _condition(step: StepDocument, defaults: Defaults) -> Options:
    cases = tuple((compile_value(case["when"]), case["outcome"]) for case in step.get("cases", ()))
    return {"if": template(step, "if"), "cases": cases}


def _shown(step: StepDocument) -> tuple[Mapping[str, Any], ...]:
    return tuple({"name": entry["name"], "value": compile_value(entry["value"])} for entry in step.get("show", ()))


def _approval(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "ask": template(step, "ask"),
        "show": _shown(step),
        "by": template(step, "by"),
        "quorum": step.get("quorum", 1),
        "not_by": template(step, "not_by", []),
        "form": tuple(step.get("form", ())),
        "remind_ms": _milliseconds(step, "remind"),
    }


def _question(step: StepDocument, defaults: Defaults) -> Options:
    usual_form = () if "choices" in step else ANSWER_FORM
    return {
        "ask": template(step, "ask"),
        "show": _shown(step),
        "to": template(step, "to"),
        "choices": tuple(step.get("choices", ())),
        "form": tuple(step.get("form", usual_form)),
        "remind_ms": _milliseconds(step, "remind"),
    }


def _wait(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "for": template(step, "for"),
        "until": template(step, "until"),
        "signal": template(step, "signal"),
        "match": template(step, "match"),
    }


def join_rule(written: Any) -> Mapping[str, Any]:
    """``{"rule": "all" | "any" | "settled"}``, or ``at_least`` with ``count`` or ``percent`` (a number)."""
    if not isinstance(written, Mapping):
        return {"rule": written}
    least = written["at_least"]
    if isinstance(least, str):
        number = float(least.strip().removesuffix("%"))
        return {"rule": "at_least", ("percent" if "%" in least else "count"): number}
    return {"rule": "at_least", "count": least}


def _map(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "over": template(step, "over"),
        "as": step.get("as", "item"),
        "key": template(step, "key"),
        "concurrency": step.get("concurrency", 4),
        "max_items": step.get("max_items", 1000),
        "use": step.get("use"),
        "with": template(step, "with", {}),
        "collect": template(step, "collect"),
        "join": join_rule(step.get("join", "all")),
        "budget": step.get("budget"),
    }


def _parallel(step: StepDocument, defaults: Defaults) -> Options:
    return {"join": join_rule(step.get("join", "all"))}


def _block(step: StepDocument, defaults: Defaults) -> Options:
    return {"use": step["use"], "with": template(step, "with", {})}


def _workflow(step: StepDocument, defaults: Defaults) -> Options:
    return {"ref": step["ref"], "with": template(step, "with", {}), "detach": step.get("detach", False)}


def _external(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "queue": step["queue"],
        "input": template(step, "input"),
        "outcomes": tuple(step.get("outcomes", ())),
        "schema": step.get("schema"),
        "lease_ms": _milliseconds(step, "lease", "1m"),
    }


def _langgraph(step: StepDocument, defaults: Defaults) -> Options:
    return {"graph": step["graph"], "input": template(step, "input", {}), "collect": template(step, "collect")}


def _end(step: StepDocument, defaults: Defaults) -> Options:
    return {
        "status": step["status"],
        "reason": template(step, "reason"),
        "output": template(step, "output"),
        "requires": tuple(step.get("requires", ())),
    }


OPTIONS: dict[str, Callable[[StepDocument, Defaults], Options]] = {
    "shell": _shell,
    "task": _task,
    "http": _http,
    "llm": _llm,
    "agent": _agent,
    "verify": _verify,
    "assign": _assign,
    "condition": _condition,
    "approval": _approval,
    "question": _question,
    "wait": _wait,
    "map": _map,
    "parallel": _parallel,
    "block": _block,
    "workflow": _workflow,
    "external": _external,
    "langgraph": _langgraph,
    "end": _end,
}
