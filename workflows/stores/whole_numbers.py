"""Whole numbers on their way to PostgreSQL keep their digits.

Where the server binds parameters, Django sends the value of an ``IntegerField``, and every bare ``Value(number)``, as a
32-bit one. psycopg then cuts larger numbers silently: a moment in milliseconds becomes another one. The dumper
registered here sends what does not fit as a 64-bit parameter.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.adapt import PyFormat
from psycopg.types.numeric import Int4, Int4BinaryDumper, Int8, Int8BinaryDumper

_LARGEST_INT4 = 2**31 - 1
_SMALLEST_INT4 = -(2**31)


def keep_all_digits(connection: BaseDatabaseWrapper) -> None:
    """Register the dumper on an open connection to PostgreSQL."""
    connection.connection.adapters.register_dumper(Int4, _WideningDumper)


class _WideningDumper(Int4BinaryDumper):
    """An int4 parameter, or an int8 one where int4 is too narrow."""

    def get_key(self, obj: Any, format: PyFormat) -> Any:
        return self.cls if _SMALLEST_INT4 <= obj <= _LARGEST_INT4 else (self.cls, Int8)

    def upgrade(self, obj: Any, format: PyFormat) -> Any:
        return self if _SMALLEST_INT4 <= obj <= _LARGEST_INT4 else Int8BinaryDumper(Int8)
