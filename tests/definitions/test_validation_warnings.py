from __future__ import annotations

from tests.definitions.test_validation_references import Declared
from tests.definitions.validating import warnings_of


def may_not_have_run(place: str, target: str, reader: str, reason: str) -> str:
    return (
        f'W101 {place}: "{target}" may not have run when "{reader}" reads its output ({reason}). '
        "Compare its outcome first."
    )


SKIPPED = "it is skipped by `only_if`"
AROUND = "a route leads around it"
FLAG = "params: { flag: { type: boolean } }\n"
FETCH = FLAG + 'steps:\n  - { id: fetch, kind: shell, run: x, only_if: "${ params.flag }" }\n'


def test_reading_a_step_that_may_be_skipped() -> None:
    text = FETCH + '  - { id: report, kind: shell, run: x, stdin: "${ steps.fetch.output }" }\n'

    assert warnings_of(text) == [may_not_have_run("steps[1].stdin", "fetch", "report", SKIPPED)]


def test_reading_a_step_that_a_route_leads_around() -> None:
    text = FLAG + (
        'steps:\n  - { id: a, kind: condition, if: "${ params.flag }", next: { then: c } }\n'
        "  - { id: b, kind: shell, run: x }\n"
        '  - { id: c, kind: shell, run: x, env: { A: "x ${ steps.b.output }" } }\n'
    )

    assert warnings_of(text) == [may_not_have_run("steps[2].env.A", "b", "c", AROUND)]


def test_a_body_that_reads_a_step_outside_which_may_be_skipped() -> None:
    text = FETCH + (
        "  - id: each\n    kind: map\n    over: ${ [1] }\n    do:\n"
        '      - { id: report, kind: shell, run: x, stdin: "${ steps.fetch.output.rows }" }\n'
    )

    assert warnings_of(text) == [may_not_have_run("steps[1].do[0].stdin", "fetch", "report", SKIPPED)]


def test_asking_for_the_outcome_first_is_enough() -> None:
    readers = (
        "stdin: \"${ steps.fetch.outcome == 'ok' ? steps.fetch.output : [] }\"",
        'stdin: "${ steps.fetch.visits > 0 ? steps.fetch.output : [] }"',
        'stdin: "${ steps.fetch.output != null ? steps.fetch.output.x : 0 }"',
        "stdin: \"${ get(steps.fetch.output, 'x', 0) }\"",
        'only_if: "${ steps.fetch.outcome == \'ok\' }", stdin: "${ steps.fetch.output }"',
        'only_if: "${ params.flag }", stdin: "${ steps.fetch.output }"',
        'stdin: "${ steps.fetch.outcome }"',
    )
    for reader in readers:
        assert warnings_of(f"{FETCH}  - {{ id: report, kind: shell, run: x, {reader} }}\n") == []


def test_a_result_of_the_last_round_of_a_loop_may_be_null() -> None:
    text = (
        "steps:\n  - { id: fix, kind: agent, prompt: x, max_visits: 3, "
        'context: { last: "${ steps.check.output }", why: "${ steps.check.output.reason }" } }\n'
        "  - { id: check, kind: verify, checks: [{ name: t, run: x }], next: { not_passed: fix } }\n"
    )

    assert warnings_of(text) == [may_not_have_run("steps[0].context.why", "check", "fix", AROUND)]


def test_outputs_and_closing_sections_read_what_has_run_without_a_warning() -> None:
    text = FETCH + (
        'finally: [{ id: tell, kind: shell, run: x, stdin: "${ steps.fetch.output }" }]\n'
        'output: "${ steps.fetch.output }"\n'
    )

    assert warnings_of(text) == []


def test_answers_of_models_in_instructions() -> None:
    text = (
        "steps:\n  - { id: classify, kind: llm, prompt: x }\n  - { id: plan, kind: agent, prompt: x }\n"
        '  - { id: act, kind: agent, prompt: "Do ${ steps.classify.output.label }", '
        'context: { plan: "${ steps.plan.output }" } }\n'
        '  - { id: more, kind: llm, system: "${ steps.plan.output }", prompt: "${ steps.classify.outcome }" }\n'
    )

    assert warnings_of(text) == [
        'W102 steps[2].prompt: The answer of the language model "classify" is put into the instructions of "act". '
        "Put it into `context:`.",
        'W102 steps[3].system: The answer of the agent "plan" is put into the instructions of "more". '
        "Put it into `context:`.",
    ]


def test_writes_that_are_retried() -> None:
    advice = "Use WAYPOST_IDEMPOTENCY_KEY or make it safe to repeat."
    text = (
        "steps:\n  - { id: deploy, kind: http, method: POST, url: 'https://x.example', retry: 3 }\n"
        "  - { id: read, kind: http, url: 'https://x.example', retry: 3 }\n"
        "  - { id: put, kind: http, method: PUT, url: 'https://x.example', retry: 3, idempotent: true }\n"
        "  - { id: edit, kind: agent, access: write, prompt: x, retry: 2 }\n"
        "  - { id: charge, kind: task, call: billing.charge, retry: 2 }\n"
        "  - { id: safe, kind: task, call: billing.safe, retry: 2 }\n"
        "  - { id: script, kind: shell, run: x, retry: 2 }\n"
    )
    functions = {
        "billing.charge": Declared(access="write"),
        "billing.safe": Declared(access="write", idempotent=True),
    }

    assert warnings_of(text, functions=functions) == [
        f'W103 steps[0].retry: "deploy" has `retry` and writes outside (http POST). {advice}',
        f'W103 steps[3].retry: "edit" has `retry` and writes outside (agent). {advice}',
        f'W103 steps[4].retry: "charge" has `retry` and writes outside (task). {advice}',
    ]


def test_people_without_a_deadline() -> None:
    text = (
        "steps:\n  - { id: sign_off, kind: approval, ask: x }\n  - { id: ask, kind: question, ask: x }\n"
        "  - { id: in_time, kind: question, ask: x, timeout: 1d }\n  - { id: signal, kind: wait, signal: x }\n"
    )

    assert warnings_of(text) == [
        'W104 steps[0]: "sign_off" waits for people without `timeout`; it expires after 7 days.',
        'W104 steps[1]: "ask" waits for people without `timeout`; it expires after 7 days.',
    ]


def test_parameters_that_nothing_reads() -> None:
    text = (
        "params: { region: { type: string }, day: { type: date } }\n"
        "blocks: { one: { params: { region: { type: string }, text: { type: string } }, "
        'steps: [{ id: x, kind: shell, run: x, stdin: "${ params.text }" }] } }\n'
        'steps:\n  - { id: a, kind: block, use: one, with: { region: x, text: "${ params.day }" } }\n'
    )

    assert warnings_of(text) == [
        'W105 params.region: Parameter "region" is declared but never used.',
        'W105 blocks.one.params.region: Parameter "region" is declared but never used.',
    ]


def test_reading_all_parameters_at_once_uses_each() -> None:
    text = FLAG + 'steps:\n  - { id: a, kind: shell, run: x, stdin: "${ params }" }\n'

    assert warnings_of(text) == []


def test_routes_that_are_the_default() -> None:
    text = (
        "steps:\n  - { id: a, kind: approval, ask: x, timeout: 1d, next: { rejected: fail, expired: fail } }\n"
        "  - { id: b, kind: shell, run: x, next: { ok: continue, failed: done, timed_out: done } }\n"
        "  - { id: c, kind: condition, if: true, next: { then: continue, else: continue } }\n"
    )
    same = "to the same place as the default; the entry can be left out."

    assert warnings_of(text) == [
        f'W106 steps[0].next: Step "a" routes "rejected" and "expired" {same}',
        f'W106 steps[1].next: Step "b" routes "ok" and "timed_out" {same}',
    ]
