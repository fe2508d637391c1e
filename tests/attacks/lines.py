"""Verbs of lines that pass with time, and of sessions, in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from functools import partial

from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore

from tests.attacks.verbs import Call, attacked, fresh
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player
from workflows.ledger import login_sessions
from workflows.ledger import slots as slot_verbs
from workflows.models import LoginSession
from workflows.statuses import SlotKind


def rated(group: str) -> Player:
    """A run with a step of a group in which one attempt may start in an hour."""
    limit = f"{{ group: {group}, rate: 1/1h }}"
    return Player(publish_run(workflow(f"  - {{ id: work, kind: shell, run: x, limit: {limit} }}")))


@attacked(slot_verbs.hear_of_turn)
def hears_of_its_turn() -> Call:
    group = fresh()
    first = rated(group)
    first.step()
    first.hand = first.take()
    first.step()
    rated(group).hand.step()  # nobody has told it anything yet
    (turn,) = slot_verbs.give_places(kind=SlotKind.LIMIT, name=group)
    assert turn.due_ms is not None
    return partial(slot_verbs.hear_of_turn, run_id=turn.run_id, scope=turn.scope, due_ms=turn.due_ms, now=START)


@attacked(login_sessions.end_sessions)
def ends_a_session() -> Call:
    user = get_user_model()._default_manager.create_user(username=fresh())
    session = SessionStore()
    session.create()
    row = LoginSession.objects.create(user=user, session_key=str(session.session_key), began_at=START, seen_at=START)
    return partial(
        login_sessions.end_sessions,
        user_id=user.pk,
        person=user.get_username(),
        sessions=[row.pk],
        actor="ann",
        now=START,
    )
