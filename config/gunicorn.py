"""How gunicorn serves the pages: ``gunicorn -c python:config.gunicorn config.wsgi`` (docs/production.md).

A few processes with many threads: a thread waits for the database most of its time, and one that a long poll of the
API holds does nothing at all. So there are as many as may wait at once, and ``OTHER_THREADS`` more for everybody else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from config.environment import Environment
from config.logging import FORMATS, as_settings

#: Threads of each process that no long poll takes.
OTHER_THREADS = 16
#: A long poll ends within 20 s; so much time has whatever is being answered when the server is told to stop.
GRACE_S = 25
#: Where gunicorn keeps the signs of life of its own processes.
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108

_env = Environment()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("WAYPOST_PROCESS", "web")

wsgi_app = "config.wsgi:application"
bind = _env.list("WEB_BIND", default=["127.0.0.1:8000"])
worker_class = "gthread"
workers = _env.int("WEB_PROCESSES", default=2)
threads = _env.int("WEB_THREADS", default=_env.int("WAYPOST_API_WAITING_LIMIT", default=8) + OTHER_THREADS)
timeout = 60
graceful_timeout = GRACE_S
keepalive = 5
# a disk that is slow for a moment must not make a process look dead
worker_tmp_dir = str(_SHARED_MEMORY) if _SHARED_MEMORY.is_dir() else None


def _logging() -> dict[str, Any]:
    """Gunicorn's log in the format of the rest. There is no access log: a proxy has one, and each request an id."""
    found = as_settings(_env.choice("LOG_FORMAT", FORMATS, default="line"), _env.str("LOG_LEVEL", default="WARNING"))
    found["loggers"]["gunicorn.error"] = {"level": "INFO"}
    return found


logconfig_dict = _logging()
