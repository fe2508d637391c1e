"""What a thread works on: the ids that its log records carry, and the secrets that none of them may (OBS 1–2).

The engine says it where the work begins; ``config.logging`` writes it. A thread that a task function starts knows
nothing of it, unless it is given a copy of the context (``contextvars.copy_context``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Mark = int | str
Mask = Callable[[str], str]

_NOTHING: Mapping[str, Mark] = MappingProxyType({})
_marks: ContextVar[Mapping[str, Mark]] = ContextVar("waypost_log_marks", default=_NOTHING)
_masks: ContextVar[tuple[Mask, ...]] = ContextVar("waypost_log_masks", default=())


def marks() -> Mapping[str, Mark]:
    """The ids of the present work, outermost first: ``request``, ``run``, ``visit``, ``attempt``."""
    return _marks.get()


def masked(text: str) -> str:
    """``text`` without the secrets that the present work has read."""
    for mask in _masks.get():
        text = mask(text)
    return text


@contextmanager
def marked(*, mask: Mask | None = None, **ids: Mark) -> Iterator[None]:
    """Records of this thread carry ``ids`` too while the block runs; ``mask`` takes secrets out of their texts."""
    before = _marks.set({**_marks.get(), **ids})
    masks = _masks.set((*_masks.get(), mask)) if mask is not None else None
    try:
        yield
    finally:
        if masks is not None:
            _masks.reset(masks)
        _marks.reset(before)
