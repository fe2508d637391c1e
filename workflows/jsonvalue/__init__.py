"""JSON values: canonical text, what can be stored, repair of what cannot, and the strict reader of the doors.

Pure. Output of steps goes through :func:`repair` and :func:`store`; parameters, answers and API bodies go through
:func:`read_json` and :func:`check_storable`, which refuse instead of repairing.
"""

from __future__ import annotations

from workflows.jsonvalue.canonical import NotStorable, Stored, canonical, decode, digest, store, text_of
from workflows.jsonvalue.doors import check_storable
from workflows.jsonvalue.faults import MAX_LEVELS, MAX_SAFE_INTEGER
from workflows.jsonvalue.paths import item_path, member_path
from workflows.jsonvalue.reader import number_from, read_json
from workflows.jsonvalue.repairs import clean_text, repair

__all__ = [
    "MAX_LEVELS",
    "MAX_SAFE_INTEGER",
    "NotStorable",
    "Stored",
    "canonical",
    "check_storable",
    "clean_text",
    "decode",
    "digest",
    "item_path",
    "member_path",
    "number_from",
    "read_json",
    "repair",
    "store",
    "text_of",
]
