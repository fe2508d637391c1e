from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def workspaces(settings: Any, tmp_path: Path) -> Path:
    """Workspaces of this test only."""
    root = tmp_path / "workspaces"
    settings.WORKSPACE_ROOT = root
    return root
