"""Effects: starts the attempts of admitted visits in the pool, and stops them (docs/architecture.md)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import cast

from workflows.definitions.plan import Plan
from workflows.engine.contract import EffectContext, EffectKind, Kinds
from workflows.engine.draft import Admission
from workflows.engine.paths import visit_path
from workflows.engine.pool import Delivery, EffectPool, Stop
from workflows.engine.secrets import read_secret
from workflows.engine.supervisor import Supervisor
from workflows.engine.workspaces import Workspaces
from workflows.errors import ExitCode
from workflows.facts import RunIdentity
from workflows.log_context import marked

logger = logging.getLogger(__name__)

Token = tuple[int, int, int]
#: Between the loss of a lease and the end of a process whose functions do not return; shorter than the margin that
#: the heartbeat keeps before a lease can end.
ABORT_SECONDS = 6.0


class Effects:
    """The effects of one worker: a pool of threads, the supervisor of their processes, the workspaces."""

    def __init__(self, kinds: Kinds, *, pool: EffectPool, supervisor: Supervisor, workspaces: Workspaces) -> None:
        self.kinds = kinds
        self.pool = pool
        self.supervisor = supervisor
        self.workspaces = workspaces

    def start(
        self,
        admission: Admission,
        plan: Plan,
        identity: RunIdentity,
        deliver: Callable[[Delivery], None],
        progress: Callable[[int, int, str], None],
    ) -> None:
        """Start the effect of a committed admission; its result goes to ``deliver``."""
        visit, attempt, step = admission.visit, admission.attempt, admission.step
        stop = Stop()
        context = EffectContext(
            run_id=identity.id,
            workflow=identity.workflow,
            step=step,
            path=visit_path(visit.scope, step.id, visit.round or 1),
            visit=visit.number,
            round=visit.round or 1,
            attempt=visit.attempts + 1,
            dispatch_id=attempt.dispatch_id,
            index=admission.scope.index,
            inputs=admission.effect.inputs,
            secrets=read_secret,
            workspace=lambda: self.workspaces.path(identity.id),
            deadline=None,
            stop=stop.event,
            stop_reason=stop.reason,
            groups=self.supervisor,
            progress=lambda text: progress(identity.id, visit.number, text),
        )
        self.pool.submit(
            cast(EffectKind, self.kinds[step.kind]),
            context,
            token=(identity.id, visit.number, attempt.number),
            stop=stop,
            timeout_ms=admission.effect.timeout_ms,
            deliver=deliver,
        )

    @staticmethod
    def key_of(delivery: Delivery) -> tuple[int, int]:
        """(visit, attempt) of a delivery."""
        _, visit, attempt = cast(Token, delivery.token)
        return visit, attempt

    def stop_visit(self, run_id: int, visit: int, reason: str) -> None:
        for token in self._tokens(run_id):
            if token[1] == visit:
                self.pool.stop(token, reason)

    def stop_run(self, run_id: int, reason: str) -> None:
        for token in self._tokens(run_id):
            self.pool.stop(token, reason)

    def abort_run(self, run_id: int) -> None:
        """The lease is lost: stop everything of the run now; leave the process if a function does not return.

        A function cannot be ended from outside, and nothing of this worker may run once another one holds the lease.
        """
        self.stop_run(run_id, "shutdown")
        timer = threading.Timer(ABORT_SECONDS, self._leave_if_running, args=(run_id,))
        timer.daemon = True
        timer.start()

    def _leave_if_running(self, run_id: int) -> None:
        occupied = [_as_token(token) for token in (*self.pool.running(), *self.pool.abandoned())]
        if any(token[0] == run_id for token in occupied):
            with marked(run=run_id):
                logger.critical("A function of run %s goes on although its lease is lost; this process ends.", run_id)
            self.supervisor.kill_all()
            os._exit(ExitCode.HELD)

    def still_running(self, run_id: int, visit: int) -> bool:
        """Whether a function of this visit was settled and has not returned yet."""
        return any(cast(Token, token)[:2] == (run_id, visit) for token in self.pool.abandoned())

    def _tokens(self, run_id: int) -> list[Token]:
        return [token for token in map(_as_token, self.pool.running()) if token[0] == run_id]


def _as_token(token: object) -> Token:
    return cast(Token, token)
