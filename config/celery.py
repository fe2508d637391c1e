"""``celery -A config.celery worker``: the application, with Django set up."""

from __future__ import annotations

import os

import django
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402

from workflows.tasks.app import app  # noqa: E402

if not settings.CELERY_BROKER_URL:
    raise ImproperlyConfigured("Celery workers need a broker: set CELERY_BROKER_URL, such as redis://host:6379/0.")

__all__ = ["app"]
