"""Plain tables of text: columns as wide as their widest cell, the last one as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """
    >>> list(table(["a", "b"], [[1, "x"], [100, "y"]]))
    ['a    b', '1    x', '100  y']
    """
    cells = [[str(cell) if cell is not None else "" for cell in row] for row in [headings, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield "  ".join([*padded, row[-1]]).rstrip()
