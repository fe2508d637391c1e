"""``workflow``: runs another workflow as a child run."""

from __future__ import annotations

from workflows.engine.contract import Child, Entered, Entry, Missing
from workflows.expressions import BadExpression
from workflows.steps.entering import kind_of_value, milliseconds


class WorkflowKind:
    name = "workflow"

    def enter(self, entry: Entry) -> Entered:
        options = entry.step.options
        if options["ref"] not in entry.frozen.get("children", {}):
            return Missing(what="workflow", name=options["ref"], step=entry.step.id)
        params = entry.evaluate(options["with"])
        if not isinstance(params, dict):
            raise BadExpression(f'"with" must be a mapping, but it is {kind_of_value(params)}.')
        return Child(
            ref=options["ref"],
            params=params,
            detach=options["detach"],
            timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"),
        )
