"""Celery drives runs, for teams that have it: a message is a doorbell, the rows of the database are the queue.

``app`` is the configured application, ``doorbell`` sends messages after commits, ``driving`` is the task that answers
them, ``process`` is what one Celery process keeps while it lives. Without ``CELERY_BROKER_URL`` none of it is loaded.
"""
