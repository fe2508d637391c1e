"""``celery -A config.celery worker``: the application, with Django set up."""

from __future__ import annotations

import os

import django
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from celery.signals import setup_logging  # noqa: E402
from django.conf import settings  # noqa: E402

from workflows.tasks.app import app  # noqa: E402

if not settings.CELERY_BROKER_URL:
    raise ImproperlyConfigured("Celery workers need a broker: set CELERY_BROKER_URL, such as redis://host:6379/0.")


@setup_logging.connect  # type: ignore[untyped-decorator]  # no types
def keep_logging(**_: object) -> None:
    """Whoever listens here has set logging up: Django did. Celery would set a level and a format of its own."""


__all__ = ["app"]
