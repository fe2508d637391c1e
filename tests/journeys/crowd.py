"""A scenario from its start to its end through the command line, with people who answer as its case says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.commands.support import Answer
from workflows.models import Interrupt, Visit

Manage = Callable[..., Answer]
#: Who answers where the case names nobody.
SOMEBODY = "somebody"
#: Commands after which a scenario that still asks is given up.
MOST_ROUNDS = 100


@dataclass(slots=True, kw_only=True)
class Journey:
    """One scenario. ``manage`` runs a command; ``refused`` are the answers that were refused, as ``v3 dana``."""

    folder: Path
    scenario: Mapping[str, Any]
    manage: Manage
    given: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    code: int = 0

    def play(self) -> dict[str, Any]:
        """Start the run, answer whenever it asks, and go on with it until it has ended; its document."""
        answer = self.manage(*self.start_words())
        for _ in range(MOST_ROUNDS):
            document: dict[str, Any] = answer.json
            assert "error" not in document or "run" in document, document
            self.code = answer.code
            asked = [question for question in document["interrupts"] if is_open(document["run"], question)]
            if not asked:
                return document
            assert (answer.code, document["status"]) in ((3, "paused"), (6, "waiting")), document
            for question in asked:
                self.answer(document["run"], question)
            answer = self.manage("run_workflow", str(document["run"]), "--json")
        raise AssertionError(f"It still asks after {MOST_ROUNDS} rounds.")

    def start_words(self) -> list[str]:
        starter = self.scenario.get("started_by", "alice")
        words = ["run_workflow", str(self.folder / "workflow.yaml"), "--json", "--as", starter]
        for name, value in self.scenario.get("params", {}).items():
            words += ["-P", f"{name}:={json.dumps(value, default=str)}"]
        return words

    def answer(self, run: int, question: Mapping[str, Any]) -> None:
        """Give the answers that the case has for a step, until the question is over. One by a person who is not
        allowed to decide is refused, and the next one is given to the same visit."""
        while is_open(run, question):
            said = self.next_answer(question["step"])
            if said.get("expire"):
                let_pass(question["deadline"])
                return
            self.say(run, question, said)

    def next_answer(self, step: str) -> Mapping[str, Any]:
        number = self.given.get(step, 0)
        answers = self.scenario.get("humans", {}).get(step, [])
        assert number < len(answers), f"{step} asks for the {number + 1}. time, but the case has no answer for that."
        self.given[step] = number + 1
        found: Mapping[str, Any] = answers[number]
        return found

    def say(self, run: int, question: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        person = said.get("by", SOMEBODY)
        row = Interrupt.objects.get(run_id=run, visit=int(question["id"][1:]), status="open")
        starter = self.scenario.get("started_by", "alice")
        excluded = {starter if name == "requester" else name for name in json.loads(row.not_by)}
        answer = self.manage(*answer_words(run, question["id"], said, person))
        if person in excluded:
            assert answer.code == 1
            assert answer.json["error"]["code"] == "interrupt.not_allowed"
            assert is_open(run, question)
            self.refused.append(f"{question['id']} {person}")
        else:
            assert answer.code == 0, answer


def answer_words(run: int, interrupt: str, said: Mapping[str, Any], person: str) -> list[str]:
    words = ["runs", "answer", str(run), interrupt, "--as", person, "--json"]
    if "decision" in said:
        words.append({"approved": "--approve", "rejected": "--reject"}[said["decision"]])
    if "choice" in said:
        words += ["--choice", said["choice"]]
    if said.get("comment"):
        words += ["--comment", said["comment"]]
    fields = {**said.get("answers", {}), **said.get("form", {})}
    for name, value in fields.items():
        words += ["--field", f"{name}:={json.dumps(value, default=str, ensure_ascii=False)}"]
    return words


def is_open(run: int, question: Mapping[str, Any]) -> bool:
    return Interrupt.objects.filter(run_id=run, visit=int(question["id"][1:]), status="open").exists()


def let_pass(deadline: str) -> None:
    """Nobody answers: wait for the moment itself, since deadlines are kept by the clock of the database."""
    left = (datetime.fromisoformat(deadline) - datetime.now(UTC)).total_seconds()
    assert left < 10, f"The deadline {deadline} is too far away for a test."
    time.sleep(max(0.0, left) + 0.02)


def check(document: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Compare a run with everything a scenario states about it; what it does not state is not checked."""
    visits = document["visits"]
    main = [visit for visit in visits if visit["scope"] == ""]
    found: dict[str, Any] = {
        "status": document["status"],
        "visits": [visit["step"] for visit in main],
        "output": document["output"],
        "items": items_of(visits),
    }
    if "outcomes" in expected:
        found["outcomes"] = {step: last_outcome(document["run"], step) for step in expected["outcomes"]}
    if "attempts" in expected:
        last = {visit["step"]: visit for visit in main}
        found["attempts"] = {step: len(last[step]["attempts"]) or 1 for step in expected["attempts"]}
    if "error" in expected:
        error = document["error"] or {}
        found["error"] = {name: error.get(name) for name in expected["error"]}
    assert {name: found[name] for name in expected} == expected


def items_of(visits: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The steps inside each map item, by the path of the item."""
    found: dict[str, list[str]] = {}
    for visit in visits:
        if visit["item"] is not None:
            found.setdefault(visit["scope"], []).append(visit["step"])
    return found


def last_outcome(run: int, step: str) -> str | None:
    """The outcome of the last entry, refused ones included; the JSON list of visits leaves those out."""
    entry = Visit.objects.filter(run_id=run, scope="", step=step).order_by("-number").first()
    return entry.outcome if entry is not None else None
