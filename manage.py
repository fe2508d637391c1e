#!/usr/bin/env python
"""The command line of the project: ``python manage.py run_workflow NAME``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] == ["runserver"]:
        os.environ.setdefault("WAYPOST_PROCESS", "web")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
