"""Static files: hashed names where ``collectstatic`` made them, plain names where nobody did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedWhenCollected(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # no types there
    """A fresh installation shows its pages without ``collectstatic``; a server that ran it gets names with hashes,
    which browsers keep for ever."""

    manifest_strict = False

    def stored_name(self, name: str) -> Any:
        return super().stored_name(name) if self.hashed_files else name


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # no types there
    """Serves static files. Where ``collectstatic`` has not run there is no directory of its files, and that is fine."""

    def add_files(self, root: str, prefix: str | None = None) -> None:
        if Path(root).is_dir():
            super().add_files(root, prefix)
