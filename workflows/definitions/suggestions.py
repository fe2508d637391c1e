"""What a misspelled word was probably meant to be: by edit distance, and by words that other tools use."""

from __future__ import annotations

from collections.abc import Iterable

#: Words of other tools and habits, by what is being named. Checked before the spelling.
SYNONYMS: dict[str, dict[str, str]] = {
    "kind": {
        **dict.fromkeys(("script", "bash", "sh", "command", "cmd", "exec", "run", "program", "process"), "shell"),
        **dict.fromkeys(("python", "function", "call", "job", "py", "callable", "action", "celery"), "task"),
        **dict.fromkeys(("request", "rest", "api", "webhook", "curl", "url", "https", "get", "post", "fetch"), "http"),
        **dict.fromkeys(("model", "chat", "gpt", "ai", "prompt", "completion", "generate"), "llm"),
        **dict.fromkeys(("assistant", "bot", "coder"), "agent"),
        **dict.fromkeys(("test", "tests", "check", "checks", "lint", "validate"), "verify"),
        **dict.fromkeys(("set", "var", "vars", "variable", "variables", "let", "update"), "assign"),
        **dict.fromkeys(
            ("if", "switch", "choice", "branch", "case", "cases", "decision", "when", "gateway"), "condition"
        ),
        **dict.fromkeys(("approve", "confirm", "review", "gate", "sign_off", "signoff", "manual"), "approval"),
        **dict.fromkeys(("ask", "input", "form", "human", "user", "survey"), "question"),
        **dict.fromkeys(("sleep", "delay", "timer", "pause", "signal", "event", "until"), "wait"),
        **dict.fromkeys(("foreach", "for_each", "for", "loop", "each", "fan_out", "fanout", "matrix"), "map"),
        **dict.fromkeys(("fork", "concurrent", "branches", "all", "group"), "parallel"),
        **dict.fromkeys(("include", "use", "template", "snippet", "call_block"), "block"),
        **dict.fromkeys(("subworkflow", "sub_workflow", "child", "flow", "pipeline", "subflow"), "workflow"),
        **dict.fromkeys(("queue", "worker", "activity"), "external"),
        **dict.fromkeys(("graph", "lang_graph"), "langgraph"),
        **dict.fromkeys(("stop", "exit", "finish", "return", "terminate", "done", "fail", "succeed"), "end"),
    },
    "field type": {
        **dict.fromkeys(("int", "long", "int32", "int64", "whole"), "integer"),
        **dict.fromkeys(("str", "text", "char", "varchar", "email", "url", "uuid", "password"), "string"),
        **dict.fromkeys(("float", "double", "decimal", "numeric", "real"), "number"),
        **dict.fromkeys(("bool", "flag", "yes/no", "checkbox"), "boolean"),
        **dict.fromkeys(("list", "tuple", "set", "sequence"), "array"),
        **dict.fromkeys(("dict", "map", "mapping", "json", "hash", "record", "struct"), "object"),
        **dict.fromkeys(("day",), "date"),
        **dict.fromkeys(("timestamp", "time", "date-time", "date_time"), "datetime"),
    },
    "step key": {
        **dict.fromkeys(("script", "command", "cmd", "shell", "exec"), "run"),
        **dict.fromkeys(("environment", "envs", "variables"), "env"),
        **dict.fromkeys(("when", "condition"), "only_if"),
        **dict.fromkeys(("name", "label", "display_name"), "title"),
        **dict.fromkeys(("description", "comment", "doc", "notes"), "note"),
        **dict.fromkeys(("goto", "routes", "transitions", "on_success", "on_error", "then"), "next"),
        **dict.fromkeys(("retries", "attempts"), "retry"),
        **dict.fromkeys(("args", "arguments", "params", "parameters", "inputs"), "with"),
        **dict.fromkeys(("items", "list", "in", "foreach"), "over"),
        **dict.fromkeys(("body",), "do"),
        **dict.fromkeys(("parallelism", "max_parallel", "batch"), "concurrency"),
        **dict.fromkeys(("max_iterations", "limit_visits", "max_loops"), "max_visits"),
        **dict.fromkeys(("working_directory", "workdir", "dir"), "cwd"),
        **dict.fromkeys(("question", "message"), "ask"),
        **dict.fromkeys(("duration", "seconds", "delay"), "for"),
        **dict.fromkeys(("function",), "call"),
    },
    "workflow key": {
        **dict.fromkeys(("version",), "format"),
        **dict.fromkeys(("inputs", "parameters", "arguments", "args"), "params"),
        **dict.fromkeys(("variables", "env"), "vars"),
        **dict.fromkeys(("id",), "name"),
        **dict.fromkeys(("on_error", "on_failed", "catch"), "on_failure"),
        **dict.fromkeys(("always", "cleanup", "ensure"), "finally"),
        **dict.fromkeys(("outputs", "result", "return"), "output"),
        **dict.fromkeys(("cron", "schedules"), "schedule"),
        **dict.fromkeys(("label", "labels"), "tags"),
        **dict.fromkeys(("templates", "groups"), "blocks"),
        **dict.fromkeys(("tasks", "stages", "nodes", "actions"), "steps"),
    },
    "field key": {
        **dict.fromkeys(("choices", "options", "values", "allowed"), "enum"),
        **dict.fromkeys(("label", "name"), "title"),
        **dict.fromkeys(("help", "help_text"), "description"),
        **dict.fromkeys(("minimum",), "min"),
        **dict.fromkeys(("maximum",), "max"),
        **dict.fromkeys(("minLength", "min_len"), "min_length"),
        **dict.fromkeys(("maxLength", "max_len"), "max_length"),
        **dict.fromkeys(("regex", "regexp"), "pattern"),
        **dict.fromkeys(("placeholder",), "example"),
        **dict.fromkeys(("secret", "hidden"), "sensitive"),
    },
    "value": {
        **dict.fromkeys(("yes", "on", "True", "y"), "true"),
        **dict.fromkeys(("no", "off", "False", "n"), "false"),
        **dict.fromkeys(("success", "ok", "succeed", "passed", "completed"), "succeeded"),
        **dict.fromkeys(("failure", "fail", "error", "errored"), "failed"),
        **dict.fromkeys(("string", "plain", "raw"), "text"),
        **dict.fromkeys(("readonly", "read_only", "ro"), "read"),
        **dict.fromkeys(("readwrite", "read_write", "rw"), "write"),
        **dict.fromkeys(("first", "one"), "any"),
        **dict.fromkeys(("wait",), "queue"),
        **dict.fromkeys(("drop", "forbid"), "skip"),
    },
    "budget": {
        **dict.fromkeys(("cost", "usd", "dollars", "money", "price"), "cost_usd"),
        **dict.fromkeys(("calls", "requests", "model_calls"), "llm_calls"),
        **dict.fromkeys(("steps", "iterations"), "visits"),
        **dict.fromkeys(("duration", "timeout", "minutes", "hours"), "time"),
        **dict.fromkeys(("errors", "failed"), "failures"),
    },
    "retry error": {
        **dict.fromkeys(("timed_out", "deadline", "timeouts"), "timeout"),
        **dict.fromkeys(("exit_code", "nonzero", "failed", "failure", "exit"), "exit_nonzero"),
        **dict.fromkeys(("crash", "worker_lost", "interrupted"), "crashed"),
        **dict.fromkeys(("connection", "connection_error", "dns"), "network"),
        **dict.fromkeys(("http_error", "status", "http", "5xx", "server_error"), "http_status"),
        **dict.fromkeys(("rate_limit", "too_many_requests", "throttled", "429"), "rate_limited"),
        **dict.fromkeys(("schema", "validation", "invalid"), "invalid_output"),
        **dict.fromkeys(("exception", "error", "python_error"), "task_error"),
    },
    "step attribute": {
        **dict.fromkeys(
            ("result", "results", "value", "stdout", "out", "data", "response", "body", "return", "outputs"), "output"
        ),
        **dict.fromkeys(("status", "state", "conclusion"), "outcome"),
        **dict.fromkeys(("tries", "retries"), "attempts"),
        **dict.fromkeys(("rounds", "iterations", "runs"), "visits"),
        **dict.fromkeys(("exitcode", "returncode", "code", "rc"), "exit_code"),
        **dict.fromkeys(("failure", "exception", "message"), "error"),
        **dict.fromkeys(("start", "started"), "started_at"),
        **dict.fromkeys(("end", "ended_at", "finished", "completed_at"), "finished_at"),
        **dict.fromkeys(("count", "total"), "counts"),
    },
    "outcome": {
        **dict.fromkeys(("success", "succeeded", "done", "passed"), "ok"),
        **dict.fromkeys(("failure", "error", "fail"), "failed"),
        **dict.fromkeys(("timeout",), "timed_out"),
        **dict.fromkeys(("yes", "true"), "then"),
        **dict.fromkeys(("no", "false", "otherwise", "default"), "else"),
        **dict.fromkeys(("accepted", "approve"), "approved"),
        **dict.fromkeys(("denied", "declined", "reject"), "rejected"),
    },
    "name": {
        **dict.fromkeys(("inputs", "parameters", "args", "arguments"), "params"),
        **dict.fromkeys(("variables", "env", "var"), "vars"),
        **dict.fromkeys(("tasks", "jobs", "nodes"), "steps"),
        **dict.fromkeys(("workflow",), "run"),
    },
}

_ABBREVIATED_ZONES = {
    "PST": "America/Los_Angeles",
    "IST": "Asia/Kolkata",
    "BST": "Europe/London",
    "CEST": "Europe/Berlin",
}


def closest(word: str, candidates: Iterable[str], what: str = "") -> str | None:
    """The candidate that ``word`` was probably meant to be, or None.

    ``what`` names the table of synonyms to look in first. A spelling is close when at most a third of the longer word
    has to change; the closest one wins, the first of equals.
    """
    known = list(candidates)
    synonyms = SYNONYMS.get(what, {})
    synonym = synonyms.get(word) or synonyms.get(word.lower())
    if synonym in known:
        return synonym
    found = _closest_spelling(word, known)
    if found is None and synonyms:
        synonym = synonyms.get(_closest_spelling(word, [each for each in synonyms if len(each) > 3]) or "")
        return synonym if synonym in known else None
    return found


def _closest_spelling(word: str, known: list[str]) -> str | None:
    best: tuple[float, str] | None = None
    for candidate in known:
        share = _changed_share(word, candidate)
        if share is not None and (best is None or share < best[0]):
            best = (share, candidate)
    return best[1] if best else None


def did_you_mean(word: str, candidates: Iterable[str], what: str = "") -> str:
    """``Did you mean "…"?``, or "" when nothing is close."""
    found = closest(word, candidates, what)
    return f'Did you mean "{found}"?' if found else ""


def zone_like(word: str, zones: Iterable[str]) -> str | None:
    """The time zone that ``word`` was probably meant to be: by spelling, by its city, by an abbreviation."""
    known = sorted(zones)
    if word.upper() in _ABBREVIATED_ZONES:
        return _ABBREVIATED_ZONES[word.upper()]
    wanted = word.strip().replace(" ", "_").lower()
    for part in (str.lower, lambda zone: zone.lower().rpartition("/")[2]):
        for zone in known:
            if part(zone) == wanted:
                return zone
    by_city = {zone.rpartition("/")[2]: zone for zone in reversed(known)}
    found = closest(word, known)
    if found is None and "/" not in word:
        found = by_city.get(closest(word, by_city) or "")
    return found


def _changed_share(word: str, candidate: str) -> float | None:
    """Part of the longer word that differs; None when it is too much for the two to be the same word."""
    written, meant = word.lower().replace("-", "_"), candidate.lower().replace("-", "_")
    if written == meant:
        return 0.0
    longer = max(len(written), len(meant))
    if _is_shortened(written, meant):
        return 0.4
    allowed = max(1, longer // 3)
    if longer < 3 or abs(len(written) - len(meant)) > allowed:
        return None
    distance = _distance(written, meant, allowed)
    return None if distance > allowed or distance * 2 > longer else distance / longer


def _is_shortened(written: str, meant: str) -> bool:
    """Whether one name is the other with words left out or cut: ``gh_token`` and ``github_token``, ``desc``."""
    short, long = sorted((written, meant), key=len)
    if len(short) < 4:
        return False
    if long.startswith(short) or long.endswith(f"_{short}"):
        return True
    tails = short.rpartition("_")[2], long.rpartition("_")[2]
    return "_" in short and tails[0] == tails[1] and len(tails[0]) >= 3 and short[0] == long[0]


def _distance(left: str, right: str, limit: int) -> int:
    """Edits between two words, two swapped neighbours being one edit; more than ``limit`` is only ``limit + 1``.

    Optimal string alignment, https://doi.org/10.1145/363958.363994.
    """
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, previous, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
