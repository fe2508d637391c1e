"""Secrets and scripts: values that must not be written into texts (E214, E216, E217)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workflows.definitions.models.values import is_name
from workflows.definitions.suggestions import did_you_mean
from workflows.definitions.validation.places import Place
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.tree import Tree
from workflows.definitions.wording import cut, sentence
from workflows.expressions.template import Hole, NotClosed, split

_OUR_NAMES = r"params|vars|steps|run|item|index|secrets|signal"
#: What a shell never means by ``${``: a space after the brace, or one of our names with a dot or bracket behind it.
_EXPRESSION_IN_SCRIPT = re.compile(rf"(?<!\$)\$\{{(?=\s|(?:{_OUR_NAMES})\s*[.\[])")

#: Keys whose value is a mapping of the author's own names, so that ``secret`` may be one of them.
_OWN_NAMES = frozenset({"with", "context", "query", "show", "set", "input", "vars"})


def check_scripts(tree: Tree, report: Report) -> None:
    """Report E214 for every script that holds an expression."""
    for step in tree.steps:
        for path, script in _scripts(step.kind, step.raw, step.path):
            found = _EXPRESSION_IN_SCRIPT.search(script) if isinstance(script, str) else None
            if found is not None:
                expression = _expression_at(script, found.start())
                report.add(
                    "E214",
                    path,
                    f'"run" is passed to the shell as it is, but it contains the expression "{cut(expression)}".',
                    'Put the value in `env:` and use it as "$NAME" in the script. This also prevents shell injection.',
                )


def _scripts(kind: str | None, step: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    if kind == "shell":
        yield (*path, "run"), step.get("run")
    checks = step.get("checks") if kind == "verify" else None
    for index, check in enumerate(checks if isinstance(checks, list) else []):
        if isinstance(check, Mapping):
            yield (*path, "checks", index, "run"), check.get("run")


def _expression_at(script: str, start: int) -> str:
    try:
        parts = split(script[start:])
    except NotClosed:
        return script[start:].partition("\n")[0]
    first = parts[0]
    if isinstance(first, Hole):
        end = script.find("}", start + first.offset + len(first.source))
        return script[start : end + 1]
    return script[start:].partition("\n")[0]


def check_secrets(document: Mapping[str, Any], tree: Tree, places: Iterable[Place], report: Report) -> None:
    """Report E216 and E217 for every use of a secret."""
    declared = [name for name in _list(document.get("secrets")) if isinstance(name, str)]
    for place in places:
        for path, name, is_member in _uses(place):
            if place.takes_secrets and is_member:
                _check_declared(name, (*path, "secret"), declared, report)
            else:
                _refuse_place(place, path, report)
    for step in tree.steps:
        auth = step.raw.get("auth") if step.kind == "http" else None
        if isinstance(auth, Mapping) and isinstance(auth.get("secret"), str):
            _check_declared(auth["secret"], (*step.path, "auth", "secret"), declared, report)


def _uses(place: Place) -> Iterator[tuple[Path, str, bool]]:
    """Secrets in a value: path, name, and whether it is a direct member of the value."""
    waiting: list[tuple[Path, Any]] = [(place.path, place.value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            own_names = path == place.path and (place.key in _OWN_NAMES or place.takes_secrets)
            name = value.get("secret")
            if set(value) == {"secret"} and isinstance(name, str) and not own_names and "${" not in name:
                yield path, name, len(path) == len(place.path) + 1
            else:
                waiting += [((*path, key), member) for key, member in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, index), item) for index, item in enumerate(value)]


def _check_declared(name: str, path: Path, declared: list[str], report: Report) -> None:
    if name in declared:
        return
    suggestion = did_you_mean(name, [each for each in declared if is_name(each)])
    hint = sentence(suggestion, "Add it to the list `secrets:` at the top of the file.")
    report.add("E216", path, f'Secret "{name}" is not declared.', hint)


def _refuse_place(place: Place, path: Path, report: Report) -> None:
    where = f'not in "{place.key}"' if not place.takes_secrets else "only as a whole value"
    report.add(
        "E217",
        path,
        f"A secret can be used in env, headers and auth, {where}.",
        "Secrets never become part of texts, outputs or the frozen definition.",
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
