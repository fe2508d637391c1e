"""Addresses of workflows."""

from __future__ import annotations

from django.urls import path

from workflows.pages import starting, validating, workflows

urlpatterns = [
    path("workflows/", workflows.workflow_list, name="workflow_list"),
    path("workflows/new-workflow/", validating.new, name="workflow_new"),
    path("workflows/<str:name>/", workflows.workflow, name="workflow"),
    path("workflows/<str:name>/start/", starting.start_form, name="start"),
    path("workflows/<str:name>/start/preview/", starting.preview, name="start_preview"),
    path("workflows/<str:name>/edit/", validating.edit, name="workflow_edit"),
    path("workflows/<str:name>/library/", workflows.publish_from_library, name="workflow_from_library"),
    path("workflows/<str:name>/versions/", workflows.version_list, name="workflow_versions"),
    path("workflows/<str:name>/versions/<int:number>/", workflows.version, name="workflow_version"),
    path("workflows/<str:name>/versions/<int:number>/source/", workflows.source, name="workflow_source"),
    path("workflows/<str:name>/compare/", workflows.compare, name="workflow_compare"),
]
