"""Importing: an exported run that is over becomes a run of this installation, with numbers of its own."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.utils import timezone

from workflows.errors import Refusal
from workflows.ledger.importing import Imported, NotAnExport, import_runs
from workflows.ledger.records import compact
from workflows.operations.access import require
from workflows.operations.exporting import FORMAT, SCHEMA
from workflows.operations.people import Actor

__all__ = ["Imported", "import_document"]


def import_document(document: Any, *, actor: Actor) -> Imported:
    """Store the runs of an exported document; the same document again finds them.

    Only runs that are over can be imported, and only whole documents: every value is what its digest says, and the
    rows of each run tell one story. Versions of workflows become private ones. Raises ``import.invalid``,
    ``access.denied``.
    """
    require(actor, "add_run", action="run.import")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Refusal("import.invalid", reason="it is not the export of a run")
    if document.get("schema") != SCHEMA:
        raise Refusal(
            "import.invalid", reason=f"its schema is {document.get('schema')!r}, and this code knows {SCHEMA}"
        )
    told = {name: value for name, value in document.items() if name not in ("exported_at", "exported_by")}
    key = f"import:{sha256(compact(told).encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
    try:
        return import_runs(document=document, key=key, actor=actor.recorded, now=timezone.now())
    except NotAnExport as error:
        raise Refusal("import.invalid", reason=str(error)) from None
