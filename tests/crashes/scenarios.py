"""What the kit drives: the scenarios of the acceptance cases and a few of its own, as written and with other promises
about their effects."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from workflows.definitions.source import read_source
from workflows.errors import Refusal
from workflows.operations.readiness import refuse_unless_ready
from workflows.operations.workflows import Definition, definition_of_file, publish_file

#: Folders of cases: those of the product, and those that hold what else a crash may meet.
CASES = (Path(__file__).resolve().parents[1] / "data" / "cases", Path(__file__).resolve().parent / "cases")
#: Keys of a step that hold steps, and of a mapping of branches or blocks that hold them.
_BODIES = ("do", "steps", "on_failure", "finally", "branches", "blocks")
#: What a variant changes in every step that runs a program or a function.
VARIANTS: Mapping[str, Mapping[str, Any]] = {"": {}, "read": {"access": "read"}, "idempotent": {"idempotent": True}}
_WITH_EFFECT = frozenset({"shell", "task"})
#: Stands in a file or in parameters for what is different in every attack.
KEY = "CRASH_KEY"
#: A kill takes longer than the deadlines of the cases. So who answers has time, and who does not is not waited for.
_TIME_TO_ANSWER, _NO_TIME = "2h", "30ms"


class Cancelled(Enum):
    """When a run is cancelled: only its closing steps run after that."""

    NEVER = ""
    AT_ITS_START = "cancelled at its start"
    WHILE_DRIVEN = "cancelled while it is driven"
    WHILE_IT_ASKS = "cancelled while it asks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way to run a workflow. ``file`` names the workflow and the variant of its promises. ``expected`` is what the case says of its end, ``humans`` and ``signals`` what people
    say; ``beside`` are the parameters of runs that are started before this one, ``fork`` is the visit
    from which the run is forked once it has ended."""

    name: str
    definition: Definition
    file: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    started_by: str = "alice"
    humans: Mapping[str, Any] = field(default_factory=dict)
    signals: Sequence[Mapping[str, Any]] = ()
    beside: Sequence[Mapping[str, Any]] = ()
    fork: str = ""
    expected: Mapping[str, Any] = field(default_factory=dict)
    cancelled: Cancelled = Cancelled.NEVER

    @property
    def has_others(self) -> bool:
        """Whether several runs, or places that runs share, take part."""
        steps = self.definition.plan.steps.values()
        return bool(self.beside) or self.shares_places or any(step.kind == "workflow" for step in steps)

    @property
    def shares_places(self) -> bool:
        """Whether places that all runs of a server share take part. Who sweeps looks after those of other runs too."""
        plan = self.definition.plan
        return plan.concurrency is not None or any(step.limit for step in plan.steps.values())

    def definition_for(self, key: str) -> Definition:
        """The workflow of the attack ``key``; names that all runs of a server share are its own."""
        if KEY not in self.definition.source:
            return self.definition
        return runnable(self.definition.source.replace(KEY, f"crash_{key[:16]}").encode())

    def params_for(self, key: str, label: str) -> Mapping[str, Any]:
        """The parameters of a run of the attack ``key``."""
        given = self.beside[int(label.removeprefix("beside").removesuffix(">"))] if label else self.params
        return {name: key if value == KEY else value for name, value in given.items()}


def case_folders(wanted: Iterable[str]) -> list[Path]:
    """The folders whose names begin with one of ``wanted``; all of them for none. Raises ``ValueError``."""
    folders = [folder for place in CASES for folder in sorted(place.iterdir()) if (folder / "case.yaml").exists()]
    chosen: list[Path] = []
    for word in wanted:
        found = [folder for folder in folders if folder.name.startswith(word)]
        if not found:
            raise ValueError(f'There is no case "{word}" in {" or ".join(map(str, CASES))}.')
        chosen.extend(folder for folder in found if folder not in chosen)
    return chosen or folders


def scenarios_of(folder: Path, variants: Iterable[str] = VARIANTS) -> Iterator[Scenario]:
    """Every scenario of a case in every variant, and its first one cancelled. The workflows that it starts as child
    runs are published. Raises ``Refusal`` when this version cannot run its plan."""
    document = read_source((folder / "workflow.yaml").read_bytes()).document
    case = yaml.safe_load((folder / "case.yaml").read_text())
    seen: set[str] = set()
    for variant in variants:
        changed = _variant(document, variant)
        text = json.dumps(changed)
        if text in seen:
            continue
        seen.add(text)
        _publish_children(folder, variant)
        for number, written in enumerate(case["scenarios"]):
            scenario = _scenario(folder, variant, changed, written)
            yield scenario
            if number == 0:
                yield from _cancelled(scenario, case.get("cancelled", [each.value for each in Cancelled]))


def _scenario(folder: Path, variant: str, document: Mapping[str, Any], written: Mapping[str, Any]) -> Scenario:
    humans = written.get("humans", {})
    return Scenario(
        name=" · ".join(part for part in (folder.name, written["name"], variant) if part),
        definition=runnable(json.dumps(with_time(document, humans)).encode()),
        file=f"{folder.name} {variant}",
        params=written.get("params", {}),
        started_by=written.get("started_by", "alice"),
        humans=humans,
        signals=written.get("signals", ()),
        beside=written.get("beside", ()),
        fork=written.get("fork", ""),
        expected=written["expect"],
    )


def _cancelled(scenario: Scenario, moments: Sequence[str]) -> Iterator[Scenario]:
    """The scenario with a cancel at different moments. People answer nothing any more."""
    for cancelled in (Cancelled.AT_ITS_START, Cancelled.WHILE_DRIVEN, Cancelled.WHILE_IT_ASKS):
        if cancelled.value in moments and (cancelled is not Cancelled.WHILE_IT_ASKS or scenario.humans):
            name, expected = f"{scenario.name} · {cancelled.value}", {"status": "cancelled"}
            yield replace(scenario, name=name, signals=(), fork="", expected=expected, cancelled=cancelled)


def _publish_children(folder: Path, variant: str) -> None:
    for file in sorted(folder.glob("child*.yaml")):
        document = _variant(read_source(file.read_bytes()).document, variant)
        document["name"] = _child_name(document["name"], variant)
        publish_file(json.dumps(document).encode(), created_by="kit")


def _child_name(name: str, variant: str) -> str:
    return f"{name}_{variant}" if variant else name


def runnable(text: bytes) -> Definition:
    """A workflow that this version can run. Raises ``Refusal``."""
    definition = definition_of_file(text)
    refuse_unless_ready(definition.plan)
    return definition


def _variant(document: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """The workflow with a variant's promises in every step that has an effect, and in its child runs."""
    changed = _changed(document, lambda step: step.get("kind") in _WITH_EFFECT, lambda step: VARIANTS[variant])
    return _changed(changed, lambda step: "ref" in step, lambda step: {"ref": _child_name(step["ref"], variant)})


def with_time(document: Mapping[str, Any], humans: Mapping[str, Any]) -> dict[str, Any]:
    """The workflow with deadlines that fit what people do: far away where they answer, at once where they do not.

    Raises ``ValueError`` for a question that is answered once and left alone another time.
    """
    times = {}
    for name, answers in humans.items():
        left_alone = {bool(said.get("expire")) for said in answers}
        if len(left_alone) > 1:
            raise ValueError(f'The deadline of "{name}" cannot be both far away and at once.')
        times[name.rpartition("/")[2].partition("#")[0]] = _NO_TIME if left_alone == {True} else _TIME_TO_ANSWER
    return _changed(
        document,
        lambda step: step.get("id") in times and "timeout" in step,
        lambda step: {"timeout": times[step["id"]]},
    )


def _changed(
    document: Mapping[str, Any],
    is_meant: Callable[[Mapping[str, Any]], bool],
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> dict[str, Any]:
    changed = copy.deepcopy(dict(document))
    for step in _steps(changed):
        if is_meant(step):
            step.update(change(step))
    return changed


def _steps(holder: Any) -> Iterator[dict[str, Any]]:
    """Every step below a workflow, a step, a branch, a block, or a list of them."""
    if isinstance(holder, list):
        for entry in holder:
            if isinstance(entry, dict) and "kind" in entry:
                yield entry
            yield from _steps(entry)
    elif isinstance(holder, dict):
        for name in _BODIES:
            if name in holder:
                inner = holder[name]
                yield from _steps(inner)
                if isinstance(inner, dict):
                    yield from (step for body in inner.values() for step in _steps(body))


def refused(folder: Path) -> Refusal | None:
    """Why this version cannot run a case, None if it can."""
    try:
        _publish_children(folder, "")
        runnable((folder / "workflow.yaml").read_bytes())
    except Refusal as refusal:
        return refusal
    return None
