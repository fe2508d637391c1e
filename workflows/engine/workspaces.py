"""The directory of a run in which its steps work: made on demand, private, never through a link."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o700


class WorkspaceRefused(Exception):
    """The workspace, or a folder in it, cannot be used. The message says why."""


class Workspaces:
    """Workspaces below one root directory (``settings.WORKSPACE_ROOT``)."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def path(self, run_id: int) -> Path:
        """The workspace of a run, created if it is not there. Raises :class:`WorkspaceRefused`."""
        path = self.root / f"run-{run_id}"
        if not _is_private_directory(path):
            _make_directory(self.root, parents=True)
            _make_directory(path)
        return path

    def staged_copy(self, run_id: int, name: str) -> Path | None:
        """A copy of the workspace of a run as it is now, beside the workspaces; None: the run has none here.

        Links are copied as links. ``name`` tells copies apart. Raises :class:`WorkspaceRefused`.
        """
        path, copy = self.root / f"run-{run_id}", self.root / f"copy-{name}"
        if not _is_private_directory(path):
            return None
        try:
            shutil.copytree(path, copy, symlinks=True)
        except (OSError, shutil.Error) as error:
            shutil.rmtree(copy, ignore_errors=True)
            raise WorkspaceRefused(str(error)[:1000]) from error
        return copy

    def place(self, copy: Path, run_id: int) -> None:
        """Make a staged copy the workspace of a run that has none yet. Raises :class:`WorkspaceRefused`."""
        try:
            copy.rename(self.root / f"run-{run_id}")
        except OSError as error:
            raise WorkspaceRefused(str(error)[:1000]) from error

    def discard(self, copy: Path) -> None:
        """Remove a staged copy that is not needed."""
        shutil.rmtree(copy, ignore_errors=True)


def folder_below(workspace: Path, folder: str) -> Path:
    """``folder`` inside ``workspace`` with all links resolved.

    Raises :class:`WorkspaceRefused` when it is not a folder or lies outside, be it by ``..`` or by a link.
    """
    root = workspace.resolve()
    if Path(folder).is_absolute():
        raise WorkspaceRefused(f'The folder "{folder}" must be relative to the workspace.')
    if "\0" in folder:
        raise WorkspaceRefused("The name of a folder cannot contain the character U+0000.")
    try:
        path = (root / folder).resolve()
    except (OSError, RuntimeError):  # a link that leads to itself, on some versions of Python
        raise WorkspaceRefused(f'There is no folder "{folder}" in the workspace.') from None
    if not path.is_relative_to(root):
        raise WorkspaceRefused(f'The folder "{folder}" is outside of the workspace.')
    if not path.exists():
        raise WorkspaceRefused(f'There is no folder "{folder}" in the workspace.')
    if not path.is_dir():
        raise WorkspaceRefused(f'"{folder}" in the workspace is not a folder.')
    return path


def _is_private_directory(path: Path) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _make_directory(path: Path, *, parents: bool = False) -> None:
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=PRIVATE)
        # Looked at after the creation: what is there may be somebody else's, put there in between.
        found = os.lstat(path)
    except OSError as error:
        raise WorkspaceRefused(f"The workspace {path} cannot be created: {error.strerror}.") from error
    if stat.S_ISLNK(found.st_mode):
        raise WorkspaceRefused(f"The workspace {path} is a link, and links are not followed.")
    if not stat.S_ISDIR(found.st_mode):
        raise WorkspaceRefused(f"The workspace {path} is not a directory.")
    if found.st_uid != os.getuid():
        raise WorkspaceRefused(f"The workspace {path} belongs to another user.")
    if stat.S_IMODE(found.st_mode) & 0o077 and not parents:
        path.chmod(PRIVATE)
