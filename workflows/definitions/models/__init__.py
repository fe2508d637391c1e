"""The workflow file as pydantic models: the one source of the shape check and of the JSON Schema for editors."""

from workflows.definitions.models.steps import STEP_MODELS
from workflows.definitions.models.workflow import WorkflowModel

__all__ = ["STEP_MODELS", "WorkflowModel"]
