"""``python -m benchmarks.web_load``: how long a start through the API takes while many others wait and look.

One gunicorn with the settings of the project serves so many programs that wait for events (long polls of 20 s, each on
a run of its own), so many browsers that keep the page of a run fresh, and one program that starts runs one after the
other. Printed is what starts, fragments of pages and long polls took in milliseconds. Ends with 1 when a start took
longer than the bar, or any answer was not the expected one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks import machine, stores
from benchmarks.__main__ import say, usable_stores

BAR_MS = 300
BROWSER_S = 2.0
LONG_POLL_S = 20
READY_S = 60.0


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.web_load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=50, help="long polls at once (default 50)")
    parser.add_argument("--browsers", type=int, default=20, help="browsers, which ask every 2 s (default 20)")
    parser.add_argument("--seconds", type=float, default=30, help="how long (default 30)")
    parser.add_argument("--pause-ms", type=int, default=200, help="between a start and the next one (default 200)")
    parser.add_argument("--processes", type=int, default=2, help="processes of gunicorn (default 2)")
    parser.add_argument("--store", choices=stores.VENDORS, default="postgresql", help="the database (postgresql)")
    parser.add_argument(
        "--with-worker", action="store_true", help="a worker on the same machine drives what is started"
    )
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    return parser.parse_args(words)


@dataclass(slots=True, kw_only=True)
class Load:
    """What the clients share: where to ask, what they found, and when to stop."""

    port: int
    key: str
    session: str
    runs: list[dict[str, int]]
    took_ms: dict[str, list[float]] = field(default_factory=lambda: {"start": [], "page": [], "long poll": []})
    unexpected: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, what: str, method: str, path: str, *, body: Any = None, browser: bool = False) -> None:
        """One request; a connection is kept by the thread that asks."""
        headers = {"Cookie": f"sessionid={self.session}", "HX-Request": "true"} if browser else self._of_program()
        began = time.monotonic()
        try:
            connection = self._connection()
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            answer.read()
            status = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            _kept.connection = None
            status = type(error).__name__
        took = 1_000 * (time.monotonic() - began)
        with self.lock:
            if status in ("200", "201"):
                self.took_ms[what].append(took)
            elif not self.over.is_set():
                self.unexpected[f"{what}: {status}"] += 1

    def _of_program(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(_kept, "connection", None) is None:
            _kept.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG_POLL_S + 20)
        connection: http.client.HTTPConnection = _kept.connection
        return connection


_kept = threading.local()


def main(words: Sequence[str]) -> int:
    options = parse(words)
    if (warning := machine.load_warning(machine.load())) is not None:
        say(warning)
    ((vendor, server),) = usable_stores(options.store)
    with stores.temporary(vendor, server) as store, served(store, options) as load:
        say(f"{options.programs} programs wait, {options.browsers} browsers look, for {options.seconds:g} s")
        began, used = time.monotonic(), times_of_children()
        play(load, options)
        found = summary(load)
        seconds = time.monotonic() - began
    found["server_cpu"] = (times_of_children() - used) / seconds
    if options.as_json:
        sys.stdout.write(json.dumps({"machine": machine.describe_machine(), **found}, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(report(found)) + "\n")
    return 0 if is_within(found) else 1


def times_of_children() -> float:
    """Processor time of the processes that have ended, in seconds; the server is among them at the end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- the server ------------------------------------------------------------------------------------------------------


@contextmanager
def served(store: stores.Store, options: argparse.Namespace) -> Iterator[Load]:
    """gunicorn (and a worker) on a database with what the clients need."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    environment = {
        **os.environ,
        "DATABASE_URL": store.database_url,
        "WAYPOST_VAR": store.directory,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "SECRET_KEY": "of a benchmark",
        "WAYPOST_API_WAITING_LIMIT": str(max(8, options.programs)),
        "WAYPOST_API_REQUESTS_PER_MINUTE": "1000000",
        "WEB_BIND": f"127.0.0.1:{port}",
        "WEB_PROCESSES": str(options.processes),
    }
    manage(environment, "migrate", "-v0")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.web_load_data", str(options.programs)],
        cwd=stores.PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    gunicorn = ["-m", "gunicorn", "--config", "python:config.gunicorn", "config.wsgi"]
    started = [subprocess.Popen([sys.executable, *gunicorn], cwd=stores.PROJECT, env=environment)]
    if options.with_worker:
        started.append(subprocess.Popen(_manage("run_worker", "--quiet"), cwd=stores.PROJECT, env=environment))
    try:
        wait_until_ready(port)
        yield Load(port=port, **json.loads(done.stdout))
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def _manage(*words: str) -> list[str]:
    return [sys.executable, str(stores.PROJECT / "manage.py"), *words]


def manage(environment: Mapping[str, str], *words: str) -> None:
    subprocess.run(_manage(*words), cwd=stores.PROJECT, env=dict(environment), check=True)


def wait_until_ready(port: int) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/api/v1/health/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("The server did not become ready.")


# ---- the clients -----------------------------------------------------------------------------------------------------


def play(load: Load, options: argparse.Namespace) -> None:
    """Everybody at once, until the time is over."""
    waiting = [lambda run=run: wait_for_events(load, run) for run in load.runs[: options.programs]]
    looking = [lambda number=number: look(load, number) for number in range(options.browsers)]
    bodies: list[Callable[[], None]] = [*waiting, *looking]
    threads = [threading.Thread(target=body, daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    time.sleep(2)  # until everybody waits
    ends = time.monotonic() + options.seconds
    while time.monotonic() < ends:
        load.ask("start", "POST", "/api/v1/runs", body={"workflow": "started"})
        time.sleep(options.pause_ms / 1_000)
    load.over.set()
    for thread in threads[options.programs :]:
        thread.join(LONG_POLL_S)


def wait_for_events(load: Load, run: Mapping[str, int]) -> None:
    while not load.over.is_set():
        load.ask("long poll", "GET", f"/api/v1/runs/{run['run']}/events?after={run['cursor']}&wait={LONG_POLL_S}")


def look(load: Load, number: int) -> None:
    run = load.runs[number % len(load.runs)]["run"]
    load.over.wait(BROWSER_S * (number % 10) / 10)  # not all at the same moment
    while not load.over.is_set():
        load.ask("page", "GET", f"/runs/{run}/parts/live/", browser=True)
        load.over.wait(BROWSER_S)


# ---- what was found --------------------------------------------------------------------------------------------------


def summary(load: Load) -> dict[str, Any]:
    with load.lock:
        rows = {what: _figures(took) for what, took in load.took_ms.items()}
        return {"ms": rows, "unexpected": dict(load.unexpected), "bar_ms": BAR_MS}


def _figures(took: list[float]) -> dict[str, float]:
    if not took:
        return {"count": 0}
    ordered = sorted(took)
    return {
        "count": len(ordered),
        "p50": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "max": ordered[-1],
    }


def is_within(found: Mapping[str, Any]) -> bool:
    starts = found["ms"]["start"]
    return bool(starts["count"] and starts["max"] < BAR_MS and not found["unexpected"])


def report(found: Mapping[str, Any]) -> list[str]:
    lines = [f"# {name}: {value}" for name, value in machine.describe_machine().items()]
    lines += ["", f"{'milliseconds':<14}{'count':>8}{'p50':>10}{'p95':>10}{'max':>10}"]
    for what, row in found["ms"].items():
        figures = "".join(f"{row[name]:>10.1f}" for name in ("p50", "p95", "max") if name in row)
        lines.append(f"{what:<14}{row['count']:>8}{figures}")
    lines += [f"unexpected: {what} ({count} times)" for what, count in found["unexpected"].items()]
    lines.append(f"the server used {found['server_cpu']:.2f} processors, without the database")
    lines.append(f"a start takes less than {BAR_MS} ms: {'yes' if is_within(found) else 'NO'}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
