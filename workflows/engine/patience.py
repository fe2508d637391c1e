"""Patience: a read of the driver outlives a restart of the database server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import django.db
from django.db import DEFAULT_DB_ALIAS, connections

from workflows.stores.failures import StoreFailureKind, classify

Answer = TypeVar("Answer")

#: Pauses before a read is tried again, in seconds; their sum is shorter than a lease lives.
PAUSES_S = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 3.0, 4.0)


def patiently(read: Callable[[], Answer]) -> Answer:
    """What ``read`` answers, once the database can be reached. Raises the refusal of its last failure."""
    for pause in (*PAUSES_S, None):
        try:
            return read()
        except django.db.Error as error:
            failure = classify(error)
            refusal = failure.as_refusal()
            if refusal is None:
                raise
            if pause is None:
                raise refusal from error
            if failure.kind is StoreFailureKind.CONNECTION_LOST:
                connections[DEFAULT_DB_ALIAS].close()
            time.sleep(pause)
    raise AssertionError("unreachable")
