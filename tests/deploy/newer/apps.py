"""Adds the column of the next version to the model, as its code would have it."""

from __future__ import annotations

from django.apps import AppConfig


class NewerConfig(AppConfig):
    name = "tests.deploy.newer"
    label = "newer"
