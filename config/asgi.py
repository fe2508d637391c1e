"""The web application for servers that speak ASGI."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("WAYPOST_PROCESS", "web")

application = get_asgi_application()
