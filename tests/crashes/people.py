"""The people of a scenario: they answer questions as its case says, and send its signals.

What they have said already is read from the rows, so that it does not matter which life heard them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.crashes.family import FORK, Member
from tests.crashes.scenarios import Scenario
from workflows.engine.paths import visit_path
from workflows.errors import Refusal
from workflows.models import ControlMessage, Interrupt, Run, Scope, Visit, Vote
from workflows.operations.answering import Wish, answer, named
from workflows.operations.people import Actor
from workflows.operations.signals import signal
from workflows.statuses import ControlKind, InterruptStatus, ScopePhase, WaitsFor

#: Who answers where the case names nobody.
SOMEBODY = "somebody"


def person(name: str) -> Actor:
    return Actor(name=name, recorded=f"kit as {name}")


def open_questions(member: Member) -> list[Interrupt]:
    return list(Interrupt.objects.filter(run_id=member.run_id, status=InterruptStatus.OPEN).order_by("visit"))


def answer_one(scenario: Scenario, member: Member) -> bool:
    """Say the next thing to the first open question that somebody has an answer for; whether there was one."""
    for question in open_questions(member):
        said = _next(scenario, member, question)
        while said is not None:
            who = said.get("by", SOMEBODY)
            try:
                answer(member.run_id, question.visit, wish_of(said), actor=person(who))
                return True
            except Refusal as refusal:
                if refusal.code != "interrupt.not_allowed" or who not in _excluded(member, question):
                    raise
            said = _next(scenario, member, question, after=said)
    return False


def wish_of(said: Mapping[str, Any]) -> Wish:
    fields = {**said.get("answers", {}), **said.get("form", {})}
    return Wish(
        decision=said.get("decision", said.get("choice")),
        fields=json.loads(json.dumps(fields, default=str)),
        comment=said.get("comment", ""),
    )


def _next(
    scenario: Scenario, member: Member, question: Interrupt, after: Mapping[str, Any] | None = None
) -> Mapping[str, Any] | None:
    """What is to be said next to an open question, and after something that was refused; None: its time shall pass."""
    name = _name(member, question, scenario)
    answers = scenario.humans.get(name, ())
    place = 0
    for earlier in Interrupt.objects.filter(run_id=member.run_id).order_by("visit", "attempt"):
        if _name(member, earlier, scenario) != name:
            continue
        place = _behind(answers, place, member, earlier)
        if earlier.pk == question.pk:
            break
    if after is not None:
        place = next(number for number in range(place, len(answers)) if answers[number] is after) + 1
    if place >= len(answers):
        raise AssertionError(f"{name} asks for another answer, but {scenario.name} has {len(answers)}.")
    return None if answers[place].get("expire") else answers[place]


def _behind(answers: Sequence[Mapping[str, Any]], place: int, member: Member, question: Interrupt) -> int:
    """The place in ``answers`` behind all that was said to a question, refused answers in between included."""
    excluded = _excluded(member, question)
    votes = Vote.objects.filter(run_id=member.run_id, visit=question.visit, attempt=question.attempt).count()
    while votes:
        votes -= answers[place].get("by", SOMEBODY) not in excluded
        place += 1
    return place + (question.status == InterruptStatus.EXPIRED)


def _excluded(member: Member, question: Interrupt) -> set[str]:
    return named(json.loads(question.not_by), Run.objects.get(pk=member.run_id))


def _name(member: Member, question: Interrupt, scenario: Scenario) -> str:
    """How the case names a question: by its path where several stand side by side, else by its step."""
    visit = Visit.objects.get(run_id=member.run_id, number=question.visit)
    path = member.label + visit_path(visit.scope, visit.step, visit.round or 1)
    return path if path in scenario.humans else visit.step


def send_one(scenario: Scenario, member: Member, *, ahead: bool = False) -> bool:
    """Send the next signal of the scenario if a step waits for one (``ahead``: before any does); whether one was sent."""
    if member.label not in ("", FORK):
        return False
    sent = ControlMessage.objects.filter(run_id=member.run_id, kind=ControlKind.SIGNAL).count()
    if sent >= len(scenario.signals):
        return False
    wanted = scenario.signals[sent]
    if not (wanted.get("ahead") if ahead else _waits_for_signal(member)):
        return False
    signal(member.run_id, wanted["name"], wanted["payload"], actor=person(SOMEBODY), request_id=f"signal {sent}")
    return True


def _waits_for_signal(member: Member) -> bool:
    scopes = Scope.objects.filter(run_id=member.run_id, phase=ScopePhase.WAITING, waits_for=WaitsFor.SIGNAL)
    return bool(scopes.exists())
