"""The tables of the admin are registered with the addresses, which no test here need have asked for yet."""

from __future__ import annotations

import pytest
from django.contrib import admin


@pytest.fixture(scope="package", autouse=True)
def registered_tables() -> None:
    admin.autodiscover()
