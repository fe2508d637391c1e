"""ErrorCode: the code in the error of a run, for an index and for the filter that reads it."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, TextField
from django.db.models.sql.compiler import SQLCompiler

#: Errors are JSON with sorted keys, so they begin with the code: ``{"code":"timeout",…``. There is no parameter in the
#: text: SQLite finds an index only where the expression is the same to the letter.
_CODE = "SUBSTR(%(expressions)s, 10, {find}(SUBSTR(%(expressions)s, 10), {quote}) - 1)"


class ErrorCode(Func):
    """The code of the error in a column, "" for none."""

    arity = 1
    output_field = TextField()  # type: ignore[assignment]  # declared the way Django's own functions do

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template=_template("INSTR", "'\"'"), **extra)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template=_template("STRPOS", "'\"'"), **extra)


def _template(find: str, quote: str) -> str:
    return "CASE WHEN %(expressions)s = '' THEN '' ELSE " + _CODE.format(find=find, quote=quote) + " END"
