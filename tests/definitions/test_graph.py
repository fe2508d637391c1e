from __future__ import annotations

import re
from pathlib import Path

import pytest

from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.graph import mermaid
from workflows.definitions.source import read_source

DATA = Path(__file__).parent.parent / "data"
FILES = [*DATA.glob("cases/*/workflow.yaml"), *DATA.glob("examples/*.yaml")]


def drawn(text: str) -> str:
    return mermaid(compile_plan(freeze(read_source(text).document).document))


def test_a_small_plan_is_drawn_with_its_routes_and_sections():
    text = """
format: 1
name: demo
title: Say "hi" & <go>
steps:
  - { id: check, kind: condition, if: "${ true }", next: { then: end_it, else: each } }
  - id: each
    kind: map
    over: [1]
    do: [ { id: one, kind: shell, run: x } ]
    next: { ok: end_it, failed: end_it }
  - { id: end_it, kind: end, status: succeeded, title: The end }
finally: [ { id: tidy, kind: shell, run: x } ]
"""
    assert (
        drawn(text)
        == """flowchart TD
    start(["Say #quot;hi#quot; #amp; #lt;go#gt;"]) --> step_check
    step_check{"Check<br/>check · condition"}
    subgraph step_each["Each<br/>each · map"]
        step_one["One<br/>one · shell"]
        step_one --> in_each_done
        in_each_done((done))
    end
    step_end_it(["The end<br/>end_it · end"])
    step_check -->|"then"| step_end_it
    step_check -->|"else"| step_each
    step_each -->|"ok, failed"| step_end_it
    subgraph section_finally["finally"]
        step_tidy["Tidy<br/>tidy · shell"]
        step_tidy --> section_finally_done
        section_finally_done((done))
    end
"""
    )


def test_branches_and_blocks_are_boxes():
    text = """
format: 1
name: demo
steps:
  - id: both
    kind: parallel
    branches:
      left: [ { id: a, kind: shell, run: x } ]
      right: [ { id: b, kind: shell, run: x, next: { failed: done } } ]
  - { id: say, kind: block, use: announce }
blocks:
  announce: { steps: [ { id: c, kind: shell, run: x } ] }
"""
    found = drawn(text)
    assert 'subgraph in_both_left["left"]' in found
    assert 'step_b -->|"ok, failed"| in_both_right_done' in found
    assert 'step_say[["Say<br/>say · block"]]' in found
    assert 'subgraph block_announce["block announce"]' in found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_is_drawn_with_all_its_steps_and_balanced_boxes(path):
    plan = compile_plan(freeze(read_source(path.read_bytes()).document).document)
    found = mermaid(plan)
    assert found.startswith("flowchart TD\n")
    for step in plan.steps:
        assert len(re.findall(rf"^ *(?:subgraph )?step_{step}[\[({{]", found, re.MULTILINE)) == 1
    assert len(re.findall(r"^ *subgraph ", found, re.MULTILINE)) == len(re.findall(r"^ *end$", found, re.MULTILINE))
