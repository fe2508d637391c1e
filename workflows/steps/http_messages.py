"""What an http step hands to the client and gets back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

#: These only read, so they carry no idempotency key and may follow redirects.
SAFE_METHODS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """``travels``: a redirect to another origin takes it along, since it identifies nobody."""

    name: str
    value: bytes
    travels: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``expected``: statuses that are outcomes, so that neither a redirect nor a failure is made of them.

    ``body_limit``: bytes of the response's body that are kept; 0: it is not read at all. ``permits`` is asked about
    the network address of the other side before anything is sent to it.
    """

    method: str
    address: str
    headers: tuple[Header, ...]
    content: bytes | None
    expected: frozenset[int]
    body_limit: int
    permits: Callable[[str], bool] | None = None

    @property
    def is_safe(self) -> bool:
        """Whether it only reads: it is made again where a redirect points to."""
        return self.method in SAFE_METHODS

    def fails_with(self, status: int) -> bool:
        return status >= HTTPStatus.BAD_REQUEST and status not in self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``body`` is what was kept; ``whole`` says whether that is all of it. ``fault``: why it cannot be used."""

    status: int
    address: str
    headers: Mapping[str, str]
    body: bytes = b""
    whole: bool = True
    fault: str = ""


class NoAnswer(Exception):
    """``code`` is a failure code; ``stopped`` the reason (``timeout``, ``cancelled``, …) when it was interrupted."""

    def __init__(self, code: str, message: str, *, stopped: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.stopped = stopped
