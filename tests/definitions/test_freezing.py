"""Freezing. Checks PLAN.1 and PLAN.2 as far as they need no database."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from workflows.definitions.freezing import freeze, verify
from workflows.definitions.source import read_source
from workflows.errors import Refusal
from workflows.jsonvalue import canonical

DATA = Path(__file__).parent.parent / "data"
FILES = [*DATA.glob("cases/*/workflow.yaml"), *DATA.glob("examples/*.yaml"), DATA / "parameters" / "probe.yaml"]

BASE = """
format: 1
name: demo
params:
  b: { type: string }
  a: { type: integer, default: 1.0 }
vars: { round: 0, picked: { value: null } }
steps:
  - id: one
    kind: shell
    run: echo one
    retry: 3
    next: two
  - id: two
    kind: question
    ask: What now?
    show: { z: 1, y: 2 }
    choices: { go_on: Go on, stop: Stop }
    form: { why: { type: string } }
    next: { go_on: one, stop: done }
    max_visits: 2
"""
SAME = """
# another order, other quotes, other shorthands
name: "demo"
vars:
  picked: { value: }
  round: { value: 0 }
format: 1
steps:
  - kind: shell        # the same step
    retry: [ { attempts: 3 } ]
    run: 'echo one'
    id: one
    next: { ok: two }
  - kind: question
    max_visits: 2
    choices: [ go_on, stop ]
    next: { stop: done, go_on: one }
    id: two
    show: { z: 1, y: 2 }
    ask: |-
      What now?
    form: { why: { "type": string } }
params:
  b: { type: string }
  a: { default: 1, type: integer }
"""


def frozen(text: str):
    return freeze(read_source(text).document)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_is_its_own_canonical_form_with_the_hash_of_its_bytes(path):
    plan = frozen(path.read_text())
    assert canonical(json.loads(plan.canonical)) == plan.canonical
    assert plan.hash == hashlib.sha256(plan.canonical.encode()).hexdigest()
    assert verify(plan.canonical, plan.hash) == plan.document


def test_comments_quotes_order_of_keys_and_shorthands_do_not_change_the_hash():
    assert frozen(SAME).canonical == frozen(BASE).canonical
    assert frozen(SAME).hash == frozen(BASE).hash


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        ("run: echo one", "run: echo  one"),
        ("ask: What now?", "ask: What then?"),
        ("kind: shell", "kind: shell\n    note: Read this."),
        ("name: demo", "name: demo\ntitle: Demo"),
        (
            "b: { type: string }\n  a: { type: integer, default: 1.0 }",
            "a: { type: integer, default: 1.0 }\n  b: { type: string }",
        ),
        ("show: { z: 1, y: 2 }", "show: { y: 2, z: 1 }"),
        ("{ go_on: Go on, stop: Stop }", "{ stop: Stop, go_on: Go on }"),
        ("{ go_on: Go on,", "{ go_on: Go,"),
        ("retry: 3", "retry: 4"),
        ("next: two", "next: { ok: two, failed: fail }"),
    ],
)  # fmt: skip
def test_whatever_people_or_the_engine_see_changes_the_hash(written, changed):
    assert written in BASE
    assert frozen(BASE.replace(written, changed)).hash != frozen(BASE).hash


def test_shorthands_are_expanded_and_ordered_mappings_become_lists():
    document = frozen(BASE).document
    assert document["params"] == [{"name": "b", "type": "string"}, {"name": "a", "type": "integer", "default": 1}]
    assert document["vars"] == {"round": {"value": 0}, "picked": {"value": None}}
    one, two = document["steps"]
    assert one["next"] == {"ok": "two"}
    assert one["retry"] == [{"attempts": 3}]
    assert two["show"] == [{"name": "z", "value": 1}, {"name": "y", "value": 2}]
    assert two["choices"] == [{"name": "go_on", "label": "Go on"}, {"name": "stop", "label": "Stop"}]
    assert two["form"] == [{"name": "why", "type": "string"}]


@pytest.mark.parametrize(
    ("step", "main"),
    [
        ("kind: wait\n    signal: paid", "received"),
        ("kind: wait\n    for: 1s", "elapsed"),
        ("kind: approval\n    ask: Now?", "approved"),
        ("kind: verify\n    checks: [{ name: a, run: b }]", "passed"),
    ],
)
def test_a_single_target_is_the_route_of_the_main_outcome(step, main):
    document = frozen(f"format: 1\nname: demo\nsteps:\n  - id: a\n    {step}\n    next: done\n").document
    assert document["steps"][0]["next"] == {main: "done"}


def test_a_policy_of_retry_is_a_list_of_one_also_in_the_defaults():
    document = frozen(
        "format: 1\nname: demo\ndefaults: { retry: 2 }\nsteps:\n"
        "  - { id: a, kind: shell, run: x, retry: { attempts: 2, wait: 1s } }\n"
    ).document
    assert document["defaults"] == {"retry": [{"attempts": 2}]}
    assert document["steps"][0]["retry"] == [{"attempts": 2, "wait": "1s"}]


def test_bodies_branches_and_blocks_are_rewritten_like_the_main_steps():
    document = frozen(
        """
format: 1
name: demo
steps:
  - id: each
    kind: map
    over: [1]
    vars: { n: 1 }
    do: [ { id: a, kind: shell, run: x, next: done } ]
  - id: both
    kind: parallel
    branches:
      right: [ { id: b, kind: shell, run: x, next: done } ]
      left: [ { id: c, kind: shell, run: x, retry: 2 } ]
on_failure: [ { id: d, kind: shell, run: x, next: done } ]
finally: [ { id: e, kind: shell, run: x, next: done } ]
blocks:
  say: { params: { z: { type: string }, y: { type: string } }, vars: { n: 1 },
         steps: [ { id: f, kind: shell, run: x, next: done } ] }
"""
    ).document
    each, both = document["steps"]
    assert each["vars"] == {"n": {"value": 1}}
    assert each["do"][0]["next"] == {"ok": "done"}
    assert [branch["name"] for branch in both["branches"]] == ["right", "left"]
    assert both["branches"][0]["steps"][0]["next"] == {"ok": "done"}
    assert both["branches"][1]["steps"][0]["retry"] == [{"attempts": 2}]
    assert document["on_failure"][0]["next"] == {"ok": "done"}
    assert document["finally"][0]["next"] == {"ok": "done"}
    block = document["blocks"]["say"]
    assert [field["name"] for field in block["params"]] == ["z", "y"]
    assert block["vars"] == {"n": {"value": 1}}
    assert block["steps"][0]["next"] == {"ok": "done"}


def test_keys_that_only_look_like_shorthands_are_left_alone():
    document = frozen(
        "format: 1\nname: demo\nsteps:\n"
        "  - { id: a, kind: task, call: x.y, with: { params: { b: 1 }, next: c, show: { z: 1 }, retry: 2 } }\n"
    ).document
    assert document["steps"][0]["with"] == {"params": {"b": 1}, "next": "c", "show": {"z": 1}, "retry": 2}


def test_freezing_does_not_change_the_document_it_was_given():
    document = read_source(BASE).document
    before = json.dumps(document)
    freeze(document)
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1.0, "a": -0.0}, '{"a":0,"b":1}'),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"\U0001f600":1,"\ufb33":2}'),
        ([1e21, 1e-7, 1e20], "[1e+21,1e-7,100000000000000000000]"),
        ({"10": 1, "9": 2, "a": 3}, '{"10":1,"9":2,"a":3}'),
    ],
)
def test_the_canonical_form_has_the_known_vectors(value, text):
    assert canonical(value) == text
    assert (
        canonical(json.loads(text, parse_int=lambda digits: float(digits) if len(digits) > 16 else int(digits))) == text
    )


def test_the_hash_has_its_known_vector():
    text = '{"a":0,"b":1}'
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "f4c1d8bd90d7ccd720aa5a69a67185fb9caf4f35926a4eacf53a86d0e70bdf88"
    )
    assert verify(text, "f4c1d8bd90d7ccd720aa5a69a67185fb9caf4f35926a4eacf53a86d0e70bdf88") == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    "text", ['{"b":1,"a":2}', '{"a": 1}', '{"a":1.0}', "{", "", "[1]", "null", '{"a":1,"a":2}', '{"a":NaN}', '"\ud800"']
)
def test_a_stored_document_that_is_not_canonical_is_refused_even_with_its_own_hash(text):
    own_hash = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    with pytest.raises(Refusal) as caught:
        verify(text, own_hash, plan="demo version 2")
    assert caught.value.code == "plan.corrupt"
    assert caught.value.message == "The stored plan of demo version 2 does not match its hash."


def test_a_stored_document_with_another_hash_is_refused():
    plan = frozen(BASE)
    with pytest.raises(Refusal) as caught:
        verify(plan.canonical.replace("echo one", "echo two"), plan.hash)
    assert caught.value.code == "plan.corrupt"
