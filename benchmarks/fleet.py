"""``python -m benchmarks.fleet``: many runs over several Celery workers on a PostgreSQL server of their own.

Prints runs and steps per second for 1, 2 and 4 … workers, and how much faster a ``map`` over child runs gets. With
``--chaos`` workers are killed every few seconds and started again, the broker loses everything twice and the database
is restarted once, in the middle of it all; then every run must have ended as it would have otherwise, effects must have
happened as often as promised by their own log, the ledger must be sound, and no place may be held by the dead.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import django

from benchmarks import fleet_runs
from tests.attacks.private_server import PrivateServer, private_server
from tests.celery.brokers import PrivateRabbit, PrivateRedis

PROJECT = Path(__file__).resolve().parent.parent
#: Leases that end soon enough to see recovery in a short measurement.
QUICK = {"WAYPOST_LEASE_TTL_MS": "8000", "WAYPOST_HEARTBEAT_MS": "1500", "WAYPOST_SHUTDOWN_GRACE_MS": "3000"}
MOST_WAIT_S = 3600.0
Broker = PrivateRedis | PrivateRabbit


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2_000, help="runs of each round (default 2 000)")
    parser.add_argument("--workers", type=int, default=4, help="processes of the largest round (default 4)")
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--map-items", type=int, default=500, help="child runs of the map; 0 leaves it out")
    parser.add_argument("--chaos", action="store_true", help="kill workers, lose messages, restart the database")
    parser.add_argument("--only-chaos", action="store_true", help="no rounds without chaos")
    parser.add_argument("--seed", type=int, default=1, help="of what is killed when")
    return parser.parse_args(words)


class Fleet:
    """Celery workers, each with one process that drives; those that are killed are started again by ``kill_one``."""

    def __init__(self, broker: str, folder: Path) -> None:
        self._environment = {**os.environ, "CELERY_BROKER_URL": broker, **QUICK}
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []
        self._started = 0

    def start(self, count: int) -> None:
        for _ in range(count):
            self._started += 1
            with (self._folder / f"worker-{self._started}.log").open("wb") as log:
                self._workers.append(
                    subprocess.Popen(
                        [sys.executable, "-W", "ignore", "-m", "celery", "-A", "config.celery", "worker", "-c", "1",
                         "-n", f"fleet{self._started}@%h", "--without-mingle", "--without-gossip", "-l", "WARNING"],
                        env=self._environment,
                        cwd=PROJECT,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )  # fmt: skip

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL for a worker and all its processes; another one takes its place."""
        victim = self._workers.pop(chance.randrange(len(self._workers)))
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
        self.start(1)

    def stop(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
        self._workers.clear()


@contextmanager
def at_work(broker: str, folder: Path, count: int) -> Iterator[Fleet]:
    """So many workers, which have told that they are there."""
    from workflows.models import Worker

    fleet = Fleet(broker, folder)
    known = Worker.objects.count()
    try:
        fleet.start(count)
        wait_for(lambda: Worker.objects.count() >= known + count, most_s=120)
        yield fleet
    finally:
        fleet.stop()


def wait_for(holds: Callable[[], bool], *, most_s: float = MOST_WAIT_S, meanwhile: Callable[[], object] = int) -> None:
    from django.db import connection

    until = time.monotonic() + most_s
    while True:
        try:
            if holds():
                return
            meanwhile()
        except Exception as error:
            # the database is away for a moment
            say(f"  {type(error).__name__}: looked again")
            connection.close()
        if time.monotonic() > until:
            raise SystemExit("It did not come to its end in time.")
        time.sleep(0.1)


def have_ended(runs: list[int]) -> bool:
    from workflows.models import Run

    return not Run.objects.live().filter(pk__in=runs).exists()


def calm_round(options: argparse.Namespace, broker: str, folder: Path, log: Path, workers: int) -> list[str]:
    """One round without chaos; prints its rates."""
    runs = fleet_runs.start_runs(options.runs)
    begun = time.monotonic()
    with at_work(broker, folder, workers):
        ready_s = time.monotonic() - begun
        begun = time.monotonic()
        done_before = steps_of(runs)
        wait_for(lambda: have_ended(runs))
        took = time.monotonic() - begun
    rates = f"{options.runs / took:.1f} runs/s, {(steps_of(runs) - done_before) / took:.1f} steps/s"
    say(f"{workers} worker(s): {rates} ({took:.1f} s; ready after {ready_s:.1f} s)")
    return fleet_runs.problems_of(runs, log, is_calm=True)


def steps_of(runs: list[int]) -> int:
    from django.db.models import Q, Sum

    from workflows.models import Run

    rows = Run.objects.filter(Q(pk__in=runs) | Q(root_run__in=runs))
    return int(rows.aggregate(made=Sum("visits"))["made"] or 0)


def map_round(options: argparse.Namespace, broker: str, folder: Path, workers: int) -> float:
    """Seconds that a map over child runs of 200 ms takes."""
    with at_work(broker, folder, workers):
        begun = time.monotonic()
        run = fleet_runs.start_run("fleet_naps", items=list(range(options.map_items)))
        wait_for(lambda: have_ended([run]))
        took = time.monotonic() - begun
    say(f"{workers} worker(s): a map over {options.map_items} child runs of 200 ms took {took:.1f} s")
    return took


class Chaos:
    """Kills a worker every few seconds, loses the broker's messages twice and restarts the database once, at shares of
    what is done."""

    def __init__(self, options: argparse.Namespace, server: PrivateServer, broker: Broker, fleet: Fleet) -> None:
        self._chance = random.Random(options.seed)  # noqa: S311  # which worker dies is no secret
        self._server, self._broker, self._fleet = server, broker, fleet
        self._total = options.runs
        self._next_kill = time.monotonic() + 3
        self._plan = [(0.25, self.lose_broker), (0.5, self.restart_database), (0.7, self.lose_broker)]
        self.kills = 0

    def look(self, runs: list[int], log: Path) -> None:
        from workflows.models import Run

        fleet_runs.reconcile_by_log(log)
        if time.monotonic() >= self._next_kill:
            self._fleet.kill_one(self._chance)
            self.kills += 1
            self._next_kill = time.monotonic() + self._chance.uniform(3, 6)
        ended = self._total - Run.objects.live().filter(pk__in=runs).count()
        if self._plan and ended >= self._plan[0][0] * self._total:
            self._plan.pop(0)[1]()

    def lose_broker(self) -> None:
        say("  the broker loses everything")
        self._broker.kill()
        time.sleep(1)
        self._broker.start()

    def restart_database(self) -> None:
        from django.db import connection

        say("  the database is restarted")
        connection.close()
        self._server.stop("immediate")
        time.sleep(1)
        self._server.start()

    @property
    def left_out(self) -> int:
        return len(self._plan)


def chaos_round(
    options: argparse.Namespace, server: PrivateServer, broker: Broker, folder: Path, log: Path
) -> list[str]:
    say(f"{options.workers} workers, with chaos")
    runs = fleet_runs.start_runs(options.runs)
    begun = time.monotonic()
    with at_work(broker.url, folder, options.workers) as fleet:
        chaos = Chaos(options, server, broker, fleet)
        wait_for(lambda: have_ended(runs), meanwhile=lambda: chaos.look(runs, log))
        took = time.monotonic() - begun
    say(f"  {chaos.kills} kills; {options.runs / took:.1f} runs/s ({took:.1f} s)")
    missing = [f"{chaos.left_out} of the planned blows never came: too few runs"] if chaos.left_out else []
    return missing + fleet_runs.problems_of(runs, log, is_calm=False)


def ledger_problems() -> list[str]:
    found = subprocess.run(
        [sys.executable, "manage.py", "check_ledger"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    return [] if found.returncode == 0 else [f"check_ledger: {found.stdout[-2000:]}{found.stderr[-2000:]}"]


def main(words: Sequence[str]) -> int:
    options = parse(words)
    broker: Broker = PrivateRedis() if options.broker == "redis" else PrivateRabbit()
    with private_server() as server, TemporaryDirectory(prefix="waypost-fleet-") as name:
        folder = Path(name)
        os.environ |= {
            "DATABASE_URL": server.url,
            "WAYPOST_VAR": str(folder / "var"),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "CELERY_BROKER_URL": broker.url,
        }
        broker.start()
        try:
            django.setup()
            problems = measured(options, server, broker, folder)
        finally:
            broker.close()
        for problem in problems[:20]:
            say(f"WRONG: {problem}")
        say(f"{len(problems)} problems" if problems else "everything is as promised")
    return 1 if problems else 0


def measured(options: argparse.Namespace, server: PrivateServer, broker: Broker, folder: Path) -> list[str]:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    log = folder / "effects"
    fleet_runs.publish_all(log)
    problems: list[str] = []
    if not options.only_chaos:
        rounds = sorted({1, options.workers, *(2**power for power in range(6) if 2**power < options.workers)})
        for workers in rounds:
            problems += calm_round(options, broker.url, folder, log, workers)
        if options.map_items:
            alone, together = (map_round(options, broker.url, folder, count) for count in (1, options.workers))
            say(f"a map with {options.workers} workers against one: {together / alone:.2f}")
    if options.chaos or options.only_chaos:
        problems += chaos_round(options, server, broker, folder, log)
    return problems + ledger_problems()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
