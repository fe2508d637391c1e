from __future__ import annotations

from dataclasses import dataclass

from tests.definitions.validating import errors_of, warnings_of

DEPLOY = {"params": ["region"], "calls": []}
CALL = "steps:\n  - { id: a, kind: workflow, ref: deploy }\n"
NO_RECURSION = "Use a loop with `max_visits` instead."


@dataclass(frozen=True)
class Declared:
    outcomes: tuple[str, ...] = ()
    access: str | None = None
    idempotent: bool = False


def test_references_are_not_checked_when_nothing_is_known() -> None:
    assert errors_of(CALL) == []


def test_an_unknown_workflow_lists_the_known_ones() -> None:
    assert errors_of(CALL, workflows={"ship": DEPLOY, "demo": DEPLOY}) == [
        'E508 steps[0].ref: There is no workflow "deploy". Workflows: ship.'
    ]


def test_without_other_workflows_the_hint_says_so() -> None:
    assert errors_of(CALL, workflows={}) == [
        'E508 steps[0].ref: There is no workflow "deploy". There are no other workflows here.'
    ]


def test_a_workflow_that_calls_itself_is_refused_even_when_nothing_is_known() -> None:
    message = f"E510 steps[0].ref: This workflow would call itself: demo → demo. {NO_RECURSION}"
    text = "steps:\n  - { id: a, kind: workflow, ref: demo }\n"

    assert errors_of(text) == [message]
    assert errors_of(text, workflows={}) == [message]


def test_a_workflow_that_calls_itself_through_others_is_refused_with_the_chain() -> None:
    known = {"deploy": {"params": [], "refs": ["check", "ship"]}, "ship": {"calls": ["demo"]}, "check": {}}

    assert errors_of(CALL, workflows=known) == [
        f"E510 steps[0].ref: This workflow would call itself: demo → deploy → ship → demo. {NO_RECURSION}"
    ]


def test_workflows_that_call_each_other_without_this_one_are_fine() -> None:
    known = {"deploy": {"params": [], "calls": ["ship"]}, "ship": {"params": [], "calls": ["deploy"]}}

    assert errors_of(CALL, workflows=known) == []


def test_parameters_of_another_workflow_are_checked_by_name() -> None:
    text = "steps:\n  - { id: a, kind: workflow, ref: deploy, with: { regoin: eu, size: 1 } }\n"

    assert errors_of(text, workflows={"deploy": DEPLOY}) == [
        'E511 steps[0].with.regoin: Workflow "deploy" has no parameter "regoin". Did you mean "region"?',
        'E511 steps[0].with.size: Workflow "deploy" has no parameter "size". Parameters: region.',
    ]


def test_required_parameters_of_another_workflow_are_needed_when_its_declarations_are_known() -> None:
    declared = {"region": {"type": "string"}, "size": {"type": "integer", "default": 1}}
    listed = [{"name": "region", "type": "string"}, {"name": "size", "type": "integer", "optional": True}]
    message = 'E511 steps[0]: Workflow "deploy" needs the parameter "region". Add `region: …` to `with:`.'

    assert errors_of(CALL, workflows={"deploy": {"params": declared}}) == [message]
    assert errors_of(CALL, workflows={"deploy": {"params": listed}}) == [message]


def test_another_workflow_that_is_itself_wrong_breaks_nothing() -> None:
    for params in (None, "text", 5, [{}, 5, {"name": None}], {"region": "string"}):
        assert errors_of(CALL, workflows={"deploy": {"params": params, "calls": None}}) == []


def test_blocks_are_found_by_name() -> None:
    text = (
        "blocks: { notify: { steps: [{ id: x, kind: shell, run: x }] } }\n"
        "steps:\n  - { id: a, kind: block, use: notfy }\n  - { id: b, kind: map, over: '${ [1] }', use: other }\n"
    )

    assert errors_of(text) == [
        'E509 steps[0].use: There is no block "notfy". Did you mean "notify"?',
        'E509 steps[1].use: There is no block "other". Blocks: notify.',
    ]


def test_a_file_without_blocks_says_where_they_are_declared() -> None:
    assert errors_of("steps:\n  - { id: a, kind: block, use: notify }\n") == [
        'E509 steps[0].use: There is no block "notify". Declare it under `blocks:`.'
    ]


def test_parameters_of_blocks_are_checked() -> None:
    text = (
        "blocks: { notify: { params: { text: { type: string }, to: { type: string, optional: true } }, "
        'steps: [{ id: x, kind: shell, run: x, stdin: "${ params.text + params.to }" }] } }\n'
        "steps:\n  - { id: a, kind: block, use: notify }\n  - { id: b, kind: block, use: notify, with: { texd: x } }\n"
    )

    assert errors_of(text) == [
        'E511 steps[0]: Block "notify" needs the parameter "text". Add `text: …` to `with:`.',
        'E511 steps[1].with.texd: Block "notify" has no parameter "texd". Did you mean "text"?',
    ]


def test_blocks_that_use_each_other_are_refused() -> None:
    text = (
        "blocks:\n  one: { steps: [{ id: x, kind: block, use: two }] }\n"
        "  two: { steps: [{ id: m, kind: map, over: '${ [1] }', do: [{ id: y, kind: block, use: one }] }] }\n"
        "steps:\n  - { id: a, kind: block, use: one }\n"
    )

    assert errors_of(text) == [
        f"E510 blocks.one.steps[0].use: This block would call itself: one → two → one. {NO_RECURSION}",
        f"E510 blocks.two.steps[0].do[0].use: This block would call itself: two → one → two. {NO_RECURSION}",
    ]


def test_receipts_are_those_of_verify_steps() -> None:
    text = (
        "steps:\n  - { id: build, kind: shell, run: x }\n"
        "  - { id: check, kind: verify, checks: [{ name: x, run: y }] }\n"
        "  - { id: e, kind: end, status: succeeded, requires: [build, chek, check] }\n"
    )

    assert errors_of(text) == [
        'E221 steps[2].requires[0]: "build" is not a verify step, so it leaves no receipt. Verify steps: check.',
        'E405 steps[2].requires[1]: There is no step "chek". Did you mean "check"?',
    ]


def test_outcomes_declared_by_a_task_function_must_be_routed() -> None:
    functions = {"billing.charge": Declared(outcomes=("declined",)), "chat.post": {"outcomes": ()}}
    text = (
        "steps:\n  - { id: charge, kind: task, call: billing.charge }\n"
        "  - { id: post, kind: task, call: chat.post, next: { declined: done } }\n"
    )

    assert errors_of(text, functions=functions) == [
        'E305 steps[0]: "charge" does not route its outcome "declined". Add `declined: <step>` to its `next` '
        "(or `declined: continue`, `done`, `fail`).",
        'E301 steps[1].next.declined: "declined" is not an outcome of the task step "post". '
        "Outcomes: ok, failed, timed_out.",
    ]


def test_declared_outcomes_that_are_routed_are_fine() -> None:
    text = "steps:\n  - { id: charge, kind: task, call: billing.charge, next: { declined: done } }\n"

    assert errors_of(text, functions={"billing.charge": Declared(outcomes=("declined",))}) == []


def test_what_is_not_registered_is_a_warning() -> None:
    text = (
        "defaults: { model: deep, agent: coder }\nsteps:\n  - { id: a, kind: task, call: chat.pots }\n"
        "  - { id: b, kind: llm, prompt: x, model: fats }\n  - { id: c, kind: agent, prompt: x, agent: reviewer }\n"
        "  - { id: d, kind: langgraph, graph: research }\n"
    )

    assert warnings_of(text, functions={"chat.post": Declared()}, models=["fast"], agents=["coder"], graphs=[]) == [
        'W107 defaults.model: The model "deep" is not registered on this server.',
        'W107 steps[0].call: The task function "chat.pots" is not registered on this server.',
        'W107 steps[1].model: The model "fats" is not registered on this server.',
        'W107 steps[2].agent: The agent "reviewer" is not registered on this server.',
        'W107 steps[3].graph: The graph "research" is not registered on this server.',
    ]
    assert warnings_of(text) == []
