"""Freezing: from a workflow file as written to its canonical document and hash (docs/format.md).

Shorthands are expanded and mappings whose order people see become lists, because canonical JSON sorts keys. Defaults
are *not* filled in: they belong to the compiler, so a file that spells out a default is another version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.kinds import KINDS, outcomes_of, spelled_out
from workflows.errors import Refusal
from workflows.jsonvalue import canonical, decode, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """``canonical`` is the RFC 8785 text of ``document``; ``hash`` is the SHA-256 of its UTF-8 bytes, in hex."""

    document: Mapping[str, Any] = field(repr=False)
    canonical: str = field(repr=False)
    hash: str


def freeze(document: Mapping[str, Any]) -> Frozen:
    """The frozen form of a valid workflow document as :func:`~workflows.definitions.source.read_source` gives it."""
    text = canonical(_workflow(document))
    return Frozen(document=decode(text), canonical=text, hash=digest(text))


def verify(text: str, hash_: str, *, plan: str = "") -> dict[str, Any]:
    """The document of a stored plan.

    Raises :class:`Refusal` ``plan.corrupt`` when ``text`` is not JSON, is not its own canonical form, is not a plan, or
    has another hash than ``hash_``. ``plan`` names it in the refusal.
    """
    corrupt = Refusal("plan.corrupt", plan=plan or hash_[:12])
    try:
        if digest(text) != hash_:
            raise corrupt
        document = decode(text)
        if not isinstance(document, dict) or canonical(document) != text:
            raise corrupt
    except (ValueError, RecursionError) as error:
        raise corrupt from error
    return document


def _workflow(document: Mapping[str, Any]) -> dict[str, Any]:
    return _rewrite(
        document,
        {
            "params": _fields,
            "vars": _variables,
            "defaults": lambda defaults: _rewrite(defaults, {"retry": _policies}),
            "steps": _steps,
            "on_failure": _steps,
            "finally": _steps,
            "blocks": lambda blocks: {name: _block(block) for name, block in blocks.items()},
        },
    )


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    return _rewrite(block, {"params": _fields, "vars": _variables, "steps": _steps})


def _steps(steps: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_step(step) for step in steps]


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Callable[[Any], Any]] = {"next": lambda written: _routes(step, written), "retry": _policies}
    changes |= {key: change for key, change in _BY_KEY.items() if key in KINDS[step["kind"]].keys}
    return _rewrite(step, changes)


def _rewrite(mapping: Mapping[str, Any], changes: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    return {key: changes[key](value) if key in changes else value for key, value in mapping.items()}


def _routes(step: Mapping[str, Any], written: Any) -> Any:
    main = outcomes_of(step).main
    return {main: written} if isinstance(written, str) and main is not None else written


def _policies(written: Any) -> list[Any]:
    if isinstance(written, list):
        return written
    return [written if isinstance(written, Mapping) else {"attempts": written}]


def _fields(written: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **declaration} for name, declaration in written.items()]


def _values(written: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in written.items()]


def _variables(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, Mapping) else {"value": value} for name, value in written.items()}


def _choices(written: Any) -> list[dict[str, Any]]:
    if isinstance(written, Mapping):
        return [{"name": name, "label": label} for name, label in written.items()]
    return [{"name": name, "label": spelled_out(name)} for name in written]


def _branches(written: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "steps": _steps(steps)} for name, steps in written.items()]


#: Keys of single kinds that are rewritten; a key of another kind with the same name is left alone.
_BY_KEY: dict[str, Callable[[Any], Any]] = {
    "show": _values,
    "form": _fields,
    "choices": _choices,
    "branches": _branches,
    "vars": _variables,
    "do": _steps,
}
