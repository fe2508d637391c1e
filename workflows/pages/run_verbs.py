"""What a person may do to a run, by its state and by their permissions. Whether it may be done is decided again by the
operation; these are the buttons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse

from workflows.queries.run_page import Head
from workflows.queries.why_facts import Because
from workflows.statuses import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """``is_direct``: one press does it, since it can be undone; the others have a page that asks for the reason.
    ``is_rare`` ones stand in a menu."""

    name: str
    words: str
    permission: str
    href: str = ""
    icon: str = ""
    is_direct: bool = False
    is_danger: bool = False
    is_primary: bool = False
    is_rare: bool = False


def verbs_for(user: Any, head: Head, reasons: Iterable[Because]) -> list[Verb]:
    """The verbs that make sense now and that this person has the permission for."""
    return [
        replace(verb, href=_address(head.run, verb.name))
        for verb in _offers(head, {because.code for because in reasons})
        if user.has_perm(f"workflows.{verb.permission}")
    ]


def _address(run: int, verb: str) -> str:
    return reverse("pages:fork", args=[run]) if verb == "fork" else reverse("pages:run_action", args=[run, verb])


def _offers(head: Head, causes: set[str]) -> Iterable[Verb]:
    if head.is_final:
        yield from _of_ended(head)
        return
    if "retry" in causes:
        yield Verb(name="retry", words="Retry now", permission="reopen_run", is_direct=True, is_primary=True)
    if head.is_held:
        yield Verb(name="resume", words="Resume", permission="hold_run", icon="start", is_direct=True, is_primary=True)
    elif head.status == RunStatus.BLOCKED:
        yield Verb(name="resume", words="Look again", permission="reopen_run", icon="start", is_direct=True)
    if "signal" in causes:
        yield Verb(name="signal", words="Send signal", permission="start_run")
    if not head.is_held and not head.is_closing:
        yield Verb(name="pause", words="Pause", permission="hold_run", icon="paused", is_direct=True)
    if not head.is_closing:
        yield Verb(name="cancel", words="Cancel", permission="cancel_run", icon="cancelled", is_danger=True)
    if "signal" not in causes:
        yield Verb(name="signal", words="Send a signal", permission="start_run", is_rare=True)
    yield Verb(name="steer", words="Steer", permission="hold_run", is_rare=True)
    yield Verb(name="skip", words="Skip a step", permission="reopen_run", is_rare=True)
    yield Verb(name="fork", words="Fork", permission="fork_run", icon="fork", is_rare=True)
    yield Verb(name="abandon", words="Abandon", permission="abandon_run", is_rare=True, is_danger=True)


def _of_ended(head: Head) -> Iterable[Verb]:
    if head.status in (RunStatus.FAILED, RunStatus.ABANDONED):
        words = "Resume at the failed step" if head.error_visit else "Resume"
        yield Verb(name="resume", words=words, permission="reopen_run", icon="start", is_direct=True, is_primary=True)
    if head.status == RunStatus.FAILED and head.error_visit:
        yield Verb(name="skip", words="Skip the failed step", permission="reopen_run", is_rare=True)
    yield Verb(name="fork", words="Fork", permission="fork_run", icon="fork")
