"""What the kit drives: the scenarios of the acceptance cases, as written and with other promises about their effects."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from workflows.definitions.source import read_source
from workflows.errors import Refusal
from workflows.operations.readiness import refuse_unless_ready
from workflows.operations.workflows import Definition, definition_of_file

CASES = Path(__file__).resolve().parents[1] / "data" / "cases"
#: Keys of a step that hold steps, and of a mapping of branches that hold them.
_BODIES = ("do", "steps", "on_failure", "finally", "branches")
#: What a variant changes in every step that runs a program or a function.
VARIANTS: Mapping[str, Mapping[str, Any]] = {"": {}, "read": {"access": "read"}, "idempotent": {"idempotent": True}}
_WITH_EFFECT = frozenset({"shell", "task"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way to run a workflow. ``expected`` is what the case says of its end. ``is_cancelled``: it is cancelled as
    soon as it is started, so only its closing steps run."""

    name: str
    definition: Definition
    params: Mapping[str, Any] = field(default_factory=dict)
    started_by: str = "alice"
    humans: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    is_cancelled: bool = False


def case_folders(wanted: Iterable[str]) -> list[Path]:
    """The folders whose names begin with one of ``wanted``; all of them for none. Raises ``ValueError``."""
    folders = sorted(folder for folder in CASES.iterdir() if (folder / "case.yaml").exists())
    chosen: list[Path] = []
    for word in wanted:
        found = [folder for folder in folders if folder.name.startswith(word)]
        if not found:
            raise ValueError(f'There is no case "{word}" in {CASES}.')
        chosen.extend(folder for folder in found if folder not in chosen)
    return chosen or folders


def scenarios_of(folder: Path, variants: Iterable[str] = VARIANTS) -> Iterator[Scenario]:
    """Every scenario of a case in every variant, and its first one cancelled. Raises ``Refusal`` when this version cannot run its plan."""
    document = read_source((folder / "workflow.yaml").read_bytes()).document
    case = yaml.safe_load((folder / "case.yaml").read_text())
    seen: set[str] = set()
    for variant in variants:
        changed = with_promises(document, VARIANTS[variant])
        text = json.dumps(changed)
        if text in seen:
            continue
        seen.add(text)
        definition = runnable(text.encode())
        for number, written in enumerate(case["scenarios"]):
            scenario = Scenario(
                name=" · ".join(part for part in (folder.name, written["name"], variant) if part),
                definition=definition,
                params=written.get("params", {}),
                started_by=written.get("started_by", "alice"),
                humans=written.get("humans", {}),
                expected=written["expect"],
            )
            yield scenario
            if number == 0:
                name, expected = f"{scenario.name} · cancelled", {"status": "cancelled"}
                yield replace(scenario, name=name, humans={}, expected=expected, is_cancelled=True)


def runnable(text: bytes) -> Definition:
    """A workflow that this version can run. Raises ``Refusal``."""
    definition = definition_of_file(text)
    refuse_unless_ready(definition.plan)
    return definition


def needs_people(scenario: Scenario) -> bool:
    return bool(scenario.humans)


def with_promises(document: Mapping[str, Any], promises: Mapping[str, Any]) -> dict[str, Any]:
    """The workflow with ``promises`` in every step that has an effect."""
    changed = copy.deepcopy(dict(document))
    for step in _steps(changed):
        if step.get("kind") in _WITH_EFFECT:
            step.update(promises)
    return changed


def _steps(holder: Any) -> Iterator[dict[str, Any]]:
    """Every step below a workflow, a step, a branch, or a list of them."""
    if isinstance(holder, list):
        for entry in holder:
            if isinstance(entry, dict) and "kind" in entry:
                yield entry
            yield from _steps(entry)
    elif isinstance(holder, dict):
        for name in _BODIES:
            if name in holder:
                inner = holder[name]
                yield from _steps(list(inner.values()) if isinstance(inner, dict) else inner)


def refused(folder: Path) -> Refusal | None:
    """Why this version cannot run a case, None if it can."""
    try:
        runnable((folder / "workflow.yaml").read_bytes())
    except Refusal as refusal:
        return refusal
    return None
