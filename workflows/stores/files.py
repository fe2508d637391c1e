"""Private files and directories: 0600 and 0700, created without following links, and what is wider than that."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_private_directory(path: Path) -> None:
    """Create ``path`` with 0700 if it is missing; parents that are missing too are made the same way.

    Raises ``OSError`` when it cannot be made, also when a dangling link or a file stands there.
    """
    if path.is_dir():
        return
    if not path.parent.is_dir():
        make_private_directory(path.parent)
    try:
        path.mkdir(PRIVATE_DIRECTORY)
    except FileExistsError:
        if not path.is_dir():
            raise


def prepare_private_file(path: Path) -> None:
    """Create an empty 0600 file if ``path`` is missing. Quiet when that fails: who opens the file says why."""
    try:
        make_private_directory(path.parent)
        os.close(os.open(path, _NEW_FILE | os.O_WRONLY, PRIVATE_FILE))
    except OSError:
        return


def secret_key(path: Path) -> str:
    """The key kept in ``path``, made there once. Two processes that make it at once agree on one.

    Where it can be neither read nor kept, the key lives as long as the process; a system check says so.
    """
    try:
        make_private_directory(path.parent)
        if not path.exists():
            _publish(path, secrets.token_urlsafe(50))
        kept = _read(path)
    except OSError:
        kept = ""
    return kept or secrets.token_urlsafe(50)


def _publish(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, _NEW_FILE | os.O_WRONLY, PRIVATE_FILE)
    try:
        os.write(descriptor, text.encode())
        os.fsync(descriptor)
        # a link appears whole or not at all, and never replaces what another process has put there
        os.link(draft, path, follow_symlinks=False)
    except FileExistsError:
        pass
    finally:
        os.close(descriptor)
        draft.unlink()


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode().strip()
    finally:
        os.close(descriptor)


def wider_than_private(path: Path) -> str | None:
    """A sentence if others than the owner may use ``path``, None if it is private or missing.

    >>> wider_than_private(Path("/nonexistent"))
    """
    try:
        found = path.stat()
    except OSError:
        return None
    wanted = PRIVATE_DIRECTORY if stat.S_ISDIR(found.st_mode) else PRIVATE_FILE
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077 == 0:
        return None
    return f"{path} has mode {mode:04o}; others than its owner may use it. Expected {wanted:04o}."
