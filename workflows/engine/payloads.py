"""A cache of decoded payloads, so that a driver reads a value once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from workflows.jsonvalue import decode
from workflows.models import Payload

#: Bytes of payload text whose decoded values are kept.
CACHE_BYTES = 64 * 1024 * 1024
READ_AT_ONCE = 500


class Payloads:
    """A bounded cache of decoded payloads, the least recently used go first."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self._bytes = 0

    def get(self, digest: str) -> Any:
        known = self._values.get(digest)
        if known is None:
            row = Payload.objects.filter(digest=digest).values_list("text", "size").first()
            if row is None:
                raise LookupError(f"payload {digest} is missing")
            known = (row[1], decode(row[0]))
            self.put(digest, *known)
        else:
            self._values.move_to_end(digest)
        return known[1]

    def get_many(self, digests: Iterable[str]) -> None:
        """Read those that are not known in a few queries, so that a join after a takeover is not one per item."""
        missing = sorted({digest for digest in digests if digest not in self._values})
        for start in range(0, len(missing), READ_AT_ONCE):
            rows = Payload.objects.filter(digest__in=missing[start : start + READ_AT_ONCE])
            for digest, text, size in rows.values_list("digest", "text", "size"):
                self.put(digest, size, decode(text))

    def put(self, digest: str, size: int, value: Any) -> None:
        if digest in self._values:
            return
        self._values[digest] = (size, value)
        self._bytes += size
        while self._bytes > CACHE_BYTES and len(self._values) > 1:
            self._bytes -= self._values.popitem(last=False)[1][0]
