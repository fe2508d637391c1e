"""``python -m workflows.api``: writes the description of the API anew; a test compares it."""

from __future__ import annotations

import os
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from workflows.api.docs import schema_text  # noqa: E402  settings come first

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"

if __name__ == "__main__":
    COMMITTED.write_text(schema_text(), encoding="utf-8")
