"""The programs in ``examples/`` do the work of a run, over HTTP, as processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.api.programs import key_of, person
from tests.external.programs import offered, open_offer
from tests.processes import PROJECT
from tests.support.players import output_of

pytestmark = pytest.mark.django_db(transaction=True)


def run(*words: str, url: str) -> subprocess.CompletedProcess[str]:
    key = key_of(person(name="rob", groups=("operator",)), "external")
    environment = {**os.environ, "WAYPOST_URL": url, "WAYPOST_KEY": key}
    return subprocess.run(words, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60, check=True)


def test_the_program_in_python_does_one_piece_of_work(live_server: Any) -> None:
    """EXT.5"""
    player = offered()
    key = open_offer(player).run_id
    done = run(sys.executable, "examples/external_worker.py", "labelling", "--once", url=live_server.url)
    assert json.loads(done.stdout)["run"] == key
    player.again()
    outcome, output, _ = output_of(player.run_id)
    assert (outcome, output["labels"], len(output["key"])) == ("ok", 2, 32)


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="it needs curl and jq")
def test_the_program_with_curl_does_one_piece_of_work(live_server: Any) -> None:
    """EXT.5"""
    player = offered()
    done = run("sh", "examples/external_worker.sh", "labelling", url=live_server.url)
    assert json.loads(done.stdout)["new"] is True
    player.again()
    assert output_of(player.run_id)[:2] == ["ok", {"labels": 2}]


@pytest.mark.parametrize("program", ["curl", "python"])
def test_a_program_takes_no_refusal_for_work(program: str, live_server: Any) -> None:
    if program == "curl" and not (shutil.which("jq") and shutil.which("curl")):
        pytest.skip("it needs curl and jq")
    environment = {**os.environ, "WAYPOST_URL": live_server.url, "WAYPOST_KEY": "wp_unknown"}
    start = {"curl": ["sh", "examples/external_worker.sh"], "python": [sys.executable, "examples/external_worker.py"]}
    words = [*start[program], "labelling"]
    done = subprocess.run(words, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "request.unauthenticated" in done.stderr


def test_the_program_in_python_is_short() -> None:
    text = (PROJECT / "examples" / "external_worker.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith('"""')]
    assert len(lines) <= 48
