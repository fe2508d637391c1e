from __future__ import annotations

from pathlib import Path

import pytest

from workflows.definitions.compiler import compile_plan, compiled
from workflows.definitions.freezing import freeze
from workflows.definitions.kinds import KINDS, keys_of
from workflows.definitions.plan import Plan, RetryPolicy
from workflows.definitions.source import read_source
from workflows.errors import Refusal
from workflows.expressions import Value, compile_value

DATA = Path(__file__).parent.parent / "data"
FILES = [*DATA.glob("cases/*/workflow.yaml"), *DATA.glob("examples/*.yaml"), DATA / "parameters" / "probe.yaml"]
REFERENCE = (DATA / "examples" / "reference.yaml").read_text()


def plan_of(steps: str, *, before: str = "", after: str = "") -> Plan:
    text = f"format: 1\nname: demo\n{before}\nsteps:\n{steps}\n{after}"
    return compile_plan(freeze(read_source(text).document).document)


@pytest.fixture(scope="module")
def reference() -> Plan:
    return compile_plan(freeze(read_source(REFERENCE).document).document)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_compiles_to_routes_that_exist(path):
    plan = compile_plan(freeze(read_source(path.read_bytes()).document).document)
    for step in plan.steps.values():
        siblings = {sibling.id for sibling in step.body.steps}
        assert set(step.routes.values()) <= siblings | {"done", "fail"}
        assert step.body.steps[step.position] is step


def test_steps_are_listed_in_reading_order(reference):
    assert list(reference.steps)[:3] == ["build", "list", "charge"]
    assert list(reference.steps)[-4:] == ["tidy", "tell", "clean", "post"]
    each = list(reference.steps).index("each_host")
    assert list(reference.steps)[each : each + 6] == ["each_host", "ping", "each_block", "both", "go_left", "go_right"]


def test_every_key_of_the_format_is_reachable(reference):
    elsewhere = {
        "id", "kind", "title", "only_if", "next", "max_visits", "sensitive", "timeout", "retry", "limit", "access",
        "workspace", "idempotent", "note", "vars", "do", "branches", "remind", "lease",
    }  # fmt: skip
    for step in reference.steps.values():
        assert set(keys_of(step.kind)) - elsewhere <= set(step.options), step.kind
    assert {step.kind for step in reference.steps.values()} == set(KINDS)


def test_outcomes_that_the_file_does_not_route_get_the_defaults_of_the_format():
    plan = plan_of("""
  - { id: a, kind: shell, run: x, only_if: "${ true }", max_visits: 2 }
  - { id: b, kind: shell, run: x, only_if: "${ true }", next: { ok: done, failed: c } }
  - { id: c, kind: map, over: [1], next: { ok: a }, do: [ { id: i, kind: shell, run: x } ] }
  - { id: d, kind: condition, if: "${ true }", only_if: "${ true }" }
  - { id: e, kind: end, status: succeeded, only_if: "${ true }" }
  - { id: f, kind: wait, signal: go }
""")
    assert plan.steps["a"].routes == {
        "ok": "b", "failed": "fail", "timed_out": "fail", "skipped": "b", "exhausted": "fail"
    }  # fmt: skip
    assert plan.steps["b"].routes == {"ok": "done", "failed": "c", "timed_out": "c", "skipped": "done"}
    assert plan.steps["c"].routes == {
        "ok": "a", "empty": "a", "over_budget": "fail", "failed": "fail", "timed_out": "fail"
    }  # fmt: skip
    assert plan.steps["i"].routes == {"ok": "done", "failed": "fail", "timed_out": "fail"}
    assert plan.steps["d"].routes == {"then": "e", "else": "e", "failed": "fail", "skipped": "e"}
    assert plan.steps["e"].routes == {"skipped": "f"}
    assert plan.steps["f"].routes == {"received": "done", "expired": "fail", "failed": "fail"}


def test_continue_is_the_following_step_and_done_after_the_last():
    plan = plan_of("""
  - { id: a, kind: shell, run: x, exits: { odd: [3] }, next: { odd: continue, failed: continue } }
  - { id: b, kind: shell, run: x, next: continue }
""")
    assert plan.steps["a"].routes == {"ok": "b", "odd": "b", "failed": "b", "timed_out": "b"}
    assert plan.steps["b"].routes["ok"] == "done"
    assert plan.main.following(plan.steps["a"]) == "b"
    assert plan.main.following(plan.steps["b"]) == "done"


def test_outcomes_of_a_task_function_are_routed_as_written_and_fail_otherwise():
    step = plan_of("  - { id: a, kind: task, call: x.y, next: { ok: done, declined: done } }").steps["a"]
    assert step.route("declined") == "done"
    assert step.route("unheard_of") == "fail"
    assert step.is_routed("declined")
    assert not step.is_routed("unheard_of")


def test_outcomes_that_fail_by_default_are_told_apart_from_those_routed_to_fail():
    plan = plan_of("""
  - { id: a, kind: shell, run: x }
  - { id: b, kind: shell, run: x, next: { failed: fail } }
  - { id: c, kind: shell, run: x, next: { failed: done, timed_out: fail } }
""")
    assert plan.steps["a"].unrouted == {"failed", "timed_out"}
    assert plan.steps["b"].unrouted == frozenset()
    assert plan.steps["c"].unrouted == frozenset()


@pytest.mark.parametrize(
    ("step", "timeout"),
    [
        ("kind: shell, run: x", 600_000),
        ("kind: task, call: x.y", 600_000),
        ("kind: http, url: https://a.example", 600_000),
        ("kind: llm, prompt: x", 600_000),
        ("kind: verify, checks: [{ name: a, run: b }]", 600_000),
        ("kind: shell, run: x, timeout: 1m30s", 90_000),
        ("kind: approval, ask: x", 604_800_000),
        ("kind: question, ask: x", 604_800_000),
        ("kind: wait, signal: x", 604_800_000),
        ("kind: wait, for: 1s", None),
        ("kind: wait, until: x", None),
        ("kind: assign, set: {}", None),
        ("kind: end, status: failed", None),
        ("kind: workflow, ref: other", None),
        ("kind: external, queue: q", None),
        ("kind: langgraph, graph: g", None),
        ("kind: map, over: [], do: [{ id: b, kind: shell, run: x }]", None),
        ("kind: map, over: [], timeout: 1h, do: [{ id: b, kind: shell, run: x }]", 3_600_000),
    ],
)
def test_timeouts_default_by_kind(step, timeout):
    assert plan_of(f"  - {{ id: a, {step} }}").steps["a"].timeout == timeout


def test_the_file_sets_defaults_for_timeout_retry_and_environment():
    plan = plan_of(
        """
  - { id: a, kind: shell, run: x, env: { B: 2, C: null, K: { secret: key } } }
  - { id: b, kind: verify, checks: [ { name: a, run: b, timeout: 1s }, { name: c, run: d } ] }
  - { id: c, kind: shell, run: x, retry: 5, timeout: 1s }
  - { id: d, kind: workflow, ref: other }
""",
        before="secrets: [key]\ndefaults: { timeout: 2m, retry: 2, env: { A: 1, B: 1, C: 1 } }",
    )
    assert plan.steps["a"].timeout == 120_000
    assert plan.steps["a"].retry == (RetryPolicy(attempts=2),)
    env = plan.steps["a"].options["env"]
    assert env.pop("K") == {"secret": "key"}
    assert {name: value.evaluate({}) for name, value in env.items()} == {"A": 1, "B": 2, "C": None}
    assert plan.steps["b"].timeout == 120_000
    assert plan.steps["b"].retry == ()
    assert [check["timeout"] for check in plan.steps["b"].options["checks"]] == [1_000, None]
    assert (plan.steps["c"].timeout, plan.steps["c"].retry) == (1_000, (RetryPolicy(attempts=5),))
    assert (plan.steps["d"].timeout, plan.steps["d"].retry) == (None, ())


def test_retry_policies_have_their_units_resolved(reference):
    network_and_timeouts = RetryPolicy(
        attempts=4, wait_ms=5_000, factor=2.0, max_wait_ms=60_000, errors=frozenset({"network", "timeout"})
    )
    exits = RetryPolicy(attempts=2, wait_ms=1_000, factor=2.0, max_wait_ms=300_000, errors=frozenset({"exit_nonzero"}))
    assert reference.steps["build"].retry == (network_and_timeouts, exits)
    assert network_and_timeouts.jitter


def test_a_timeout_may_be_an_expression():
    timeout = plan_of('  - { id: a, kind: shell, run: x, timeout: "${ params.wait }" }').steps["a"].timeout
    assert isinstance(timeout, Value)
    assert timeout.evaluate({"params": {"wait": "5s"}}) == "5s"


def test_options_of_a_shell_step_have_templates_compiled_and_scripts_as_they_are():
    options = (
        plan_of("""
  - id: a
    kind: shell
    run: echo "${HOME}"
    stdin: ${ params.x }
    exits: { odd: [1, 3], even: [2] }
""")
        .steps["a"]
        .options
    )
    assert options["run"] == 'echo "${HOME}"'
    assert options["argv"] is None
    assert options["stdin"].evaluate({"params": {"x": [1]}}) == [1]
    assert options["exits"] == {1: "odd", 3: "odd", 2: "even"}
    assert (options["parse"], options["schema"], options["cwd"], options["env"]) == ("text", None, None, {})


def test_options_of_the_pure_kinds():
    plan = plan_of("""
  - { id: a, kind: assign, set: { n: "${ vars.n + 1 }", text: fixed } }
  - { id: b, kind: condition, if: "${ vars.n > 1 }" }
  - { id: c, kind: condition, cases: [ { when: "${ vars.n > 5 }", outcome: large } ], next: { large: d, else: d } }
  - { id: d, kind: wait, for: 10s }
  - { id: e, kind: end, status: failed, reason: "n is ${ vars.n }", output: null, requires: [] }
""")
    names = {"vars": {"n": 6}}
    assert {name: value.evaluate(names) for name, value in plan.steps["a"].options["set"].items()} == {
        "n": 7,
        "text": "fixed",
    }
    assert plan.steps["b"].options["if"].evaluate(names) is True
    assert plan.steps["b"].options["cases"] == ()
    assert [(when.evaluate(names), outcome) for when, outcome in plan.steps["c"].options["cases"]] == [(True, "large")]
    assert plan.steps["d"].options["for"].evaluate({}) == "10s"
    end = plan.steps["e"].options
    assert (end["status"], end["reason"].evaluate(names), end["requires"]) == ("failed", "n is 6", ())
    assert end["output"].evaluate({}) is None


def test_an_end_step_without_output_keeps_the_usual_one():
    assert plan_of("  - { id: a, kind: end, status: succeeded }").steps["a"].options["output"] is None


def test_options_of_people(reference):
    sign_off, text, choice = (reference.steps[name].options for name in ("sign_off", "ask_text", "ask_choice"))
    assert sign_off["by"].evaluate({}) == {"groups": ["leads"], "users": ["alice"]}
    assert (sign_off["quorum"], sign_off["not_by"].evaluate({}), sign_off["remind_ms"]) == (
        2,
        ["requester"],
        14_400_000,
    )
    assert sign_off["form"] == ({"name": "reason", "type": "string", "optional": True},)
    assert [entry["name"] for entry in sign_off["show"]] == ["summary"]
    assert text["choices"] == ()
    assert choice["choices"] == ({"name": "go", "label": "Go ahead"}, {"name": "stop", "label": "Stop here"})
    assert choice["form"] == ()


def test_a_question_without_form_and_choices_has_one_text_field():
    form = plan_of("  - { id: a, kind: question, ask: x }").steps["a"].options["form"]
    assert form == ({"name": "answer", "type": "string", "title": "Answer"},)


@pytest.mark.parametrize(
    ("join", "rule"),
    [
        ("all", {"rule": "all"}),
        ("any", {"rule": "any"}),
        ("settled", {"rule": "settled"}),
        ("{ at_least: 3 }", {"rule": "at_least", "count": 3}),
        ('{ at_least: "80%" }', {"rule": "at_least", "percent": 80.0}),
        ('{ at_least: "3" }', {"rule": "at_least", "count": 3.0}),
    ],
)
def test_joins_are_one_form(join, rule):
    step = f"  - {{ id: a, kind: map, over: [], join: {join}, do: [ {{ id: b, kind: shell, run: x }} ] }}"
    assert plan_of(step).steps["a"].options["join"] == rule


def test_bodies_know_their_owner_their_variables_and_their_result(reference):
    each = reference.steps["each_host"].bodies["do"]
    assert (each.kind, each.owner, each.first) == ("item", "each_host", "ping")
    assert each.vars["tries"].evaluate({}) == 0
    assert each.collect == compile_value("${ steps.ping.output }")
    both = reference.steps["both"].bodies
    assert list(both) == ["left", "right"]
    assert {body.kind for body in both.values()} == {"branch"}
    announce = reference.blocks["announce"]
    assert reference.steps["say"].bodies == {"do": announce}
    assert reference.steps["each_block"].bodies == {"do": announce}
    assert (announce.kind, announce.owner, announce.first) == ("block", "announce", "post")
    assert announce.params == ({"name": "text", "type": "string"},)


def test_branches_keep_the_order_of_the_file():
    plan = plan_of("""
  - id: a
    kind: parallel
    branches: { right: [ { id: b, kind: shell, run: x } ], left: [ { id: c, kind: shell, run: x } ] }
""")
    assert list(plan.steps["a"].bodies) == ["right", "left"]


def test_a_block_may_call_a_block_that_is_written_later():
    plan = plan_of(
        "  - { id: a, kind: block, use: outer }",
        after="""
blocks:
  outer: { steps: [ { id: b, kind: block, use: inner } ] }
  inner: { steps: [ { id: c, kind: shell, run: x } ] }
""",
    )
    assert plan.steps["a"].bodies["do"].steps[0].bodies["do"].first == "c"


def test_the_plan_has_what_the_top_of_the_file_says(reference):
    assert (reference.name, reference.title, reference.owner, reference.tags) == (
        "reference",
        "Reference of all keys",
        "platform",
        ("docs",),
    )
    assert reference.description.startswith("Lists **every** key.")
    assert [field["name"] for field in reference.params][:3] == ["env", "version", "count"]
    assert reference.secrets == ("deploy_key", "api_token")
    budget = reference.budget
    assert (budget.visits, budget.time_ms, budget.cost_usd, budget.tokens, budget.llm_calls, budget.failures) == (
        500, 28_800_000, "10", 500_000, 100, 5
    )  # fmt: skip
    concurrency = reference.concurrency
    assert concurrency is not None
    assert concurrency.key.evaluate({"params": {"env": "dev"}}) == "reference-dev"
    assert (concurrency.max, concurrency.when_full) == (1, "queue")
    assert reference.schedule[0]["cron"] == "0 6 * * 1-5"
    assert reference.returns == {"type": "object"}
    assert reference.main.vars["round"].evaluate({}) == 0
    assert reference.section("on_failure").first == "tell"
    assert reference.section("finally").first == "clean"


def test_what_is_left_out_has_its_default():
    plan = plan_of("  - { id: roll_out, kind: shell, run: x }")
    assert (plan.title, plan.budget.visits, plan.budget.time_ms) == ("demo", 10_000, None)
    assert (plan.on_failure, plan.closing, plan.output, plan.returns) == (None, None, None, None)
    step = plan.steps["roll_out"]
    assert step.title.evaluate({}) == "Roll out"
    assert (step.only_if, step.max_visits, step.access, step.idempotent) == (None, None, None, None)
    assert (step.workspace, step.sensitive, step.limit, step.main_outcome) == ("shared", False, None, "ok")


def test_limits_are_slots_or_a_rate(reference):
    assert reference.steps["build"].limit == {"group": "builders", "max": 2}
    assert reference.steps["charge"].limit == {"group": "billing", "starts": 60, "per_ms": 60_000}


def test_a_stored_plan_is_compiled_once_and_checked_against_its_hash():
    frozen = freeze(read_source("format: 1\nname: demo\nsteps: [ { id: a, kind: shell, run: x } ]").document)
    plan = compiled(frozen.hash, frozen.canonical)
    assert compiled(frozen.hash, frozen.canonical) is plan
    with pytest.raises(Refusal) as caught:
        compiled(frozen.hash, frozen.canonical.replace('"x"', '"y"'))
    assert caught.value.code == "plan.corrupt"


def test_500_steps_compile_quickly():
    steps = "\n".join(
        f'  - {{ id: s{n}, kind: shell, run: echo, env: {{ N: "${{ vars.n + {n} }}" }} }}' for n in range(500)
    )
    assert len(plan_of(steps, before="vars: { n: 0 }").steps) == 500
