"""The workspace gate: one writer, or any number of the others, first come first served (promise ADM.9)."""

from __future__ import annotations

from workflows.engine.draft import Draft


def is_free(draft: Draft, use: str) -> bool:
    """Whether an effect may use the workspace now. Who came earlier and still waits goes first."""
    if use == "none":
        return True
    if draft.gated:
        return False
    others = uses(draft)
    return not others if use == "write" else "write" not in others


def uses(draft: Draft) -> list[str]:
    """How the effects that run, or start with this decision, use the workspace."""
    ended = {visit for visit, _ in draft.attempts_settled}
    running = [use for visit, use in draft.facts.workspace_uses().items() if visit not in ended]
    return [*running, *(one.effect.workspace for one in draft.admissions if one.effect.workspace != "none")]
