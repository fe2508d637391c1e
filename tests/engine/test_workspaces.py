"""Workspaces: one private directory per run, never through a link (docs/architecture.md, Workspace)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from workflows.engine.workspaces import WorkspaceRefused, Workspaces, folder_below


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_workspace_is_made_when_it_is_asked_for_and_is_private(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path / "var" / "workspaces")
    assert not workspaces.root.exists()
    old = os.umask(0)
    try:
        path = workspaces.path(12)
    finally:
        os.umask(old)

    assert path == tmp_path / "var" / "workspaces" / "run-12"
    assert (mode_of(path), mode_of(workspaces.root)) == (0o700, 0o700)


def test_it_stays_what_it_is(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    (workspaces.path(1) / "file").write_text("kept")

    assert (workspaces.path(1) / "file").read_text() == "kept"
    assert workspaces.path(2) != workspaces.path(1)


def test_a_wider_workspace_is_made_private_again(tmp_path: Path) -> None:
    path = Workspaces(tmp_path).path(1)
    path.chmod(0o755)

    assert mode_of(Workspaces(tmp_path).path(1)) == 0o700


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "run-1").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(WorkspaceRefused) as caught:
        Workspaces(tmp_path / "root").path(1)

    assert str(caught.value) == f"The workspace {tmp_path}/root/run-1 is a link, and links are not followed."


def test_a_link_in_place_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(WorkspaceRefused) as caught:
        Workspaces(tmp_path / "root").path(1)

    assert str(caught.value) == f"The workspace {tmp_path}/root is a link, and links are not followed."
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run-1").touch()

    with pytest.raises(WorkspaceRefused) as caught:
        Workspaces(tmp_path).path(1)

    assert str(caught.value) == f"The workspace {tmp_path}/run-1 is not a directory."


def test_a_root_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(WorkspaceRefused) as caught:
        Workspaces(tmp_path / "file" / "root").path(1)

    assert str(caught.value) == f"The workspace {tmp_path}/file/root cannot be created: File exists."


def test_folders_below_may_be_reached_by_links_that_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    assert folder_below(tmp_path, "link/deep") == (tmp_path / "real" / "deep").resolve()
    assert folder_below(tmp_path, "real/../real") == (tmp_path / "real").resolve()
    assert folder_below(tmp_path, ".") == tmp_path.resolve()


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("loop", 'There is no folder "loop" in the workspace.'),
        ("out/inner", 'The folder "out/inner" is outside of the workspace.'),
        ("a\0b", "The name of a folder cannot contain the character U+0000."),
    ],
)
def test_other_folders_are_refused(tmp_path: Path, folder: str, message: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("..")

    with pytest.raises(WorkspaceRefused) as caught:
        folder_below(tmp_path, folder)

    assert str(caught.value) == message
