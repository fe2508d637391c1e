"""A PostgreSQL server of its own for tests that restart it. Its files are in a temporary directory, its port is free."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIMEOUT_S = 60


def programs() -> Path | None:
    """Where ``initdb`` and ``pg_ctl`` are: those of the newest version, None without them."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name.zfill(4))
    return next((path for path in reversed(found) if (path / "initdb").exists() and (path / "pg_ctl").exists()), None)


def why_impossible() -> str:
    """Why no server can be started here, empty when one can."""
    if programs() is None:
        return "initdb and pg_ctl were not found"
    return "" if _owner() is not None else "a server cannot run as root, and there is no user postgres"


def _owner() -> str | None:
    """Who runs the server: a server refuses to run as root."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else None


class PrivateServer:
    """Started; ``url`` is the address of an empty database."""

    def __init__(self, folder: Path) -> None:
        found, owner = programs(), _owner()
        assert found is not None
        assert owner is not None
        self._programs, self._owner, self._folder = found, owner, folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        if os.getuid() == 0:
            shutil.chown(folder, owner)
        self._call("initdb", "--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C")
        self.start()
        self.url = f"postgres://postgres@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._call("pg_ctl", "start", "-w", "-o", options, "-l", str(self._folder / "log"))

    def stop(self, mode: str) -> None:
        """``fast`` ends every session in order; ``immediate`` is a crash."""
        self._call("pg_ctl", "stop", "-w", "-m", mode)

    def _call(self, program: str, *words: str) -> None:
        data = ("-D", str(self._folder / "data"))
        as_owner = {"user": self._owner, "group": pwd.getpwnam(self._owner).pw_gid} if os.getuid() == 0 else {}
        subprocess.run(
            [str(self._programs / program), *data, *words],
            check=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            **as_owner,
        )


@contextmanager
def private_server() -> Iterator[PrivateServer]:
    folder = Path(tempfile.mkdtemp(prefix="waypost-server-"))
    try:
        server = PrivateServer(folder)
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
