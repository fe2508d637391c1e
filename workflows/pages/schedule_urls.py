"""Addresses of schedules."""

from __future__ import annotations

from django.urls import path

from workflows.pages import schedule_forms, schedules

urlpatterns = [
    path("schedules/", schedules.schedule_index, name="schedule_list"),
    path("schedules/new/", schedule_forms.schedule_new, name="schedule_new"),
    path("schedules/<int:number>/", schedules.schedule, name="schedule"),
    path("schedules/<int:number>/edit/", schedule_forms.schedule_edit, name="schedule_edit"),
    path("schedules/<int:number>/<slug:verb>/", schedules.schedule_action, name="schedule_action"),
]
