"""The process that makes the data on one store and asks for each page: ``python -m benchmarks.pages_child``."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import django


def main() -> int:
    request = json.load(sys.stdin)
    django.setup()
    from django.core.management import call_command

    from benchmarks.page_addresses import addresses
    from benchmarks.page_data import make

    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    data = make(request["runs"], tell)
    tell(f"made in {time.perf_counter() - began:.0f} s")
    for name, (user, path) in addresses(data).items():
        if request["only"] in name:
            row = measured(name, user, path, request["requests"], explains=request["explain"])
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
            tell(f"{name}: {row['wall_ms']:.0f} ms, {row['cpu_ms']:.0f} ms of the processor")
    return 0


def tell(text: str) -> None:
    sys.stderr.write(f"  {text}\n")
    sys.stderr.flush()


def measured(name: str, user: str, path: str, requests: int, *, explains: bool) -> dict[str, Any]:
    """One request to warm up and to count statements, then those whose time is taken."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model()._default_manager.get(username=user))
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        response = client.get(path)
        asked = list(queries)
    if response.status_code != 200:
        raise AssertionError(f"{path} is answered with {response.status_code}")
    size = len(body_of(response))
    walls, cpus = [], []
    for _ in range(requests):
        wall, cpu = time.perf_counter(), time.process_time()
        body_of(client.get(path))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    found: dict[str, Any] = {
        "page": name,
        "path": path,
        "wall_ms": 1_000 * statistics.median(walls),
        "cpu_ms": 1_000 * statistics.median(cpus),
        "database_ms": 1_000 * sum(float(query["time"]) for query in asked) * (connection.vendor != "sqlite"),
        "queries": len(asked),
        "bytes": size,
    }
    if explains and asked:
        found["explained"] = explained(max(asked, key=lambda query: float(query["time"])))
    return found


def body_of(response: Any) -> bytes:
    """The whole answer; a download is made while it is read."""
    return bytes(response.getvalue() if response.streaming else response.content)


def explained(query: dict[str, str]) -> list[str]:
    """A statement and how the database carries it out."""
    from django.db import connection

    prefix = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN (ANALYZE, COSTS OFF)"
    with connection.cursor() as cursor:
        cursor.execute(f"{prefix} {query['sql']}".replace("%", "%%"), [])
        plan = [" ".join(str(cell) for cell in row) for row in cursor.fetchall()]
    return [f"{query['time']} s {query['sql'][:1_500]}", *plan]


if __name__ == "__main__":
    sys.exit(main())
