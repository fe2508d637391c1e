"""Addresses of workflows."""

from __future__ import annotations

from django.urls import path, register_converter

from workflows.pages import notifications, starting, validating, workflows


class WorkflowName:
    """What a workflow can be called (docs/format.md); an address with anything else leads nowhere."""

    regex = "[a-z][a-z0-9_]{0,62}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(WorkflowName, "workflow")

urlpatterns = [
    path("workflows/", workflows.workflow_list, name="workflow_list"),
    path("workflows/new-workflow/", validating.new, name="workflow_new"),
    path("workflows/<workflow:name>/", workflows.workflow, name="workflow"),
    path("workflows/<workflow:name>/start/", starting.start_form, name="start"),
    path("workflows/<workflow:name>/start/preview/", starting.preview, name="start_preview"),
    path("workflows/<workflow:name>/edit/", validating.edit, name="workflow_edit"),
    path("workflows/<workflow:name>/library/", workflows.publish_from_library, name="workflow_from_library"),
    path("workflows/<workflow:name>/versions/", workflows.version_list, name="workflow_versions"),
    path("workflows/<workflow:name>/versions/<int:number>/", workflows.version, name="workflow_version"),
    path("workflows/<workflow:name>/versions/<int:number>/source/", workflows.source, name="workflow_source"),
    path(
        "workflows/<workflow:name>/notifications/", notifications.workflow_notifications, name="workflow_notifications"
    ),
    path("workflows/<workflow:name>/notifications/add/", notifications.webhook_add, name="webhook_add"),
    path(
        "workflows/<workflow:name>/notifications/webhooks/<int:number>/",
        notifications.webhook_change,
        name="webhook_change",
    ),
    path(
        "workflows/<workflow:name>/notifications/deliveries/<int:number>/again/",
        notifications.delivery_replay,
        name="delivery_replay",
    ),
    path("workflows/<workflow:name>/compare/", workflows.compare, name="workflow_compare"),
]
