"""Whether a workflow can run here: kinds and features of this version, functions, secrets (docs/format.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workflows.definitions.plan import Plan
from workflows.engine.contract import describe_missing
from workflows.engine.secrets import missing_secrets, variable_of
from workflows.errors import Problem, Refusal
from workflows.functions import autodiscover, registry
from workflows.steps import missing_functions, unsupported


def refuse_unless_ready(plan: Plan) -> None:
    """Refuse the start of a plan that this version or this server cannot run.

    Raises ``plan.unsupported_kind``, ``plan.unsupported_feature``, and ``plan.missing_code`` with one problem for each
    secret (E614) and function (E615) that is missing.
    """
    refusal = unsupported(plan)
    if refusal is not None:
        raise refusal
    autodiscover()
    functions = missing_functions(plan)
    secrets = missing_secrets(plan.secrets)
    if not functions and not secrets:
        return
    paths = dict(step_paths(plan.document))
    problems = [
        Problem(
            code="E614",
            path=f"secrets[{plan.secrets.index(name)}]",
            message=f'Secret "{name}" has no value on this server.',
            hint=f"Set {variable_of(name)} for the workers.",
        )
        for name in secrets
    ]
    problems += [
        Problem(
            code="E615",
            path=f"{paths[missing.step]}.call",
            message=f'The task function "{missing.name}" is not registered here.',
            hint="Install the app that registers it, or change `call`.",
        )
        for missing in functions
    ]
    names = [*(f"secret {name}" for name in secrets), *([describe_missing(functions)] if functions else [])]
    raise Refusal("plan.missing_code", missing=", ".join(names), problems=tuple(problems))


def frozen_functions(plans: Iterable[Plan]) -> dict[str, Any]:
    """The declarations of the functions that plans call: they decide a run and are not in its file (PLAN.4)."""
    called = sorted({step.options["call"] for plan in plans for step in plan.steps.values() if step.kind == "task"})
    return {name: function.declaration for name in called if (function := registry.get(name)) is not None}


def step_paths(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(id, path) of every step of a frozen document, as paths of files are written."""
    for section in ("steps", "on_failure", "finally"):
        yield from _paths(document.get(section, ()), section)
    for name, block in document.get("blocks", {}).items():
        yield from _paths(block["steps"], f"blocks.{name}.steps")


def _paths(steps: Any, place: str) -> Iterator[tuple[str, str]]:
    for index, step in enumerate(steps):
        path = f"{place}[{index}]"
        yield step["id"], path
        yield from _paths(step.get("do", ()), f"{path}.do")
        for branch in step.get("branches", ()):
            yield from _paths(branch["steps"], f"{path}.branches.{branch['name']}")
