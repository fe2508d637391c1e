"""The paths of ``get``: ``a.b[0].c`` and ``a["odd key"]``."""

from __future__ import annotations

import re

_PATH = re.compile(r"""\.?([^.\[\]"']+)|\[([0-9]+)\]|\["([^"]*)"\]|\['([^']*)'\]""")


def path_steps(path: str) -> tuple[str | int, ...]:
    """The fields and positions of a path such as ``a.b[0].c``. Raises ``ValueError`` for other text."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _PATH.match(path, at)
        if found is None or (at == 0 and path.startswith(".")):
            raise ValueError(f'get: "{path}" is not a path such as "a.b[0].c"')
        field, index, *quoted = found.groups()
        if field is not None and at > 0 and not found.group().startswith("."):
            raise ValueError(f'get: "{path}" is not a path such as "a.b[0].c"')
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(next(text for text in (field, *quoted) if text is not None))
        at = found.end()
    return tuple(steps)
