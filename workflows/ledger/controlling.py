"""Controls: what people say to a run without its lease. Accepted here, carried out by its driver (promises CTL)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Length

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.jsonvalue import canonical, digest
from workflows.ledger.auditing import record_audit
from workflows.ledger.listeners import announce
from workflows.ledger.records import compact, record_event, record_version
from workflows.ledger.transactions import ledger_transaction
from workflows.models import ControlMessage, Lease, Run
from workflows.statuses import ControlKind, RunStatus

MOST_PENDING = 128
#: Characters that the pending messages of a run may hold together.
MOST_PENDING_SIZE = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """``sequence`` is the event number of the acceptance; ``new`` False: this request was accepted before."""

    run_id: int
    sequence: int
    new: bool
    driven: bool


@ledger_transaction
def send(
    *,
    run_id: int,
    kind: ControlKind,
    payload: Mapping[str, Any],
    request_id: str,
    sender: str,
    now: datetime,
    now_ms: int | None = None,
    action: str = "",
) -> Accepted:
    """Accept a control message. ``action`` is how the audit names what a person did; "" for a program's own message.

    1. Under the run's lock: the same request id with the same content is the stored message, whatever the run's
       status is now.
    2. A finished run takes none; a run that closes takes no first cancel, and a second cancel changes nothing.
    3. The message, its event and one revision are written, and the run is woken. A cancel of a run that nobody
       drives sets ``closing`` at once. What a person did is audited.

    Loses with ``run.not_found``, ``control.conflict``, ``run.terminal``, ``control.too_many``, ``control.too_large``.
    """
    run = Run.objects.lock(run_id)
    moment_ms = database_now_ms() if now_ms is None else now_ms
    driven = Lease.objects.is_live(run_id, now=moment_ms)
    stored = stored_before(run, kind, request_id, payload)
    if stored is not None:
        return Accepted(run_id=run_id, sequence=stored.sequence, new=False, driven=driven)
    refuse_when_over(run, kind)
    refuse_when_too_many(run, kind, payload)
    sequence = accept(run, kind=kind, payload=payload, request_id=request_id, sender=sender, now=now)
    columns: dict[str, Any] = {"controls_accepted": run.controls_accepted + 1, "wake_at_ms": moment_ms}
    if kind == ControlKind.CANCEL and not driven:
        columns["closing"] = compact({"by": sender, "status": str(RunStatus.CANCELLED)})
        record_version(run, "run", "", {"closing": columns["closing"]})
    Run.objects.change(run, **columns)
    if action:
        told = {name: payload[name] for name in ("name", "visit") if name in payload}
        reason = str(payload.get("reason", ""))
        record_audit(actor=sender, action=action, at=now, run=run_id, reason=reason, data={"event": sequence, **told})
    announce(run_id, run.revision)
    return Accepted(run_id=run_id, sequence=sequence, new=True, driven=driven)


def accept(
    run: Run,
    *,
    kind: ControlKind,
    payload: Mapping[str, Any],
    request_id: str,
    sender: str,
    now: datetime,
    offset: int = 0,
) -> int:
    """Insert a message and its event in the open transaction of the locked run. Returns the number of the event."""
    sequence = record_event(run, "control_accepted", at=now, actor=sender, offset=offset, kind=str(kind))
    ControlMessage.objects.create(
        run=run,
        request_id=request_id,
        kind=kind,
        payload=canonical(dict(payload)),
        digest=_content_digest(kind, payload),
        sender=sender,
        sequence=sequence,
        accepted_at=now,
    )
    return sequence


def _content_digest(kind: ControlKind, payload: Mapping[str, Any]) -> str:
    return digest(canonical({"kind": str(kind), "payload": dict(payload)}))


def stored_before(run: Run, kind: ControlKind, request_id: str, payload: Mapping[str, Any]) -> ControlMessage | None:
    """The message that this request repeats, if there is one. Raises ``control.conflict``."""
    content = _content_digest(kind, payload)
    messages = ControlMessage.objects.filter(run=run)
    same: ControlMessage | None = messages.filter(request_id=request_id).first()
    if same is not None and same.digest != content:
        raise Refusal("control.conflict", run=run.pk, request_id=request_id)
    if same is None and kind == ControlKind.CANCEL:
        # one that was carried out without effect, since the run ended at the same moment, does not count
        cancels = messages.filter(kind=kind)
        same = (cancels if _is_cancelled(run) else cancels.filter(consumed_at=None)).last()
    return same


def _is_cancelled(run: Run) -> bool:
    closing = json.loads(run.closing) if run.closing else {}
    return RunStatus.CANCELLED in (run.status, closing.get("status"))


def refuse_when_over(run: Run, kind: ControlKind) -> None:
    """Raises ``run.terminal`` for a run that takes no message of this kind any more."""
    if run.is_final:
        raise Refusal("run.terminal", run=run.pk, status=run.status)
    if run.closing and kind == ControlKind.CANCEL:
        raise Refusal("run.terminal", run=run.pk, status="closing")


def refuse_when_too_many(run: Run, kind: ControlKind, payload: Mapping[str, Any]) -> None:
    """Pending messages are bounded in number and size; a cancel is always taken. Raises ``control.too_many``,
    ``control.too_large``."""
    if kind == ControlKind.CANCEL:
        return
    if run.controls_accepted - run.controls_seen >= MOST_PENDING:
        raise Refusal("control.too_many", run=run.pk, limit=MOST_PENDING)
    pending = ControlMessage.objects.filter(run=run, consumed_at=None)
    held = pending.aggregate(size=Sum(Length("payload")))["size"] or 0
    if held + len(canonical(dict(payload))) > MOST_PENDING_SIZE:
        raise Refusal("control.too_large", run=run.pk, limit=MOST_PENDING_SIZE // 1024)
