"""Sending: a delivery is claimed, sent outside of any transaction, and what came of it is written (promises NOTE).

Whoever dies between sending and writing has sent a message that is sent again, with the same id. What cannot be sent is
tried again after pauses that double, a bounded number of times. Each webhook, and the mail server, is a lane with a
thread of its own in each worker: one that hangs delays nothing else.
"""

from __future__ import annotations

import hashlib
import logging
import smtplib
import threading
from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.utils import timezone

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger.notifying import Claimed, Outcome, claim_delivery, settle_delivery
from workflows.ledger.transactions import database_thread
from workflows.models import Delivery, Run
from workflows.operations.notifications import fact_of, run_of
from workflows.operations.notifications_audience import is_receiver, stale
from workflows.operations.notifications_text import email_text, message_of, preferences_page, webhook_document
from workflows.operations.notifications_webhook import post
from workflows.statuses import DeliveryStatus

logger = logging.getLogger(__name__)

#: Tries of one delivery, the first pause between two, and the longest, in milliseconds: about a day in all.
MOST_ATTEMPTS = 12
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 30_000, 6 * 3_600_000
#: How long a sender has a delivery. Sending takes far less: every answer of a mail server has a limit.
CLAIM_MS = 300_000
#: Threads of one worker, and messages that a thread sends before it looks whether it is still needed.
MOST_LANES = 16
MESSAGES_AT_ONCE = 50
#: SMTP replies from here on are final.
_SMTP_FINAL = 500

#: The webhook of a lane; None is the lane of the e-mails.
Lane = int | None
Clock = Callable[[], int]


def due_lanes(now_ms: int) -> list[Lane]:
    """The lanes on which something is due."""
    due = Delivery.objects.filter(status=DeliveryStatus.WAITING, due_ms__lte=now_ms, claimed_until_ms__lte=now_ms)
    lanes = due.order_by().values_list("webhook_id", flat=True).distinct()
    return sorted(lanes, key=lambda lane: lane or 0)


def send_due(lane: Lane, *, most: int = MESSAGES_AT_ONCE, clock: Clock = database_now_ms) -> int:
    """Send what is due on a lane, up to ``most`` messages; how many were tried."""
    for number in range(most):
        claimed = claim_delivery(webhook=lane, now_ms=clock(), for_ms=CLAIM_MS)
        if claimed is None:
            return number
        outcome = try_to_send(claimed, clock=clock)
        settle_delivery(claimed=claimed, outcome=outcome, now=timezone.now())
    return most


def try_to_send(claimed: Claimed, *, clock: Clock = database_now_ms) -> Outcome:
    """Send a claimed delivery, unless there is nothing to tell any more."""
    delivery = Delivery.objects.select_related("notification", "webhook").get(pk=claimed.delivery)
    if claimed.attempt > MOST_ATTEMPTS:
        return Outcome(status=DeliveryStatus.GIVEN_UP, error="Its senders died again and again.")
    try:
        outcome = _sent(delivery)
    except Exception as error:
        # whatever a library raises is about this message: the lane goes on with others
        logger.exception("Delivery %s could not be sent.", delivery.pk)
        outcome = Outcome(status=DeliveryStatus.WAITING, error=f"{type(error).__name__} while sending.")
    if outcome.status != DeliveryStatus.WAITING:
        return outcome
    return again_or_given_up(outcome, delivery=delivery, attempt=claimed.attempt, now_ms=clock())


def again_or_given_up(outcome: Outcome, *, delivery: Delivery, attempt: int, now_ms: int) -> Outcome:
    """A failed try as it is written: with the moment of the next one, or as the last one."""
    known = {"response_code": outcome.response_code, "error": outcome.error}
    if attempt >= MOST_ATTEMPTS:
        return Outcome(status=DeliveryStatus.GIVEN_UP, **known)  # type: ignore[arg-type]
    # a receiver may ask for a longer pause: ``due_ms`` is its length then
    pause = max(pause_ms(delivery.message_id, attempt), min(outcome.due_ms, LONGEST_PAUSE_MS))
    return Outcome(status=DeliveryStatus.WAITING, due_ms=now_ms + pause, **known)  # type: ignore[arg-type]


def pause_ms(message_id: str, attempt: int) -> int:
    """The pause after a failed try: doubled each time, and up to a quarter more, by a hash of message and try."""
    length = min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS)
    spread = int.from_bytes(hashlib.sha256(f"{message_id} {attempt}".encode()).digest()[:4], "big") / 2**32
    return int(length * (1 + spread / 4))


def _sent(delivery: Delivery) -> Outcome:
    fact = fact_of(delivery.notification)
    try:
        run = run_of(fact)
    except Refusal:
        return Outcome(status=DeliveryStatus.DROPPED, error="The run is gone.")
    if delivery.webhook is not None:
        if delivery.webhook.removed_at is not None or not delivery.webhook.is_on:
            return Outcome(status=DeliveryStatus.DROPPED, error="The webhook is off.")
        document = webhook_document(fact, run, message_of(fact, run))
        return post(delivery.webhook, message_id=delivery.message_id, document=document)
    return _emailed(delivery, run)


def _emailed(delivery: Delivery, run: Run) -> Outcome:
    fact = fact_of(delivery.notification)
    if why := stale(fact, run):
        return Outcome(status=DeliveryStatus.DROPPED, error=f"{why[0].upper()}{why[1:]}.")
    if not is_receiver(delivery.person, fact, run):
        return Outcome(status=DeliveryStatus.DROPPED, error="This person is not to be told any more.")
    address = get_user_model()._default_manager.values_list("email", flat=True).get(username=delivery.person)
    message = message_of(fact, run)
    return send_email(
        subject=message.subject,
        body=email_text(message, name=delivery.person),
        address=address,
        message_id=delivery.message_id,
        at=delivery.notification.at,
    )


def send_email(*, subject: str, body: str, address: str, message_id: str, at: datetime) -> Outcome:
    """Hand one e-mail to the mail server. ``at`` becomes its date: a repetition is the same message."""
    email = EmailMessage(
        subject=subject,
        body=body,
        to=[address],
        headers={
            "Message-ID": message_id,
            "Date": at.strftime("%a, %d %b %Y %H:%M:%S +0000"),
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{preferences_page()}>",
        },
    )
    try:
        email.send()
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPResponseException) as error:
        code = _reply_code(error)
        is_final = isinstance(error, smtplib.SMTPRecipientsRefused) and code >= _SMTP_FINAL
        status = DeliveryStatus.GIVEN_UP if is_final else DeliveryStatus.WAITING
        return Outcome(status=status, response_code=code, error=f"The mail server refused it ({code}).")
    except (OSError, smtplib.SMTPException) as error:
        place = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
        return Outcome(
            status=DeliveryStatus.WAITING, error=f"The mail server {place} did not take it: {type(error).__name__}."
        )
    return Outcome(status=DeliveryStatus.DELIVERED)


def _reply_code(error: smtplib.SMTPException) -> int:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return max((reply[0] for reply in error.recipients.values()), default=0)
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else 0


class Courier:
    """The lanes of one worker: a thread for each that has something to send, and none for the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: dict[Lane, threading.Thread] = {}

    def look(self) -> None:
        """Start a thread for each lane with something due that has none; returns at once."""
        for lane in due_lanes(database_now_ms()):
            with self._lock:
                # the e-mails always have room
                if lane in self._busy or (lane is not None and len(self._busy) >= MOST_LANES):
                    continue
                thread = threading.Thread(target=self._send, args=[lane], name="waypost-courier", daemon=True)
                self._busy[lane] = thread
            thread.start()

    def wait(self, seconds: float) -> None:
        """Until the threads that are at work now have ended, so long at most each."""
        for thread in list(self._busy.values()):
            thread.join(seconds)

    def _send(self, lane: Lane) -> None:
        with database_thread():
            try:
                send_due(lane)
            except Exception:
                logger.exception("Sending stopped; it is gone on with later.")
            finally:
                with self._lock:
                    self._busy.pop(lane, None)


#: The courier of this process.
COURIER = Courier()
