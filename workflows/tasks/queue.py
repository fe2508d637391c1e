"""How full the broker's queue is."""

from __future__ import annotations


def waiting_messages() -> int:
    """Messages that nobody has taken yet. Raises what the broker's driver raises."""
    from workflows.tasks.app import app  # slow to import

    with app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, timeout=3)
        with connection.channel() as channel:
            queue = app.amqp.queues[app.conf.task_default_queue](channel)
            queue.declare()
            # not passive: an empty queue of Redis does not exist
            return int(queue.queue_declare().message_count)
