"""How places in a run are written."""

from __future__ import annotations


def visit_path(scope: str, step: str, round: int) -> str:
    """The path of a visit: ``deploy[3]/roll_out``, with ``#2`` after a step entered again."""
    own = step if round == 1 else f"{step}#{round}"
    return f"{scope}/{own}" if scope else own
