"""Runs of shipped workflows through the command line; people answer through operations."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth import get_user_model

from tests.commands.support import manage
from workflows.models import Interrupt, Visit
from workflows.operations.answering import Wish, answer
from workflows.operations.library import SHIPPED
from workflows.operations.people import Actor
from workflows.statuses import InterruptStatus

LIBRARY = sorted(SHIPPED.glob("*.yaml"))


def library_path(name: str) -> str:
    return str(SHIPPED / f"{name}.yaml")


def begin(name: str, /, *, person: str = "rita", **params: Any) -> dict[str, Any]:
    """Start a shipped workflow and drive it as far as it goes; its document."""
    _user(person)
    words = ["run_workflow", library_path(name), "--json", "--as", person]
    for key, value in params.items():
        words += ["-P", f"{key}:={json.dumps(value)}"]
    return _document(*words)


def go_on(run: int) -> dict[str, Any]:
    return _document("run_workflow", str(run), "--json")


def decide(
    run: int, step: str, decision: str | None = None, /, *, person: str = "alice", **fields: Any
) -> dict[str, Any]:
    """Answer the open question of a step, and drive the run on."""
    reply(run, step, decision, person=person, **fields)
    return go_on(run)


def reply(run: int, step: str, decision: str | None = None, /, *, person: str = "alice", **fields: Any) -> None:
    """Answer the open question of a step, and leave the run where it is."""
    _user(person)
    visits = Visit.objects.filter(run_id=run, step=step).values("number")
    question = Interrupt.objects.get(run_id=run, visit__in=visits, status=InterruptStatus.OPEN)
    wish = Wish(decision=decision, fields=fields)
    answer(run, question.visit, wish, actor=Actor(name=person, recorded=f"test as {person}"))


def steps_of(document: dict[str, Any]) -> list[str]:
    """The steps of the run's main list, in the order they were entered."""
    return [visit["step"] for visit in document["visits"] if visit["scope"] == ""]


def attempts_of(document: dict[str, Any], step: str) -> list[int]:
    """How many attempts each visit of a step had."""
    return [len(visit["attempts"]) for visit in document["visits"] if visit["step"] == step]


def _document(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = manage(*words).json
    assert "error" not in found or "run" in found, found
    return found


def _user(name: str) -> None:
    get_user_model()._default_manager.get_or_create(username=name)
