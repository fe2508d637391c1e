from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.steps.support import Bench, bench_in


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path) as made:
        yield made
