"""Names in expressions: what exists at a place, and what has run by then (E403 to E408, E410, E414, E215, W101)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workflows.definitions.kinds import STEP_ATTRIBUTES
from workflows.definitions.suggestions import closest, did_you_mean
from workflows.definitions.validation.flow import Flow
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.scopes import Scope, chain, item_names, visible_lists
from workflows.definitions.validation.tree import BLOCK, BRANCH, ITEM, StepList, StepNode, Tree
from workflows.definitions.wording import sentence

_RUN_ATTRIBUTES = ("id", "workflow", "started_by", "started_at")
_CLOSING_ATTRIBUTES = ("status", "error")
_STEP_ERROR = ("code", "message")
_RUN_ERROR = ("code", "step", "message")

#: A name with the longest path of fields that is fixed.
Reference = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One expression at one place. ``asked`` are steps whose outcome or visits it looks at itself."""

    path: Path
    scope: Scope
    asked: frozenset[str] = frozenset()
    keeps_null: bool = False


class Names:
    """Checks references against the scopes of one file."""

    def __init__(self, tree: Tree, flows: Mapping[int, Flow], report: Report) -> None:
        self.tree = tree
        self.flows = flows
        self.report = report
        self.items = {item_names(step)[0] for step in tree.steps if step.kind == "map"} | {"item", "index"}
        self.used_params: set[tuple[str, str]] = set()

    def check(self, reference: Reference, use: Use) -> None:
        """Report what is wrong with one reference."""
        name = reference[0]
        if name == "secrets":
            source = ".".join(reference[:2])
            self.report.add(
                "E215",
                use.path,
                f'Secrets cannot be read in expressions ("{source}").',
                "Use `{ secret: NAME }` as a value in `env:`, `headers:` or `auth:`.",
            )
        elif name not in use.scope.names and name not in use.scope.extra:
            self._unknown_name(name, use)
        elif name in use.scope.extra:
            return
        elif name == "params":
            self._parameter(reference, use)
        elif name == "vars":
            self._variable(reference, use)
        elif name == "run":
            self._run(reference, use)
        else:
            self._step(reference, use)

    # ---- names, parameters, variables, run ---------------------------------------------------------------------------

    def _unknown_name(self, name: str, use: Use) -> None:
        own_items = [extra for extra in use.scope.extra if extra in self.items]
        if name in self.items and not (name == "item" and own_items):
            self.report.add(
                "E410",
                use.path,
                f'"{name}" exists only inside the body of a map.',
                "Move this step into `do:` or read the result of the map.",
            )
            return
        suggestion = own_items[0] if name == "item" else closest(name, use.scope.available, "name")
        self.report.add(
            "E403",
            use.path,
            f'"{name}" is not available here.',
            sentence(
                f'Did you mean "{suggestion}"?' if suggestion else "", f"Available: {', '.join(use.scope.available)}."
            ),
        )

    def _parameter(self, reference: Reference, use: Use) -> None:
        if len(reference) < 2:
            self.used_params.update((use.scope.in_block, name) for name in use.scope.params)
            return
        name = reference[1]
        self.used_params.add((use.scope.in_block, name))
        if name not in use.scope.params:
            report_parameter(name, list(use.scope.params), use.path, self.report)

    def _variable(self, reference: Reference, use: Use) -> None:
        if len(reference) > 1 and reference[1] not in use.scope.variables:
            report_variable(reference[1], list(use.scope.variables), use.path, self.report)

    def _run(self, reference: Reference, use: Use) -> None:
        available = _RUN_ATTRIBUTES + (_CLOSING_ATTRIBUTES if use.scope.is_closing else ())
        if len(reference) > 1 and reference[1] not in available:
            closing = reference[1] in _CLOSING_ATTRIBUTES
            self._no_attribute(
                "The run" if not closing else "Here the run",
                reference[1],
                available,
                use,
                "`status` and `error` exist in `on_failure` and `finally`." if closing else "",
            )
        elif len(reference) > 2 and reference[1] == "error" and reference[2] not in _RUN_ERROR:
            self._no_attribute("The error of a run", reference[2], _RUN_ERROR, use)

    def _no_attribute(
        self, owner: str, name: str, available: tuple[str, ...], use: Use, advice: str = "", what: str = ""
    ) -> None:
        suggestion = "" if advice else did_you_mean(name, available, what)
        hint = sentence(advice, suggestion, f"Available: {', '.join(available)}.")
        self.report.add("E408", use.path, f'{owner} has no "{name}".', hint)

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _step(self, reference: Reference, use: Use) -> None:
        if len(reference) < 2:
            return
        target = self.tree.by_id.get(reference[1])
        visible = visible_lists(use.scope.steps, self.tree)
        if target is None:
            self._unknown_step(reference[1], visible, use)
            return
        if len(reference) > 2 and reference[2] not in STEP_ATTRIBUTES:
            self._no_attribute("A step", reference[2], STEP_ATTRIBUTES, use, what="step attribute")
        elif len(reference) > 3 and reference[2] == "error" and reference[3] not in _STEP_ERROR:
            self._no_attribute("The error of a step", reference[3], _STEP_ERROR, use)
        if any(target.body is steps for steps in visible):
            self._order(target, reference, use)
        else:
            self._out_of_sight(target, visible, use)

    def _unknown_step(self, name: str, visible: list[StepList], use: Use) -> None:
        known = [step.id for steps in visible for step in steps.steps if step.id is not None]
        hint = did_you_mean(name, known) or did_you_mean(name, self.tree.by_id) or f"Steps: {', '.join(known)}."
        self.report.add("E405", use.path, f'There is no step "{name}".', hint)

    def _out_of_sight(self, target: StepNode, visible: list[StepList], use: Use) -> None:
        """E407 for a step in a body; E406 for one of a later section; E405 for a main step read in a block."""
        around = list(chain(target.body))
        owner = next((each.owner for each in around if each.owner and each.owner.body in visible), None)
        root = around[-1]
        if owner is not None:
            message = f'"{target.id}" runs inside "{owner.id}"; its result is not visible here.'
            inside = any(each.owner is owner for each in chain(use.scope.steps))
            self.report.add("E407", use.path, message, _owner_hint(owner, is_reader_inside=inside))
        elif use.scope.in_block:
            hint = f'The block "{use.scope.in_block}" sees its own steps only; pass the value as a parameter (`with:`).'
            self.report.add("E405", use.path, f'There is no step "{target.id}" in this block.', hint)
        elif root.kind == BLOCK:
            message = f'"{target.id}" runs inside "{root.name}"; its result is not visible here.'
            self.report.add("E407", use.path, message, self._block_hint(root.name))
        else:
            self._never_before(target, use)

    def _block_hint(self, block: str) -> str:
        caller = next((step for step in self.tree.steps if step.raw.get("use") == block), None)
        if caller is None:
            return "Read the output of a step that uses the block."
        return f"Read steps.{caller.id}.output (the output of the block)."

    def _order(self, target: StepNode, reference: Reference, use: Use) -> None:
        reader = _reader_in(target.body, use.scope)
        if reader is None:
            return
        flow = self.flows.get(id(target.body))
        if flow is None or flow.uncertain:
            return
        if not flow.may_precede(target.position, reader.position):
            self._never_before(target, use)
        elif len(reference) > 2 and reference[2] == "output":
            self._may_have_run(flow, target, reader, use)

    def _never_before(self, target: StepNode, use: Use) -> None:
        reader = use.scope.step.id if use.scope.step is not None else use.scope.place
        self.report.add(
            "E406",
            use.path,
            f'"{target.id}" never runs before "{reader}", so its result is never available here.',
            "Read a step that runs earlier, or move this one.",
        )

    def _may_have_run(self, flow: Flow, target: StepNode, reader: StepNode, use: Use) -> None:
        if target.id in use.asked or (use.keeps_null and target.position >= reader.position):
            return
        only_if = target.raw.get("only_if")
        if not flow.always_precedes(target.position, reader.position):
            reason = "a route leads around it"
        elif only_if not in (None, True) and only_if != reader.raw.get("only_if"):
            reason = "it is skipped by `only_if`"
        else:
            return
        name = use.scope.step.id if use.scope.step is not None else use.scope.place
        self.report.add(
            "W101",
            use.path,
            f'"{target.id}" may not have run when "{name}" reads its output ({reason}). Compare its outcome first.',
        )


def report_parameter(name: str, known: list[str], path: Path, report: Report) -> None:
    """E404."""
    listed = f"Parameters: {', '.join(known)}." if known else "Declare it under `params:`."
    report.add("E404", path, f'Parameter "{name}" is not declared.', did_you_mean(name, known) or listed)


def report_variable(name: str, known: list[str], path: Path, report: Report) -> None:
    """E414."""
    hint = sentence(did_you_mean(name, known), "Declare it under `vars:` with an initial value.")
    report.add("E414", path, f'Variable "{name}" is not declared.', hint)


def _reader_in(steps: StepList, scope: Scope) -> StepNode | None:
    """The step of ``steps`` in which ``scope`` lies; None when it lies after all of them."""
    if scope.step is not None and scope.step.body is steps:
        return scope.step
    return next((each.owner for each in chain(scope.steps) if each.owner and each.owner.body is steps), None)


def _owner_hint(owner: StepNode, *, is_reader_inside: bool) -> str:
    kind = owner.bodies[0].kind if owner.bodies else ITEM
    if kind == BRANCH:
        if is_reader_inside:
            return f"Branches run side by side; read steps.{owner.id}.output (one result per branch) after it."
        return f"Read steps.{owner.id}.output (one result per branch)."
    return f"Read steps.{owner.id}.output (one result per item) or steps.{owner.id}.items."
