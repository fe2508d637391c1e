"""The threads in which effects run: they turn whatever happens into a result, and never die of it.

A driver submits an attempt with a token of its own and gets back deliveries with that token. Each attempt has one
settlement. What an attempt gives after its settlement (a function that ignored its timeout) is delivered as *late*.

A thread cannot be ended from outside. A function that has not returned ``ABANDON_SECONDS`` after its attempt was
stopped is settled without it; its thread is marked, replaced, and reported by :meth:`EffectPool.still_running`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from workflows.engine.contract import EffectCancelled, EffectContext, EffectKind, Result
from workflows.engine.results import exception_result, failure_result, stopped_result
from workflows.engine.secrets import AttemptSecrets
from workflows.engine.tally import count_attempt
from workflows.log_context import marked

logger = logging.getLogger(__name__)

#: How long after its stop an attempt may take to return before it is settled without it.
ABANDON_SECONDS = 5.0

_NEVER = float("inf")
_STOP_CODES = frozenset({"timeout", "cancelled", "crashed"})


class Stop:
    """Asks one attempt to end early. The first reason counts: ``timeout``, ``cancelled`` or ``shutdown``.

    ``event`` and ``reason`` are the ``stop`` and ``stop_reason`` of the attempt's :class:`EffectContext`.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._reason: str | None = None
        self._lock = threading.Lock()

    def request(self, reason: str) -> bool:
        """Whether this was the first request."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
        self.event.set()
        return True

    def reason(self) -> str | None:
        return self._reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A result for the driver. ``late``: the attempt was settled before, so this one settles nothing."""

    token: Hashable
    result: Result
    late: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class _Job:
    token: Hashable
    kind: EffectKind
    context: EffectContext
    stop: Stop
    timeout_ms: int | None
    deliver: Callable[[Delivery], None]
    deadline: float = _NEVER
    abandon_at: float = _NEVER
    settled: bool = False
    started: bool = False
    secrets: AttemptSecrets | None = field(default=None, repr=False)

    @property
    def due(self) -> float:
        """When the watchdog has to look at the job next."""
        return self.deadline if self.abandon_at == _NEVER else self.abandon_at


class EffectPool:
    """Up to ``threads`` effects at once, in daemon threads that are started when they are needed."""

    def __init__(self, threads: int, *, abandon_seconds: float = ABANDON_SECONDS) -> None:
        self._threads = threads
        self._abandon_seconds = abandon_seconds
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._live: dict[Hashable, _Job] = {}
        self._abandoned: dict[Hashable, int] = {}
        self._workers = 0
        self._watching = False
        self._next_look = _NEVER
        self._closed = False

    @property
    def threads(self) -> int:
        return self._threads

    def submit(
        self,
        kind: EffectKind,
        context: EffectContext,
        *,
        token: Hashable,
        stop: Stop,
        timeout_ms: int | None,
        deliver: Callable[[Delivery], None],
    ) -> None:
        """Runs ``kind.execute`` in a thread and calls ``deliver`` (from that thread; a queue's ``put``) at its end.

        ``token`` names the attempt; no other that has not been settled may have it. The deadline of the context is
        set when the thread begins, since waiting for a thread is not part of the step's timeout.
        """
        job = _Job(token=token, kind=kind, context=context, stop=stop, timeout_ms=timeout_ms, deliver=deliver)
        with self._lock:
            if self._closed:
                raise RuntimeError("The pool is closed.")
            if token in self._live:
                raise ValueError(f"An attempt {token!r} is running already.")
            self._live[token] = job
            self._start_worker_if_needed()
        self._jobs.put(job)

    def stop(self, token: Hashable, reason: str) -> bool:
        """Asks a running attempt to end; False when it has been settled (or was never here)."""
        with self._lock:
            job = self._live.get(token)
            if job is None:
                return False
            self._request_stop(job, reason)
        return True

    def stop_all(self, reason: str) -> int:
        """Asks every running attempt to end; how many there are."""
        with self._lock:
            for job in self._live.values():
                self._request_stop(job, reason)
            return len(self._live)

    def running(self) -> list[Hashable]:
        """Tokens of the attempts that have not been settled."""
        with self._lock:
            return list(self._live)

    def still_running(self, token: Hashable | None = None) -> bool:
        """Whether an attempt that was settled without its function is in its thread yet (any, without a token)."""
        with self._lock:
            return bool(self._abandoned) if token is None else token in self._abandoned

    def abandoned(self) -> list[Hashable]:
        """Tokens of the attempts for which :meth:`still_running` holds."""
        with self._lock:
            return list(self._abandoned)

    def close(self, *, wait_seconds: float = 0.0) -> bool:
        """Takes no more attempts; True when all threads have ended within the time given."""
        with self._changed:
            self._closed = True
            for _ in range(self._workers):
                self._jobs.put(None)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._workers == 0 and not self._abandoned, timeout=wait_seconds)

    # ---- threads (called with the lock held unless said otherwise) ---------------------------------------------------

    def _start_worker_if_needed(self) -> None:
        if self._workers >= min(self._threads, len(self._live)):
            return
        self._workers += 1
        threading.Thread(target=self._work, name="waypost-effect", daemon=True).start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._run(job):
                return
        with self._changed:
            self._workers -= 1
            self._changed.notify_all()

    def _run(self, job: _Job) -> bool:
        """Runs one job, without the lock; False when its thread was replaced meanwhile."""
        self._begin(job)
        context, secrets = job.context, job.secrets
        assert secrets is not None
        with marked(
            run=context.run_id,
            visit=context.visit,
            attempt=context.attempt,
            mask=lambda text: secrets.masker().text(text),
        ):
            logger.info("%s begins.", context.path)
            result = self._execute(job)
            logger.info("%s gives %s.", context.path, result.outcome)
        reason = job.stop.reason()
        with self._changed:
            abandoned = job.settled
            if abandoned:
                self._abandoned[job.token] -= 1
                if not self._abandoned[job.token]:
                    del self._abandoned[job.token]
                self._changed.notify_all()
            else:
                job.settled = True
                del self._live[job.token]
        if abandoned:
            _deliver(job, result, late=True)
            return False
        settlement = _settlement(result, reason)
        _deliver(job, settlement)
        if settlement is not result and result.failure is None:
            _deliver(job, result, late=True)
        return True

    def _begin(self, job: _Job) -> None:
        deadline = None
        if job.timeout_ms is not None:
            deadline = job.deadline = time.monotonic() + job.timeout_ms / 1000
        job.secrets = AttemptSecrets(job.context.secrets)
        job.context = replace(job.context, deadline=deadline, secrets=job.secrets.read)
        with self._lock:
            job.started = True
            if job.stop.reason() is not None:
                job.abandon_at = time.monotonic() + self._abandon_seconds
            self._look_by(job.due)

    @staticmethod
    def _execute(job: _Job) -> Result:
        reason = job.stop.reason()
        if reason is not None:
            return stopped_result(reason, message="The step was stopped before it began.")
        assert job.secrets is not None
        try:
            result: object = job.kind.execute(job.context)
        except EffectCancelled as error:
            reason = job.stop.reason()
            return exception_result(error) if reason is None else stopped_result(reason)
        except BaseException as error:  # whatever a step raises is its result; the thread goes on
            return exception_result(error, mask=job.secrets.masker().text)
        if not isinstance(result, Result):
            return failure_result("task_error", f"The kind {job.kind.name} gave no result.")
        return result

    # ---- the watchdog: deadlines and threads that do not return ------------------------------------------------------

    def _request_stop(self, job: _Job, reason: str) -> None:
        if job.stop.request(reason) and job.started:
            job.abandon_at = time.monotonic() + self._abandon_seconds
            self._look_by(job.abandon_at)

    def _look_by(self, moment: float) -> None:
        if moment >= self._next_look:
            return
        self._next_look = moment
        if self._watching:
            self._changed.notify_all()
        else:
            self._watching = True
            threading.Thread(target=self._watch, name="waypost-effect-watchdog", daemon=True).start()

    def _watch(self) -> None:
        """Sleeps until the next deadline of what runs. Ends when nothing is left to watch."""
        while True:
            with self._changed:
                now = time.monotonic()
                due = [job for job in self._live.values() if job.started and job.due <= now]
                abandoned = [job for job in due if self._expire(job, now)]
                self._next_look = min((job.due for job in self._live.values() if job.started), default=_NEVER)
                if not due and self._next_look == _NEVER:
                    self._watching = False
                    return
                if not due:
                    self._changed.wait(timeout=min(self._next_look - now, threading.TIMEOUT_MAX))
            for job in abandoned:
                reason = job.stop.reason() or "timeout"
                result = stopped_result(reason, detail=" Its function is still running.")
                with marked(run=job.context.run_id, visit=job.context.visit, attempt=job.context.attempt):
                    logger.warning("%s does not return; it is settled without its function.", job.context.path)
                    _deliver(job, result)

    def _expire(self, job: _Job, now: float) -> bool:
        """What is due for a job; True when it is settled without its thread."""
        if job.abandon_at == _NEVER:
            job.stop.request("timeout")
            job.abandon_at = now + self._abandon_seconds
            return False
        job.settled = True
        del self._live[job.token]
        self._abandoned[job.token] = self._abandoned.get(job.token, 0) + 1
        # The thread is lost to the pool until it returns; another one takes its place.
        self._workers -= 1
        self._start_worker_if_needed()
        return True


def _deliver(job: _Job, result: Result, *, late: bool = False) -> None:
    if not late:
        count_attempt(job.kind.name, result)
    try:
        job.deliver(Delivery(token=job.token, result=result, late=late))
    except Exception:  # a driver that is gone must not take a thread of the others with it
        logger.exception("The result of attempt %r could not be delivered.", job.token)


def _settlement(result: Result, reason: str | None) -> Result:
    """What an attempt ends with that was stopped for ``reason`` and returned in time.

    A success after the timeout does not count; it is delivered once more as a late result. One after a cancel or during
    a shutdown is the truth about the effect, and the engine decides what it means.
    """
    if reason is None or (reason != "timeout" and result.failure is None):
        return result
    if result.failure is not None and result.failure.code in _STOP_CODES:
        return result
    return stopped_result(reason, exit_code=result.exit_code, log=result.log)
