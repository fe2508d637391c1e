"""The Celery application. Its settings are here and not in the environment: what may differ is the broker and the pool.

Messages are acknowledged when the run was driven, and given back when the process that took one is killed. Neither is
needed for correctness: a message names a run as a hint, whoever gets it asks the picker, and a lease decides.
"""

from __future__ import annotations

from celery import Celery
from django.conf import settings
from kombu import Exchange, Queue  # type: ignore[attr-defined]  # no types

#: Name of the task that answers a message.
DRIVE_RUN = "waypost.drive_run"
#: A message that is not acknowledged for so long is delivered again, in seconds: by Redis to another worker, by
#: RabbitMQ after it closed the channel. Longer than the steps of most runs; an earlier one does no harm.
UNACKNOWLEDGED_S = 24 * 3600
#: How long a connection to the broker may take, in seconds.
CONNECT_S = 3.0


def queue_name(pool: str) -> str:
    """The broker's queue of a pool of workers."""
    return f"waypost-{pool}" if pool else "waypost"


def make_app(broker: str, pool: str) -> Celery:
    name = queue_name(pool)
    app = Celery("waypost", broker=broker, include=["workflows.tasks.driving"])
    app.conf.update(
        task_default_queue=name,
        task_queues=[
            Queue(  # type: ignore[no-untyped-call]
                name,
                Exchange(name, type="direct"),  # type: ignore[no-untyped-call]
                routing_key=name,
                queue_arguments={"x-consumer-timeout": UNACKNOWLEDGED_S * 1000},
            )
        ],
        task_default_exchange=name,
        task_default_routing_key=name,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_proc_alive_timeout=30.0,
        broker_connection_timeout=CONNECT_S,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport_options(broker),
        DB_REUSE_MAX=1_000,
    )
    return app


def _transport_options(broker: str) -> dict[str, object]:
    """A publisher gives up soon: the sweep makes good for it."""
    options: dict[str, object] = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5}
    if broker.startswith(("redis", "sentinel")):
        options |= {"visibility_timeout": UNACKNOWLEDGED_S, "socket_connect_timeout": CONNECT_S}
    return options


app = make_app(settings.CELERY_BROKER_URL, settings.WAYPOST_POOL)
