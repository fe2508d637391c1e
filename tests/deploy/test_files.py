"""The files of ``deploy/`` agree with each other, with the settings and with the code."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.processes import PROJECT
from workflows.queries.metrics import METRICS

DEPLOY = PROJECT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
#: Read by gunicorn and Celery, before or beside the settings.
BESIDE_SETTINGS = {"WEB_BIND", "WEB_PROCESSES", "WEB_THREADS", "FORWARDED_ALLOW_IPS"}


def example() -> dict[str, str]:
    """The variables of the example file, also those that are commented out."""
    lines = (DEPLOY / "waypost.env.example").read_text(encoding="utf-8").splitlines()
    found = (re.fullmatch(r"#?([A-Z_]+)=(.*)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def documented() -> set[str]:
    text = "".join((PROJECT / "docs" / name).read_text(encoding="utf-8") for name in ("settings.md", "production.md"))
    return set(re.findall(r"`([A-Z][A-Z_]+)", text))


def test_every_variable_of_the_example_is_documented() -> None:
    unknown = {name for name in example() if not name.startswith("WAYPOST_SECRET_")} - documented()
    assert unknown == set()


def test_the_example_passes_the_checks_of_a_deployment(tmp_path: Path) -> None:
    environment = {name: value for name, value in example().items() if name != "CELERY_BROKER_URL"}
    environment |= {"SECRET_KEY": "k" * 60 + "abcdefgh", "WAYPOST_VAR": str(tmp_path / "var"), "WAYPOST_PROCESS": "web"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_gunicorn_has_a_thread_for_each_request_that_may_wait(tmp_path: Path) -> None:
    show = "from config import gunicorn as g; print(g.threads, g.workers, g.worker_class, g.bind)"
    done = subprocess.run(
        [sys.executable, "-c", show],
        cwd=PROJECT,
        env={"WAYPOST_API_WAITING_LIMIT": "32", "WEB_BIND": "127.0.0.1:9,[::1]:9", "WAYPOST_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "48 2 gthread ['127.0.0.1:9', '[::1]:9']\n"


def test_gunicorn_accepts_its_settings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn", "--check-config", "config.wsgi"],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "WAYPOST_VAR": str(tmp_path / "var")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_what_the_docs_name_and_is_restarted(unit: Path) -> None:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    service = parser["Service"]
    words = shlex.split(service["ExecStart"].replace("/opt/waypost/.venv/bin/", ""))
    assert words[0] in ("gunicorn", "python", "celery")
    assert service["Restart"] == "always"
    assert service["EnvironmentFile"] == "/etc/waypost/waypost.env"
    assert int(service["TimeoutStopSec"]) >= 20
    process = "web" if "web" in unit.name else "command"
    assert service["Environment"] == f"WAYPOST_PROCESS={process}"
    command = " ".join(words[:4]) if words[0] == "celery" else " ".join(words)
    assert f"`{command}`" in (PROJECT / "docs" / "production.md").read_text(encoding="utf-8")


def test_units_procfile_and_containers_start_the_same() -> None:
    units = {path.name.removeprefix("waypost-").removesuffix(".service").rstrip("@") for path in UNITS}
    procfile = re.findall(r"^(\w+):", (DEPLOY / "Procfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert units == set(procfile) == {"web", "worker", "celery"}
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"database", "broker", "migrate", "web", "worker"}
    for name in ("web", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert services[name]["environment"]["WAYPOST_PROCESS"] == ("web" if name == "web" else "command")


def test_the_image_copies_what_the_application_needs() -> None:
    copied = set(re.findall(r"^COPY (\w+) \w+$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE))
    assert copied == {"checks", "config", "workflows", "static", "templates"}


def test_alerts_and_their_page_name_metrics_that_there_are() -> None:
    names = {f"{metric.name}_total" if metric.is_counter else metric.name for metric in METRICS}
    alerts = (DEPLOY / "alerts.yml").read_text(encoding="utf-8")
    page = (PROJECT / "docs" / "observability.md").read_text(encoding="utf-8")
    assert yaml.safe_load(alerts)["groups"][0]["rules"]
    assert yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    assert set(re.findall(r"\bwaypost_\w+", f"{alerts}{page}")) - names == set()
