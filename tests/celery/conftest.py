"""A broker, and Celery workers on the database of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from subprocess import Popen

import pytest

from tests.celery.brokers import PrivateRabbit, PrivateRedis
from tests.processes import Processes

#: Leases short enough to be waited for, and a grace that is shorter than a test.
QUICK = {"WAYPOST_LEASE_TTL_MS": "3000", "WAYPOST_HEARTBEAT_MS": "500", "WAYPOST_SHUTDOWN_GRACE_MS": "500"}
CeleryWorker = Callable[..., "Popen[str]"]


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    server = PrivateRedis()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def rabbit() -> Iterator[PrivateRabbit]:
    server = PrivateRabbit()
    server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def celery_worker(processes: Processes) -> CeleryWorker:
    """Starts ``celery worker`` for a broker's address."""

    def start(broker: str, *words: str, **env: str) -> Popen[str]:
        quiet = ("--without-mingle", "--without-gossip", "-l", "CRITICAL")
        return processes.start_python(
            "-W", "ignore", "-m", "celery", "-A", "config.celery", "worker", "-c", "2", *quiet, *words,
            env={"CELERY_BROKER_URL": broker, **QUICK, **env},
        )  # fmt: skip

    return start
