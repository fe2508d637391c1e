"""Tables of the pages that are made from the code, between ``<!-- table: NAME -->`` and ``<!-- end -->``.

``python -m tests.docs`` writes them anew; a test compares them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.core.management import load_command_class

from tests.docs import promises, samples
from tests.processes import PROJECT
from workflows.definitions.kind_table import COMMON_KEYS, EFFECT_KEYS, KINDS, KeyRule
from workflows.definitions.schema import workflow_schema
from workflows.errors import FAILURES, REFUSALS, ExitCode
from workflows.problems import PROBLEMS
from workflows.steps import KINDS as RUNNING_KINDS

MARK = re.compile(r"(<!-- table: ([A-Za-z0-9_ -]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
#: Mappings inside of a file, by the words of the pages.
PARTS = {
    "param": "FieldModel",
    "defaults": "Defaults",
    "budget": "Budget",
    "concurrency": "Concurrency",
    "schedule": "ScheduleEntry",
    "blocks": "BlockModel",
    "retry": "Policy",
    "limit": "Limit",
    "checks": "Check",
}
COMMANDS = (
    "run_workflow",
    "run_worker",
    "serve",
    "up",
    "workflows",
    "schedules",
    "workers",
    "runs",
    "external",
    "check_ledger",
    "prune_runs",
    "notifications",
    "api_keys",
)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# ---- errors ----------------------------------------------------------------------------------------------------------


def problems(prefix: str) -> str:
    shown = samples.problems()
    rows = []
    for code, when in PROBLEMS.items():
        if code.startswith(tuple(prefix.split())):
            sample = shown.get(code)
            said = [_literal(sample.message), _literal(sample.hint)] if sample else ["", ""]
            rows.append([f"`{code}`", when, *said])
    return table(["code", "when", "for example", "hint"], rows)


def refusals() -> str:
    rows = (
        [
            f"`{code}`",
            _placeholders(rule.sentence),
            _placeholders(rule.hint),
            str(rule.http_status),
            str(rule.exit_code),
        ]
        for code, rule in REFUSALS.items()
    )
    return table(["code", "sentence", "hint", "HTTP", "exit code"], rows)


def _placeholders(text: str) -> str:
    """What is filled in stands in italics, inside of code in capitals."""
    parts = text.split("`")
    parts[0::2] = [re.sub(r"\{(\w+)\}", r"*\1*", part) for part in parts[0::2]]
    parts[1::2] = [re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), part) for part in parts[1::2]]
    return "`".join(parts)


def _literal(text: str) -> str:
    """Text that Markdown shows as it is."""
    parts = text.split("`")
    parts[0::2] = [re.sub(r"([\\*_<\[])", r"\\\1", part) for part in parts[0::2]]
    return "`".join(parts)


def failures() -> str:
    rows = (
        [f"`{code}`", _yes(rule.uncertain), _yes(rule.retryable), f"`{rule.outcome}`"]
        for code, rule in FAILURES.items()
    )
    return table(["code", "uncertain", "may be retried", "outcome"], rows)


def _yes(value: bool) -> str:
    return "yes" if value else ""


def exit_codes() -> str:
    words = {
        "SUCCEEDED": "the run succeeded, the command did what it was asked",
        "FAILED": "the run failed; an operation was refused",
        "USAGE": "the command, a parameter or a file cannot be used; nothing was started",
        "PARKED_FOR_PEOPLE": "the run is paused: people have to answer, or an operator holds it",
        "CANCELLED": "the run was cancelled or abandoned",
        "BLOCKED": "the run is blocked: an operator has to decide",
        "LEFT_RUNNING": "the run goes on later: it waits, or was handed back (`--timeout`, `--max-steps`, Ctrl-C)",
        "HELD": "another worker drives the run, or the database is busy: try again later",
    }
    codes = {name: value for name, value in vars(ExitCode).items() if name.isupper()}
    return table(["exit code", "meaning"], ([str(code), words[name]] for name, code in codes.items()))


# ---- format ----------------------------------------------------------------------------------------------------------


def kinds() -> str:
    rows = []
    for rule in sorted(KINDS.values(), key=lambda rule: rule.name not in RUNNING_KINDS):
        others = [f"`{name}`" for name in rule.others]
        if rule.name == "wait":
            others = ["with `signal`: `received` (main) and `expired`"]
        if rule.name == "task":
            others = ["those that the function declares"]
        if rule.named_in:
            others.append(f"names in `{rule.named_in}`")
        main = f"`{rule.main}`" if rule.main else "–"
        runs = "yes" if rule.name in RUNNING_KINDS else "not yet"
        failed = ", ".join(f"`{name}`" for name in rule.failures)
        rows.append([f"`{rule.name}`", rule.does, main, ", ".join(others), failed, runs])
    return table(["kind", "does", "main outcome", "other outcomes", "failures", "runs"], rows)


def keys(kind: str) -> str:
    schema = workflow_schema()
    if kind == "top":
        return _described(schema["properties"], schema.get("required", ()), {})
    if kind == "common":
        model = _step(schema, "assign")
        shared = {name: model["properties"][name] for name in COMMON_KEYS}
        shared["kind"] = {"description": "What the step does. It decides about the other keys and the outcomes."}
        return _described(shared, model["required"], COMMON_KEYS)
    if kind == "effect":
        model = _step(schema, "shell")
        return _described({name: model["properties"][name] for name in EFFECT_KEYS}, (), EFFECT_KEYS)
    if kind in PARTS:
        part = schema["definitions"][PARTS[kind]]
        return _described(part["properties"], part.get("required", ()), {})
    model = _step(schema, kind)
    own = {name: model["properties"][name] for name in KINDS[kind].keys}
    return _described(own, model["required"], KINDS[kind].keys)


def _step(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        model
        for model in schema["definitions"].values()
        if model.get("properties", {}).get("kind", {}).get("const") == kind
    )
    return found


def _described(properties: dict[str, Any], required: Iterable[str], rules: Any) -> str:
    rows = []
    for name, described in properties.items():
        rule = rules.get(name)
        text, _, default = described.get("description", "").partition(" Default: ")
        text = text.removesuffix(" May hold expressions.").removesuffix(" May be an expression.")
        if name in required:
            default = "required"
        if text.startswith("Default: "):
            text, default = "", text.removeprefix("Default: ")
        rows.append([f"`{name}`", _type(rule), default.rstrip("."), _braces(rule, described), text])
    heads = ["key", "type", "default", "`${ }`", "meaning"]
    if not rules:
        rows = [[row[0], row[2], row[4]] for row in rows]
        heads = ["key", "default", "meaning"]
    return table(heads, rows)


def _type(rule: KeyRule | None) -> str:
    if rule is None:
        return ""
    if rule.values:
        return ", ".join(f"`{value}`" for value in rule.values)
    return f"{rule.type}, {rule.least}–{rule.most}" if rule.least is not None else rule.type


def _braces(rule: KeyRule | None, described: dict[str, Any]) -> str:
    return "yes" if rule is not None and rule.expressions else ""


# ---- commands --------------------------------------------------------------------------------------------------------


def command(words: str) -> str:
    """Arguments and options of a command, or of an action of it."""
    name, _, action = words.partition(" ")
    parser: argparse.ArgumentParser = load_command_class("workflows", name).create_parser("manage.py", name)
    if action:
        parser = actions_of(parser)[action]
    rows = [[_spelled(entry), entry.help or ""] for entry in own_arguments(parser)]
    return table(["argument", "meaning"], rows)


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for entry in parser._actions:
        if isinstance(entry, argparse._SubParsersAction):
            return dict(entry.choices)
    return {}


def own_arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Without those that Django gives to every command."""
    django = {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color"}
    for entry in parser._actions:
        is_hidden = entry.help == argparse.SUPPRESS or entry.dest in django | {"skip_checks"}
        if not is_hidden and not isinstance(entry, argparse._SubParsersAction):
            yield entry


def _spelled(entry: argparse.Action) -> str:
    metavar = entry.metavar if isinstance(entry.metavar, str) else None
    if entry.choices is not None:
        metavar = "|".join(str(choice) for choice in entry.choices)
    if not entry.option_strings:
        repeated = "…" if entry.nargs in ("+", "*") else ""
        word = f"{metavar or entry.dest}{repeated}"
        return f"`[{word}]`" if entry.nargs in ("?", "*") else f"`{word}`"
    value = "" if entry.nargs == 0 else f" {metavar or entry.dest.upper()}"
    return ", ".join(f"`{option}{value}`" for option in entry.option_strings)


# ---- pages -----------------------------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[str], str]] = {
    "problems": problems,
    "refusals": lambda _: refusals(),
    "failures": lambda _: failures(),
    "exit_codes": lambda _: exit_codes(),
    "kinds": lambda _: kinds(),
    "keys": keys,
    "command": command,
    "promises": lambda group: table(["number", "promise", "tests"], promises.rows(group)),
}


def made(name: str) -> str:
    """The table of a mark such as ``keys shell``."""
    first, _, rest = name.partition(" ")
    return TABLES[first](rest)


def with_tables(text: str) -> str:
    """A page with its tables as they have to be."""
    return MARK.sub(lambda match: f"{match[1]}{made(match[2])}{match[4]}", text)


def error_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((PROJECT / "tests/data/errors/cases.json").read_text(encoding="utf-8"))
    return cases
