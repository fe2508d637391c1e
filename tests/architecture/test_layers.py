"""The import contracts of pyproject.toml cover every module and hold."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from django.conf import settings

PROJECT = Path(settings.BASE_DIR)


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_are_exhaustive() -> None:
    tool = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]
    layers = [contract for contract in tool["importlinter"]["contracts"] if contract["type"] == "layers"]
    assert [(contract["containers"], contract["exhaustive"]) for contract in layers] == [(["workflows"], True)]
