"""The web application for servers that speak WSGI."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("WAYPOST_PROCESS", "web")

application = get_wsgi_application()
