"""``up``: everything an installation needs, on one machine, by one command."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from workflows.errors import ExitCode, Refusal
from workflows.management.base import Command as WaypostCommand
from workflows.management.process_list import ProcessList, Role

MOST_WORKERS = 32
#: Where ``config.gunicorn`` listens when nobody says otherwise.
DEFAULT_BIND = "127.0.0.1:8000"


class Command(WaypostCommand):
    help = (
        "Runs the web server and the workers of an installation on this machine until it is told to stop. "
        "With CELERY_BROKER_URL the workers are Celery's."
    )

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument("--workers", type=_workers, default=1, metavar="N", help="worker processes (default 1)")
        parser.add_argument(
            "--bind", default="", metavar="HOST:PORT", help="where to listen (default WEB_BIND, or 127.0.0.1:8000)"
        )

    def perform(self, **options: Any) -> int:
        roles = roles_of(workers=options["workers"], bind=options["bind"], has_broker=_has_broker())
        bind = options["bind"] or os.environ.get("WEB_BIND") or DEFAULT_BIND
        self.write_now(f"the web server listens on {bind}; Ctrl-C ends everything")
        with ProcessList(roles, self.write_now) as processes:
            has_stayed = processes.keep()
        self.write_now("everything has ended")
        return ExitCode.SUCCEEDED if has_stayed else ExitCode.FAILED


def roles_of(*, workers: int, bind: str, has_broker: bool) -> list[Role]:
    """The processes of an installation. Raises ``input.invalid`` when a package that they need is missing."""
    for package in ("gunicorn", *(["celery"] if has_broker else [])):
        if importlib.util.find_spec(package) is None:
            raise Refusal("input.invalid", reason=f"{package} is not installed: pip install 'waypost[server]'.")
    web = [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn", "config.wsgi"]
    web += ["--bind", bind] if bind else []
    worker = [sys.executable, sys.argv[0], "run_worker"]
    celery = [sys.executable, "-m", "celery", "--app", "config.celery"]
    roles = [Role(name="web", words=web, process="web")]
    for number in range(1, workers + 1):
        words = [*celery, "worker", "--hostname", f"worker{number}@%h"] if has_broker else worker
        roles.append(Role(name=f"worker {number}", words=words, process="command"))
    return roles


def _has_broker() -> bool:
    return bool(getattr(settings, "CELERY_BROKER_URL", ""))


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_WORKERS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_WORKERS}")
    return int(text)
