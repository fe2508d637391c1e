"""Brokers of one test: a Redis server of its own, a virtual host of a RabbitMQ that runs. Skips where there is none."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

import pytest

WAIT_S = 20


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


class PrivateRedis:
    """A server on a free port, with a directory of its own; it forgets everything when it is killed."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("no redis-server is installed here")
        self._program = program
        self._folder = tempfile.mkdtemp(prefix="waypost-redis-")
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", self._folder, "--save", "")
        self._process = subprocess.Popen(
            [self._program, *words, "--appendonly", "no"], stdout=subprocess.DEVNULL, start_new_session=True
        )
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("Redis did not start.")

    def kill(self) -> None:
        """SIGKILL: all messages are lost."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(WAIT_S)
            self._process = None

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class PrivateRabbit:
    """A virtual host of its own in the RabbitMQ of this machine."""

    def __init__(self) -> None:
        if shutil.which("rabbitmqctl") is None:
            pytest.skip("no rabbitmqctl is installed here")
        self.host = f"waypost-{uuid.uuid4().hex[:8]}"
        self.url = f"amqp://guest:guest@127.0.0.1:5672/{self.host}"

    def start(self) -> None:
        try:
            socket.create_connection(("127.0.0.1", 5672), timeout=1).close()
            self._control("add_vhost", self.host)
            self._control("set_permissions", "-p", self.host, "guest", ".*", ".*", ".*")
        except (OSError, subprocess.SubprocessError):
            pytest.skip("no RabbitMQ that lets virtual hosts be made runs here")

    def kill(self) -> None:
        """What a crash does: connections end, all messages are lost."""
        self._control("close_all_connections", "--vhost", self.host, "crash")
        self._control("delete_vhost", self.host)

    def close(self) -> None:
        self._control("delete_vhost", self.host)

    @staticmethod
    def _control(*words: str) -> None:
        subprocess.run(["rabbitmqctl", "-q", *words], check=True, capture_output=True, timeout=60)
