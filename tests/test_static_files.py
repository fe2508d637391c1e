"""Static files: there without ``collectstatic``, and kept for ever where it has run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from config.security import CONTENT_SECURITY_POLICY
from config.static import HashedWhenCollected

VENDORED = Path(settings.BASE_DIR) / "static" / "vendor"


@pytest.mark.parametrize("name", ["waypost.css", "waypost.js", "icon.svg", "vendor/htmx.min.js"])
def test_files_are_served_where_nobody_collected_them(name: str) -> None:
    response = Client().get(f"/static/{name}")
    assert response.status_code == 200
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert b"".join(response.streaming_content) == (Path(settings.BASE_DIR) / "static" / name).read_bytes()  # type: ignore[attr-defined]


def test_names_have_hashes_once_files_were_collected() -> None:
    storage = HashedWhenCollected()
    assert storage.url("waypost.css", force=True) == "/static/waypost.css"
    storage.hashed_files = {"waypost.css": "waypost.0123456789ab.css"}
    assert storage.url("waypost.css", force=True) == "/static/waypost.0123456789ab.css"


def test_files_of_others_are_named_with_version_and_licence() -> None:
    told = (VENDORED / "README.md").read_text()
    for file in VENDORED.glob("*.js"):
        line = next(line for line in told.splitlines() if f"`{file.name}`" in line)
        licence = re.findall(r"`([^`]+LICENSE[^`]*)`", line)
        assert re.search(r"\d+\.\d+\.\d+", line)
        assert licence
        assert (VENDORED / licence[0]).is_file()
