"""The lines of a graph: arrows that point down as curves through their places, ways back as lanes beside the boxes.

Pure. A line is the text of an SVG path and the point where its label stands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from workflows.queries.graph_layers import MAIN, Arrow, Layers, Place

_PORT = 22
_CORNER = 8
_LANE = 14
#: Free space between the boxes and the first lane.
_BESIDE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``path`` is relative to the picture of the boxes; ``anchor`` is that of the label: middle or start."""

    path: str
    label_x: int
    label_y: int
    anchor: str
    right: int


def lines(found: Layers, arrows: Sequence[Arrow]) -> list[Line]:
    """One line for each of the ``arrows``, in their order."""
    leaving, entering = _ports(found, arrows)
    drawn = {
        position: _down(found, arrows[position], chain, leaving[position], entering[position])
        for position, chain in found.chains.items()
    }
    drawn |= _lanes(found, arrows)
    return [drawn[position] for position in range(len(arrows))]


def _ports(found: Layers, arrows: Sequence[Arrow]) -> tuple[dict[int, int], dict[int, int]]:
    """Where each arrow leaves its source and enters its target: spread out, in the order of the other ends."""
    outgoing, incoming = defaultdict(list), defaultdict(list)
    for position, chain in found.chains.items():
        source, target = found.boxes[arrows[position].source], found.boxes[arrows[position].target]
        outgoing[arrows[position].source].append(((chain[0] if chain else target).x, position))
        incoming[arrows[position].target].append(((chain[-1] if chain else source).x, position))
    sides: list[dict[int, int]] = []
    for ends in (outgoing, incoming):
        side: dict[int, int] = {}
        for key, members in ends.items():
            side |= _spread_out(found.boxes[key], sorted(members), arrows)
        sides.append(side)
    return sides[0], sides[1]


def _spread_out(box: Place, members: list[tuple[float, int]], arrows: Sequence[Arrow]) -> dict[int, int]:
    """The main way is in the middle of the side, so that it can be a straight line."""
    main = [index for index, (_, position) in enumerate(members) if arrows[position].weight >= MAIN]
    straight = [index for index in main if members[index][0] == box.x]
    middle = float(straight[0] if straight else main[0]) if main else (len(members) - 1) / 2
    most = max(middle, len(members) - 1 - middle)
    step = min(_PORT, (box.width / 2 - 12) / most) if most else 0
    return {position: round(box.x + (index - middle) * step) for index, (_, position) in enumerate(members)}


def _down(found: Layers, arrow: Arrow, chain: list[Place], start: int, end: int) -> Line:
    source, target = found.boxes[arrow.source], found.boxes[arrow.target]
    x, y = start, source.y + source.height
    parts = [f"M{x} {y}"]
    bottom = found.tops[source.layer] + found.heights[source.layer]
    if bottom > y:
        parts.append(f"V{bottom}")
    y = bottom
    for passing in chain:
        top, below = found.tops[passing.layer], found.tops[passing.layer] + found.heights[passing.layer]
        parts.append(_curve(x, y, round(passing.x), top))
        x, y = round(passing.x), below
        if below > top:
            parts.append(f"V{below}")
    parts.append(_curve(x, y, end, target.y))
    first = chain[0] if chain else target
    return Line(
        path="".join(parts),
        label_x=round(first.x),
        label_y=found.tops[first.layer] + found.heights[first.layer] // 2 + 4,
        anchor="middle",
        right=max(start, end, *(round(passing.x + passing.width / 2) for passing in chain)),
    )


def _curve(x: int, y: int, to_x: int, to_y: int) -> str:
    if x == to_x:
        return f"V{to_y}"
    middle = round((y + to_y) / 2)
    return f"C{x} {middle} {to_x} {middle} {to_x} {to_y}"


# ---- lanes -----------------------------------------------------------------------------------------------------------


def _lanes(found: Layers, arrows: Sequence[Arrow]) -> dict[int, Line]:
    """Short ways are nearest to the boxes; a lane is as far out as what it passes and the lanes it would touch need."""
    taken: list[tuple[int, int, int, int]] = []  # top, bottom, left, right
    drawn = {}
    ends: dict[tuple[str, str], int] = defaultdict(int)
    ordered = sorted(found.beside, key=lambda position: (_span(found, arrows[position]), position))
    for position in ordered:
        arrow = arrows[position]
        source, target = found.boxes[arrow.source], found.boxes[arrow.target]
        leave = _Side(found, source, leaves=True, number=_next(ends, (arrow.source, "leave")))
        enter = _Side(found, target, leaves=False, number=_next(ends, (arrow.target, "enter")))
        top, bottom = min(leave.y, enter.y), max(leave.y, enter.y)
        first, last = sorted((source.layer, target.layer))
        reach = max(place.right for layer in found.layers[first : last + 1] for place in layer)
        x = _free(round(reach) + _BESIDE, top, bottom, arrow.label_width, taken)
        taken.append((top, bottom, x, x + arrow.label_width))
        drawn[position] = Line(
            path=_around(leave, enter, x),
            label_x=x + 6,
            label_y=leave.y + (-_CORNER - 4 if leave.y > enter.y else _CORNER + 12),
            anchor="start",
            right=x + 8 + arrow.label_width,
        )
    return drawn


def _next(counts: dict[tuple[str, str], int], key: tuple[str, str]) -> int:
    counts[key] += 1
    return counts[key] - 1


def _span(found: Layers, arrow: Arrow) -> int:
    return abs(found.boxes[arrow.source].layer - found.boxes[arrow.target].layer)


def _free(x: int, top: int, bottom: int, width: int, taken: list[tuple[int, int, int, int]]) -> int:
    moved = True
    while moved:
        moved = False
        for other_top, other_bottom, left, right in taken:
            touches = top <= other_bottom + 6 and bottom >= other_top - 6
            if touches and x < right + _LANE and x + width > left - _LANE:
                x, moved = right + _LANE, True
    return x


class _Side:
    """Where a lane meets a box: at its right side, or, when others stand there, below or above it.

    ``x``, ``y`` is the point from which the lane runs across; ``port`` is on the box itself.
    """

    def __init__(self, found: Layers, box: Place, *, leaves: bool, number: int) -> None:
        layer = found.layers[box.layer]
        shift = 7 * (number % 4)
        self.is_direct = max(place.right for place in layer) <= box.right
        if self.is_direct:
            head = min(box.height, 46)
            self.port = (round(box.right), box.y + (box.height - 12 - shift if leaves else head // 3 + shift))
            self.y = self.port[1]
        else:
            x = round(box.right) - 18 - shift
            self.port = (x, box.y + (box.height if leaves else 0))
            bottom = found.tops[box.layer] + found.heights[box.layer]
            self.y = (bottom + 7 + shift // 2) if leaves else box.y - 7 - shift // 2


def _around(leave: _Side, enter: _Side, x: int) -> str:
    """From the source to the lane, along it, and to the target; corners are round."""
    points = [leave.port]
    if not leave.is_direct:
        points.append((leave.port[0], leave.y))
    points += [(x, leave.y), (x, enter.y)]
    if not enter.is_direct:
        points.append((enter.port[0], enter.y))
    points.append(enter.port)
    return rounded(points)


def rounded(points: Sequence[tuple[int, int]]) -> str:
    """A path along straight lines with round corners."""
    parts = [f"M{points[0][0]} {points[0][1]}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        radius = min(_CORNER, _length(before, corner) // 2, _length(corner, after) // 2)
        start, end = _towards(corner, before, radius), _towards(corner, after, radius)
        parts.append(f"L{start[0]} {start[1]}Q{corner[0]} {corner[1]} {end[0]} {end[1]}")
    parts.append(f"L{points[-1][0]} {points[-1][1]}")
    return "".join(parts)


def _length(one: tuple[int, int], other: tuple[int, int]) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _towards(point: tuple[int, int], other: tuple[int, int], distance: int) -> tuple[int, int]:
    """``distance`` from ``point`` on the straight line to ``other``, which is level with it or above or below it."""
    dx, dy = other[0] - point[0], other[1] - point[1]
    return (
        point[0] + (distance if dx > 0 else -distance if dx < 0 else 0),
        point[1] + (distance if dy > 0 else -distance if dy < 0 else 0),
    )


def moved(path: str, dx: int, dy: int) -> str:
    """An absolute SVG path of M, L, C, Q and V, somewhere else."""
    parts = []
    for command, numbers in re.findall(r"([MLCQV])([-\d ]*)", path):
        values = [int(number) for number in numbers.split()]
        steps = [dy] if command == "V" else [dx, dy] * (len(values) // 2)
        parts.append(command + " ".join(str(value + by) for value, by in zip(values, steps, strict=True)))
    return "".join(parts)
