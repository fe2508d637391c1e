"""A sample of every problem, found by the code itself.

The files are those of ``data/errors`` and of ``samples.txt``; parameters and warnings have samples here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.processes import PROJECT
from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.parameters import check_parameters
from workflows.definitions.source import read_source
from workflows.definitions.validation import Known, validate
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import read_json
from workflows.operations.readiness import refuse_unless_ready

_PARAMETERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"region": {"type": "string"}}, {}),
    ({"rows": {"type": "integer"}}, {"rows": "ten"}),
    ({"region": {"type": "string", "optional": True}}, {"regoin": "eu"}),
    ({"env": {"type": "string", "enum": ["dev", "prod"]}}, {"env": "prd"}),
    ({"payload": {"type": "object"}}, {"payload": {"rate": float("nan")}}),
    ({"payload": {"type": "object"}}, {"payload": {"id": 9007199254740993}}),
    ({"payload": {"type": "object"}}, {"payload": {"name": "a\0b"}}),
    ({"text": {"type": "string"}}, {"text": "x" * 1_372_160}),
    ({"day": {"type": "date"}}, {"day": "31.12.2026"}),
    ({"version": {"type": "string", "pattern": r"\d+\.\d+\.\d+", "example": "1.4.0"}}, {"version": "v1.4"}),
    ({"count": {"type": "integer", "min": 1, "max": 100}}, {"count": 0}),
    ({"payload": {"type": "object"}}, {"payload": {"api_token": "hunter2hunter2"}}),
]
_DEEP: Any = 0
for _ in range(70):
    _DEEP = {"a": _DEEP}

_FILES = [
    "steps:\n  - { id: fetch, kind: shell, run: x, only_if: '${ run.started_by == \"ada\" }' }\n"
    "  - { id: report, kind: shell, run: x, stdin: '${ steps.fetch.output }' }\n",
    "steps:\n  - { id: classify, kind: llm, prompt: Classify }\n"
    "  - { id: act, kind: llm, prompt: 'Do ${ steps.classify.output }' }\n",
    "steps:\n  - { id: deploy, kind: http, url: 'https://example.com', method: POST, retry: 3 }\n",
    "steps:\n  - { id: sign_off, kind: approval, ask: 'Go?' }\n",
    "params: { region: { type: string } }\nsteps:\n  - { id: a, kind: shell, run: x }\n",
    "steps:\n  - { id: a, kind: approval, ask: 'Go?', timeout: 1d, next: { rejected: fail } }\n",
    "steps:\n  - { id: a, kind: task, call: chat.post }\n",
]
#: A file that lacks something only when a run of it starts.
_LACKS = """format: 1
name: demo
secrets: [github_token]
steps:
  - { id: a, kind: task, call: chat.post }
  - { id: b, kind: shell, run: x, env: { TOKEN: { secret: github_token } } }
"""


@cache
def problems() -> dict[str, Problem]:
    """One problem of each code."""
    found: dict[str, Problem] = {}
    for case in json.loads((PROJECT / "tests/data/errors/cases.json").read_text(encoding="utf-8")):
        found.setdefault(case["code"], Problem(**case["expect"]))
    for text in (Path(__file__).parent / "samples.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        code, _, file = text.partition("\n")
        found.update({problem.code: problem for problem in validate(file, known()).problems if problem.code == code})
    for fields, values in [*_PARAMETERS, ({"payload": {"type": "object"}}, {"payload": _DEEP})]:
        checked = check_parameters(_named(fields), values)
        for problem in (*checked.problems, *checked.warnings):
            found.setdefault(problem.code, problem)
    for text in _FILES:
        for problem in validate(f"format: 1\nname: demo\n{text}", known()).problems:
            found.setdefault(problem.code, problem)
    for problem in [*read_json('{"a": 1, "a": 2}')[1], *_lacking()]:
        found.setdefault(problem.code, problem)
    return found


def _lacking() -> tuple[Problem, ...]:
    plan = compile_plan(freeze(read_source(_LACKS.encode()).document).document)
    try:
        refuse_unless_ready(plan)
    except Refusal as refusal:
        return refusal.problems
    raise AssertionError("nothing is missing")


def known() -> Known:
    return Known(
        workflows={"deploy": {"params": ["region"], "calls": []}},
        functions={},
        models=frozenset(),
        agents=frozenset(),
        graphs=frozenset(),
    )


def _named(fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **field} for name, field in fields.items()]
