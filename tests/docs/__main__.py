"""Writes the tables of the pages anew: ``python -m tests.docs``."""

from __future__ import annotations

import os

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.docs.blocks import PAGES
    from tests.docs.tables import with_tables

    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(with_tables(text), encoding="utf-8")


if __name__ == "__main__":
    main()
