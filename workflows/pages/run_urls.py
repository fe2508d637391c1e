"""Addresses of one run and everything below it."""

from __future__ import annotations

from django.urls import path

from workflows.pages import forking, run, run_actions, run_downloads, run_parts, run_state

urlpatterns = [
    path("runs/<int:number>/", run.run, name="run"),
    path("runs/<int:number>/steps/", run.steps, name="run_steps"),
    path("runs/<int:number>/visits/<int:visit>/", run.visit, name="visit"),
    path("runs/<int:number>/events/", run.events, name="run_events"),
    path("runs/<int:number>/messages/", run.messages, name="run_messages"),
    path("runs/<int:number>/at/", run_state.state, name="run_state"),
    path("runs/<int:number>/at/<int:revision>/", run_state.state, name="run_state_at"),
    path("runs/<int:number>/audit/", run_state.audit, name="run_audit"),
    # ---- pieces of these pages
    path("runs/<int:number>/parts/live/", run_parts.live, name="run_part_live"),
    path("runs/<int:number>/parts/visits/<int:visit>/", run_parts.visit, name="run_part_visit"),
    # ---- downloads
    path("runs/<int:number>/events.json", run_downloads.events, name="run_events_json"),
    path("runs/<int:number>/input/", run_downloads.params, name="run_input"),
    path("runs/<int:number>/output/", run_downloads.output, name="run_output"),
    path("runs/<int:number>/visits/<int:visit>/output/", run_downloads.visit_output, name="visit_output"),
    path(
        "runs/<int:number>/visits/<int:visit>/attempts/<int:attempt>/<str:what>/",
        run_downloads.attempt_value,
        name="attempt_value",
    ),
    # ---- actions
    path("runs/<int:number>/fork/", forking.fork, name="fork"),
    path("runs/<int:number>/actions/<str:verb>/", run_actions.action, name="run_action"),
]
