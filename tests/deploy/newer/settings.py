"""The settings of the next version: its migrations, and its column of runs."""

from __future__ import annotations

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.deploy.newer.apps.NewerConfig"]
MIGRATION_MODULES = {"workflows": "tests.deploy.newer.migrations", "newer": None}
