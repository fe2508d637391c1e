"""Task functions of the workflows in ``workflows/library``."""

from workflows.workflow_tasks import repository

__all__ = ["repository"]
