"""The settings of the application and their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from workflows.conf import Conf, conf


def test_the_defaults_are_those_of_the_design(tmp_path: Path) -> None:
    assert Conf(workspace_root=tmp_path) == Conf(
        secrets={},
        workspace_root=tmp_path,
        library_dirs=(),
        lease_ttl_ms=60_000,
        heartbeat_ms=15_000,
        effect_threads=8,
        poison_limit=5,
        control_poll_ms=1_000,
        shutdown_grace_ms=10_000,
        engine_version=1,
    )


def test_settings_are_read_again_when_they_change(settings: Any, tmp_path: Path) -> None:
    settings.WORKSPACE_ROOT = str(tmp_path)
    settings.WAYPOST_EFFECT_THREADS = 3
    settings.WAYPOST_LIBRARY_DIRS = [str(tmp_path)]
    settings.WAYPOST_SECRETS = {"a": "value"}

    view = conf()

    assert (view.workspace_root, view.effect_threads, view.library_dirs) == (tmp_path, 3, (tmp_path,))
    assert view.secrets == {"a": "value"}
    assert "value" not in repr(view)
    settings.WAYPOST_EFFECT_THREADS = 4
    assert conf().effect_threads == 4


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "WAYPOST_EFFECT_THREADS",
            0,
            "WAYPOST_EFFECT_THREADS must be a whole number from 1 on, but it is 0.",
        ),
        (
            "WAYPOST_POISON_LIMIT",
            "5",
            "WAYPOST_POISON_LIMIT must be a whole number from 1 on, but it is '5'.",
        ),
        ("WAYPOST_SECRETS", ["a"], "WAYPOST_SECRETS must map names to values or to callables."),
        (
            "WAYPOST_HEARTBEAT_MS",
            40_000,
            "WAYPOST_HEARTBEAT_MS (40000) must be at most half of WAYPOST_LEASE_TTL_MS (60000), "
            "or a single late heartbeat loses the lease.",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: Any, name: str, value: Any, message: str) -> None:
    setattr(settings, name, value)

    with pytest.raises(ImproperlyConfigured) as caught:
        conf()

    assert str(caught.value) == message
