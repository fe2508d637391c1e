"""Private files: made with 0600 and 0700, never through links, and named when they are wider."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.processes import run_in_threads
from workflows.stores.files import make_private_directory, prepare_private_file, secret_key, wider_than_private


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_directories_are_made_for_their_owner_only(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "a" / "b")
    assert (mode_of(tmp_path / "a"), mode_of(tmp_path / "a" / "b")) == (0o700, 0o700)


def test_a_directory_is_not_made_through_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        make_private_directory(tmp_path / "link")
    assert not (tmp_path / "target").exists()


def test_a_file_is_made_for_its_owner_only_and_kept_as_it_is_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "var" / "database"
    prepare_private_file(path)
    path.write_text("kept")
    prepare_private_file(path)
    assert (mode_of(path), path.read_text()) == (0o600, "kept")


def test_a_file_is_not_made_through_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    prepare_private_file(tmp_path / "link")
    assert not (tmp_path / "target").exists()


def test_a_secret_key_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"
    key = secret_key(path)
    assert len(key) >= 50
    assert secret_key(path) == key
    assert (mode_of(path), [entry.name for entry in path.parent.iterdir()]) == (0o600, ["secret_key"])


def test_starts_at_the_same_instant_agree_on_one_secret_key(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    keys = run_in_threads(*[lambda: secret_key(path)] * 8)
    assert set(keys) == {path.read_text()}


def test_a_secret_key_that_cannot_be_kept_lives_as_long_as_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    first, second = secret_key(tmp_path / "file" / "key"), secret_key(tmp_path / "file" / "key")
    assert len(first) >= 50
    assert first != second


def test_a_link_in_place_of_the_secret_key_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("known to others")
    (tmp_path / "secret_key").symlink_to(tmp_path / "elsewhere")
    assert secret_key(tmp_path / "secret_key") != "known to others"


def test_what_others_may_use_is_named_with_both_modes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o640)
    assert wider_than_private(path) == f"{path} has mode 0640; others than its owner may use it. Expected 0600."
    path.chmod(0o400)
    assert wider_than_private(path) is None
    tmp_path.chmod(0o755)
    assert wider_than_private(tmp_path) == (
        f"{tmp_path} has mode 0755; others than its owner may use it. Expected 0700."
    )
    assert wider_than_private(tmp_path / "missing") is None
