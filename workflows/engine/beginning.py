"""The beginning of a run: its variables get their initial values before the first step is entered."""

from __future__ import annotations

from workflows.engine import closing
from workflows.engine.draft import Draft
from workflows.engine.environment import evaluate
from workflows.expressions import BadExpression
from workflows.jsonvalue import NotStorable, store


def begin(draft: Draft) -> None:
    """Evaluate the initial values once. They may use ``params`` and ``run``, whose id exists only since publication.

    A value that cannot be computed fails the run with ``bad_expression`` before any step.
    """
    initial = draft.plan.main.vars
    if draft.state.started_at is not None or not initial or draft.closing:
        return
    root = draft.scopes[""]
    draft.begin_revision()
    draft.event("variables_set")
    try:
        values = {name: evaluate(draft, root, value) for name, value in initial.items()}
        store(values)
    except (BadExpression, NotStorable) as error:
        message = f"The initial value of a variable failed: {error}"
        closing.end_list(draft, root, failure=closing.ListFailure(code="bad_expression", step=None, message=message))
        return
    draft.set_variables("", values)
