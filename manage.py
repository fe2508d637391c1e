#!/usr/bin/env python
"""The command line of the project: ``python manage.py run_workflow NAME``."""

from __future__ import annotations

import os
import sys

NEEDED = (3, 11)
#: The exit code of a command that cannot be carried out as it was given.
USAGE = 2
#: The exit code of a command that was interrupted and leaves everything as it is.
INTERRUPTED = 6


def main() -> None:
    if sys.version_info < NEEDED:
        found = ".".join(str(part) for part in sys.version_info[:2])
        _leave(f"Waypost needs Python 3.11 or newer; this is {found} ({sys.executable}).", _ENVIRONMENT)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] in (["runserver"], ["serve"]):
        os.environ.setdefault("WAYPOST_PROCESS", "web")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        _leave(f"Django is not installed for this Python ({sys.executable}).", _ENVIRONMENT)
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        settings.INSTALLED_APPS  # noqa: B018 - reading one setting reads all of them
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        # before a command listens for it: nothing has been begun
        raise SystemExit(INTERRUPTED) from None
    except ImproperlyConfigured as error:
        _leave(f"The settings cannot be used: {error}", "docs/settings.md lists every variable.")


_ENVIRONMENT = "Run `python3 -m venv .venv && .venv/bin/pip install -e .`, then use `.venv/bin/python manage.py`."


def _leave(problem: str, advice: str) -> None:
    sys.stderr.write(f"error: {problem}\nhint: {advice}\n")
    raise SystemExit(USAGE)


if __name__ == "__main__":
    main()
