"""A plan as Mermaid text: steps, routes with their outcomes, bodies and sections as boxes.

Left out is what would only be noise: outcomes that fail by default, ``skipped`` and ``empty`` beside the main outcome.
"""

from __future__ import annotations

from collections.abc import Iterator

from workflows.definitions.kinds import FAIL_BY_DEFAULT, FOLLOW_MAIN, TIMED_OUT
from workflows.definitions.plan import DONE, FAIL, Body, Plan, StepPlan

_INDENT = "    "
_SHAPES = {
    "condition": ("{", "}"),
    "approval": ("{{", "}}"),
    "question": ("{{", "}}"),
    "wait": ("(", ")"),
    "end": ("([", "])"),
    "block": ("[[", "]]"),
    "map": ("[[", "]]"),
    "workflow": ("[[", "]]"),
}
_ESCAPES = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " ", "\r": " "}


def mermaid(plan: Plan) -> str:
    """The flowchart of ``plan``; it ends with a line break."""
    lines = ["flowchart TD"]
    lines += [f'{_INDENT}start(["{_escaped(plan.title)}"]) --> {_step_id(plan.main.first)}']
    lines += _indented(_body(plan.main, "run"))
    for name, body in (("on_failure", plan.on_failure), ("finally", plan.closing)):
        if body is not None:
            lines += _indented(_box(f"section_{name}", name, _body(body, f"section_{name}")))
    for name, body in plan.blocks.items():
        lines += _indented(_box(f"block_{name}", f"block {name}", _body(body, f"block_{name}")))
    return "\n".join(lines) + "\n"


def _body(body: Body, place: str) -> Iterator[str]:
    for step in body.steps:
        yield from _step(step)
    targets: set[str] = set()
    for step in body.steps:
        for target, outcomes in shown_routes(step).items():
            targets.add(target)
            label = f'|"{_escaped(", ".join(outcomes))}"|' if outcomes else ""
            yield f"{_step_id(step.id)} -->{label} {_target_id(target, place)}"
    for target in (DONE, FAIL):
        if target in targets:
            yield f"{_target_id(target, place)}(({target}))"


def _step(step: StepPlan) -> Iterator[str]:
    own = {name: body for name, body in step.bodies.items() if body.kind != "block"}
    if not own:
        opening, closing = _SHAPES.get(step.kind, ("[", "]"))
        yield f'{_step_id(step.id)}{opening}"{_label(step)}"{closing}'
        return
    if len(own) == 1 and step.kind == "map":
        yield from _box(_step_id(step.id), _label(step), _body(own["do"], f"in_{step.id}"), escaped=True)
        return
    yield f'subgraph {_step_id(step.id)}["{_label(step)}"]'
    for name, body in own.items():
        place = f"in_{step.id}_{name}"
        yield from _indented(_box(place, name, _body(body, place)))
    yield "end"


def _box(identifier: str, title: str, inside: Iterator[str], *, escaped: bool = False) -> Iterator[str]:
    yield f'subgraph {identifier}["{title if escaped else _escaped(title)}"]'
    yield from _indented(inside)
    yield "end"


def shown_routes(step: StepPlan) -> dict[str, list[str]]:
    """Targets with the outcomes worth naming on the way to them."""
    targets: dict[str, list[str]] = {}
    main_target = step.routes.get(step.main_outcome or "")
    for outcome, target in step.routes.items():
        if target == FAIL and (outcome in FAIL_BY_DEFAULT or outcome == TIMED_OUT):
            continue
        if outcome in FOLLOW_MAIN and target == main_target:
            continue
        if outcome == TIMED_OUT and target == step.routes.get("failed"):
            continue
        named = targets.setdefault(target, [])
        if outcome != step.main_outcome:
            named.append(outcome)
        elif len(step.routes) > 1 and _is_named(step, target):
            named.insert(0, outcome)
    return targets


def _is_named(step: StepPlan, target: str) -> bool:
    """Whether another outcome shares the main outcome's target, so that its arrow needs the name."""
    quiet = FOLLOW_MAIN | {TIMED_OUT, step.main_outcome}
    return any(to == target and outcome not in quiet for outcome, to in step.routes.items())


def _label(step: StepPlan) -> str:
    source = step.title.source
    title = source if isinstance(source, str) else step.id
    return f"{_escaped(title)}<br/>{step.id} · {step.kind}"


def _step_id(identifier: str) -> str:
    return f"step_{identifier}"  # `end` and other step ids are words of Mermaid


def _target_id(target: str, place: str) -> str:
    return f"{place}_{target}" if target in (DONE, FAIL) else _step_id(target)


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _indented(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield _INDENT + line
