"""The system checks say what is wider, unkept or unreliable, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import Error, Warning
from django.db import connection
from pytest_django import Settings

from workflows import checks


@pytest.fixture
def var(settings: Settings, tmp_path: Path) -> Path:
    directory = tmp_path / "var"
    directory.mkdir(mode=0o700)
    settings.WAYPOST_VAR = directory
    settings.WAYPOST_USES_EMBEDDED_DATABASE = True
    settings.WAYPOST_EMBEDDED_DATABASE = directory / "waypost.sqlite3"
    settings.WORKSPACE_ROOT = directory / "workspaces"
    return directory


def test_private_files_are_no_finding(var: Path) -> None:
    (var / "secret_key").touch(mode=0o600)
    assert checks.check_private_files(None) == []


def test_files_that_others_may_use_are_named(var: Path) -> None:
    database, workspaces = var / "waypost.sqlite3", var / "workspaces"
    database.touch(mode=0o600)
    database.chmod(0o644)
    workspaces.mkdir()
    workspaces.chmod(0o755)
    assert checks.check_private_files(None) == [
        Warning(
            f"{workspaces} has mode 0755; others than its owner may use it. Expected 0700.",
            hint=f"Run `chmod go-rwx {workspaces}`.",
            id="waypost.W001",
        ),
        Warning(
            f"{database} has mode 0644; others than its owner may use it. Expected 0600.",
            hint=f"Run `chmod go-rwx {database}`.",
            id="waypost.W001",
        ),
    ]


def test_a_secret_key_that_is_not_kept_is_a_warning(var: Path, settings: Settings) -> None:
    settings.WAYPOST_MAKES_SECRET_KEY = True
    assert checks.check_secret_key_is_kept(None) == [
        Warning(
            f"The secret key cannot be kept in {var / 'secret_key'}; sign-ins end with the process.",
            hint="Make the directory writable, or set SECRET_KEY.",
            id="waypost.W002",
        )
    ]
    (var / "secret_key").touch()
    assert checks.check_secret_key_is_kept(None) == []


@pytest.mark.usefixtures("var")
def test_hosts_that_share_a_database_need_one_secret_key(settings: Settings) -> None:
    settings.WAYPOST_MAKES_SECRET_KEY = True
    assert checks.check_secret_key_is_shared(None) == []
    settings.WAYPOST_USES_EMBEDDED_DATABASE = False
    assert [found.id for found in checks.check_secret_key_is_shared(None)] == ["waypost.W003"]


@pytest.mark.store("sqlite")
def test_a_database_on_a_network_file_system_is_refused_unless_forced(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = connection.settings_dict["NAME"]
    assert checks.check_file_system(None) == []
    monkeypatch.setattr(checks, "network_file_system", lambda path: "nfs4")
    assert checks.check_file_system(None) == [
        Error(
            f"The database {name} lies on a network file system (nfs4), where file locks are not reliable.",
            hint="Move it to a local disk, use PostgreSQL, or set WAYPOST_ALLOW_NETWORK_DATABASE=1.",
            id="waypost.E001",
        )
    ]
    settings.WAYPOST_ALLOW_NETWORK_DATABASE = True
    assert checks.check_file_system(None) == []
