"""What a step says as a whole: its id, keys that exclude each other, outcomes that it invents, sizes and nesting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workflows.definitions.kinds import KINDS, RESERVED_TARGETS, keys_of
from workflows.definitions.models.steps import MAX_STEPS
from workflows.definitions.models.values import is_name, is_whole
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.shape_keys import is_misspelled, needs
from workflows.definitions.validation.shape_names import RESERVED_OUTCOMES, refuse_outcome
from workflows.definitions.validation.shape_values import refuse_retry
from workflows.definitions.validation.tree import BLOCK, ITEM, StepList, StepNode, Tree
from workflows.definitions.wording import shown

MOST_NESTED_MAPS = 3

#: Keys besides the alternatives of a kind of which one makes the other senseless.
_EXCLUDING: dict[str, tuple[tuple[str, str], ...]] = {
    "http": (("json", "body"),),
    "map": (("do", "with"),),
    "wait": (("for", "timeout"), ("until", "timeout"), ("for", "match"), ("until", "match")),
}


def check_steps(tree: Tree, report: Report) -> None:
    """Report E203, E204, E209, E210, E213, E220 and E501 for every step of the file."""
    _check_ids(tree, report)
    _check_size(tree, report)
    for step in tree.steps:
        if step.kind is not None:
            _check_alternatives(step, report)
            _check_invented_outcomes(step, report)
        _check_nesting(step, tree, report)
        check_policy(step.raw.get("retry"), (*step.path, "retry"), report)


def _check_ids(tree: Tree, report: Report) -> None:
    for step in tree.steps:
        path = (*step.path, "id")
        if step.id in RESERVED_TARGETS:
            report.add(
                "E204",
                path,
                f'"{step.id}" is a reserved route target and cannot be a step id.',
                f'Rename the step, e.g. "{step.id}_step". Reserved: {", ".join(RESERVED_TARGETS)}.',
            )
        elif step.id is not None and tree.by_id[step.id] is not step:
            line = report.line((*tree.by_id[step.id].path, "id"))
            report.add(
                "E203",
                path,
                f'Step id "{step.id}" is already used on line {line}.',
                "Ids are unique in the whole file, including map bodies and blocks. Rename one of them.",
            )


def _check_size(tree: Tree, report: Report) -> None:
    count = sum(len(steps.steps) for steps in tree.lists)
    longest = max((len(steps.steps) for steps in tree.lists), default=0)
    if count > MAX_STEPS >= longest:
        report.add(
            "E213",
            ("steps",),
            f"A file may hold {MAX_STEPS} steps, but this one has {count}.",
            "Move a part into a workflow of its own and call it with `kind: workflow`.",
        )


def _check_nesting(step: StepNode, tree: Tree, report: Report) -> None:
    if step.kind != "map":
        return
    level = 1 + _maps_around(step.body, tree, frozenset())
    if level > MOST_NESTED_MAPS:
        report.add(
            "E213",
            step.path,
            f'Maps can be nested {MOST_NESTED_MAPS} deep, but "{step.id}" is at level {level}.',
            "Move the inner map into a workflow of its own and call it with `kind: workflow`.",
        )


def _maps_around(steps: StepList, tree: Tree, seen: frozenset[str]) -> int:
    """How many maps a list is inside of, the deepest use counting for a block."""
    around, root = 0, steps
    while root.owner is not None:
        around += root.kind == ITEM
        root = root.owner.body
    if root.kind != BLOCK or root.name in seen:
        return around
    uses = [step for step in tree.steps if step.raw.get("use") == root.name]
    inside = seen | {root.name}
    return around + max(((step.kind == "map") + _maps_around(step.body, tree, inside) for step in uses), default=0)


def _check_alternatives(step: StepNode, report: Report) -> None:
    one_of = KINDS[step.kind or ""].one_of
    present = [key for key in step.raw if key in one_of]
    allowed = list(keys_of(step.kind or ""))
    if one_of and not present and not any(is_misspelled(key, step.raw, allowed) for key in one_of):
        needs(step.path, step.name, one_of, report)
    for extra in present[1:]:
        _exclude(step, present[0], extra, report)
    for pair in _EXCLUDING.get(step.kind or "", ()):
        both = [key for key in step.raw if key in pair]
        if len(both) == 2 and not ("signal" in step.raw and step.kind == "wait"):
            _exclude(step, both[0], both[1], report)


def _exclude(step: StepNode, first: str, second: str, report: Report) -> None:
    message = f'The {step.name} has both "{first}" and "{second}".'
    report.add("E210", (*step.path, second), message, "Keep one of them.")


def _check_invented_outcomes(step: StepNode, report: Report) -> None:
    key = KINDS[step.kind or ""].named_in
    written = step.raw.get(key) if key else None
    if key is None or written is None:
        return
    seen: set[str] = set()
    for name, path in _names(written, (*step.path, key)):
        if not is_name(name):
            continue
        if name in RESERVED_OUTCOMES[key]:
            refuse_outcome(key, name, path, report)
        elif name in seen and key in ("choices", "outcomes"):
            report.add(
                "E220", path, f"{shown(name)} is listed twice.", "Each name becomes an outcome; remove one of them."
            )
        seen.add(name)


def _names(written: object, path: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(written, Mapping):
        for name in written:
            yield name, (*path, name)
    elif isinstance(written, list):
        for index, entry in enumerate(written):
            if isinstance(entry, str):
                yield entry, (*path, index)
            elif isinstance(entry, Mapping) and isinstance(entry.get("outcome"), str):
                yield entry["outcome"], (*path, index, "outcome")


def check_policy(retry: object, path: Path, report: Report) -> None:
    """E501 for a policy that alone decides about retries and allows none.

    In a list, ``attempts: 1`` says that these errors are not retried, so it has a meaning there.
    """
    policies = [retry] if isinstance(retry, Mapping) else retry if isinstance(retry, list) else []
    attempts = [policy.get("attempts") for policy in policies if isinstance(policy, Mapping)]
    if attempts and all(is_whole(count) and count == 1 for count in attempts):
        place = (*path, "attempts") if isinstance(retry, Mapping) else (*path, 0, "attempts")
        refuse_retry(place, "attempts", 1, report)
