"""Where boxes and arrows of a graph go: a layered picture that reads from top to bottom.

Pure and deterministic: the same boxes and arrows give the same picture. Reading order is kept: an arrow to a box
further down in the list points down, any other is a way back and runs beside the boxes. Lengths are whole pixels.

1. A box lies one layer below the lowest box that leads to it. Between two layers of boxes is one for labels.
2. An arrow over several layers gets a place of its own in each of them, so that it passes no box.
3. The order inside of the layers is improved by sweeps that put a box at the mean of its neighbours.
4. The place across is the nearest to the neighbours that leaves the boxes apart; the main way weighs most, so that it
   becomes a straight line.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

#: Free space between neighbours of a layer, and the least between two layers.
APART = 26
GAP = 15
_MOST_GAP = 40
_SWEEPS = 8
_STRAIGHTENING = 12
#: Arrows over more layers than these run beside the boxes as ways back do: hundreds of places each would cost too much.
LONGEST = 14
LABEL_HEIGHT = 16
#: The weight of a main way.
MAIN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Something to place; ``width`` and ``height`` in pixels."""

    key: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A way between two boxes. ``label_width`` 0: no label. The main way of a box has more ``weight``."""

    source: str
    target: str
    label_width: int = 0
    weight: int = 1


@dataclass(slots=True, eq=False)
class Place:
    """A box, or the place where an arrow passes a layer. ``x`` is its centre, ``y`` its top."""

    layer: int
    width: int
    height: int
    box: str | None = None
    has_label: bool = False
    x: float = 0.0
    y: int = 0
    above: list[tuple[Place, int]] = field(default_factory=list)
    below: list[tuple[Place, int]] = field(default_factory=list)

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2


@dataclass(slots=True, kw_only=True)
class Layers:
    """The layers from top to bottom, the places of the boxes, the chains of the arrows that point down (by their
    position in the list), and the positions of those that run beside. ``tops`` and ``heights`` are of the layers."""

    layers: list[list[Place]]
    boxes: dict[str, Place]
    chains: dict[int, list[Place]]
    beside: list[int]
    tops: list[int] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)


def place(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> Layers:
    """Places for all ``boxes``, which are in reading order."""
    depth = _depths(boxes, arrows)
    layers: list[list[Place]] = [[] for _ in range(2 * max(depth.values(), default=0) + 1)]
    placed = {}
    for box in boxes:
        placed[box.key] = one = Place(2 * depth[box.key], box.width, box.height, box=box.key)
        layers[one.layer].append(one)
    found = Layers(layers=layers, boxes=placed, chains={}, beside=[])
    main_ways = []
    order = {box.key: position for position, box in enumerate(boxes)}
    for position, arrow in enumerate(arrows):
        if points_down(order, arrow) and depth[arrow.target] - depth[arrow.source] <= LONGEST:
            found.chains[position] = chain = _chain(found, arrow)
            if arrow.weight >= MAIN:
                main_ways.append([placed[arrow.source], *chain, placed[arrow.target]])
        else:
            found.beside.append(position)
    _order(layers)
    _spread(layers)
    _straighten(found, _joined(main_ways))
    _stack(found)
    return found


def points_down(order: Mapping[str, int], arrow: Arrow) -> bool:
    return order[arrow.target] > order[arrow.source]


def _depths(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[str, int]:
    """Boxes that only ways back lead to stand below the box before them."""
    order = {box.key: position for position, box in enumerate(boxes)}
    leading: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        if points_down(order, arrow):
            leading[arrow.target].append(arrow.source)
    depth: dict[str, int] = {}
    previous = -1
    for box in boxes:
        above = [depth[source] for source in leading[box.key]]
        previous = depth[box.key] = max(above, default=previous) + 1
    return depth


def _chain(found: Layers, arrow: Arrow) -> list[Place]:
    """The places of an arrow between its boxes; the label is in the first one."""
    source, target = found.boxes[arrow.source], found.boxes[arrow.target]
    chain, previous = [], source
    for layer in range(source.layer + 1, target.layer):
        label = arrow.label_width if layer == source.layer + 1 else 0
        passing = Place(layer, label, LABEL_HEIGHT if label else 0, has_label=bool(label))
        found.layers[layer].append(passing)
        _connect(previous, passing, arrow.weight if previous is source else 4 * arrow.weight)
        chain.append(passing)
        previous = passing
    _connect(previous, target, arrow.weight)
    return chain


def _connect(upper: Place, lower: Place, weight: int) -> None:
    upper.below.append((lower, weight))
    lower.above.append((upper, weight))


# ---- order -----------------------------------------------------------------------------------------------------------


def _order(layers: list[list[Place]]) -> None:
    """Fewer crossings: sort every layer by the mean place of its neighbours, and keep the best of all sweeps."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            _sort(layer, layers, "above" if downwards else "below")
        if (crossings := _crossings(layers)) < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, ordered in zip(layers, best, strict=True):
        layer[:] = ordered


def _sort(layer: list[Place], layers: list[list[Place]], side: str) -> None:
    if not layer:
        return
    beside = layer[0].layer + (-1 if side == "above" else 1)
    if not 0 <= beside < len(layers):
        return
    position = {id(place): index for index, place in enumerate(layers[beside])}
    own = {id(place): index for index, place in enumerate(layer)}

    def wanted(place: Place) -> float:
        neighbours = [position[id(one)] for one, _ in getattr(place, side)]
        return sum(neighbours) / len(neighbours) if neighbours else own[id(place)]

    layer.sort(key=lambda place: (wanted(place), own[id(place)]))


def _crossings(layers: list[list[Place]]) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        position = {id(place): index for index, place in enumerate(lower)}
        ends: list[int] = []
        for place in upper:
            targets = sorted(position[id(one)] for one, _ in place.below)
            count += sum(len(ends) - bisect_right(ends, target) for target in targets)
            for target in targets:
                insort(ends, target)
    return count


# ---- place across ----------------------------------------------------------------------------------------------------


def _spread(layers: list[list[Place]]) -> None:
    for layer in layers:
        _settle(layer, [float(index) for index in range(len(layer))], [1.0] * len(layer))
    for turn in range(_STRAIGHTENING):
        for layer in layers if turn % 2 == 0 else reversed(layers):
            wanted, weights = [], []
            for place in layer:
                around = [*place.above, *place.below]
                weight = sum(weight for _, weight in around)
                wanted.append(sum(one.x * part for one, part in around) / weight if weight else place.x)
                weights.append(float(weight) or 0.1)
            _settle(layer, wanted, weights)


def _settle(layer: list[Place], wanted: Sequence[float], weights: Sequence[float]) -> None:
    """The places nearest to the wanted ones (weighted squares) that keep order and distance: pools of violators."""
    offsets, reach = [], 0.0
    for index, place in enumerate(layer):
        if index:
            reach += (layer[index - 1].width + place.width) / 2 + APART
        offsets.append(reach)
    pools: list[tuple[float, float, int]] = []  # weight, mean, members
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        pool = (weight, want - offset, 1)
        while pools and pools[-1][1] >= pool[1]:
            before = pools.pop()
            total = before[0] + pool[0]
            pool = (total, (before[0] * before[1] + pool[0] * pool[1]) / total, before[2] + pool[2])
        pools.append(pool)
    means = [mean for _, mean, members in pools for _ in range(members)]
    for place, mean, offset in zip(layer, means, offsets, strict=True):
        place.x = mean + offset


def _joined(ways: list[list[Place]]) -> list[list[Place]]:
    """Main ways put together where one ends and the next begins; a place is on one way only."""
    following = {id(way[0]): way for way in reversed(ways)}
    reached = {id(way[-1]) for way in ways}
    used: set[int] = set()
    joined = []
    for way in [*(way for way in ways if id(way[0]) not in reached), *ways]:
        line: list[Place] = []
        on: list[Place] | None = way
        while on is not None and not used & {id(place) for place in on[len(line) and 1 :]}:
            fresh = on[1:] if line else on
            used |= {id(place) for place in fresh}
            line += fresh
            on = following.get(id(on[-1]))
        joined.append(line)
    return [line for line in joined if len(line) > 1]


def _straighten(found: Layers, main_ways: list[list[Place]]) -> None:
    """Put as many consecutive places of a way as have room for it above each other; main ways first."""
    index = {id(place): position for layer in found.layers for position, place in enumerate(layer)}
    longest_first = sorted(found.chains.items(), key=lambda item: (-len(item[1]), item[0]))
    for _ in range(2):
        for way in [*main_ways, *(chain for _, chain in longest_first)]:
            _align(way, found.layers, index)
    least = min((place.left for layer in found.layers for place in layer), default=0.0)
    for layer in found.layers:
        for place in layer:
            place.x = float(round(place.x - least))


def _align(way: list[Place], layers: list[list[Place]], index: Mapping[int, int]) -> None:
    run: list[Place] = []
    lowest, highest = float("-inf"), float("inf")

    def settle() -> None:
        mean = sum(place.x * place.width**0.5 for place in run) / (sum(place.width**0.5 for place in run) or 1)
        mean = mean or run[0].x
        for place in run:
            place.x = min(max(mean, lowest), highest)

    for place in way:
        layer, position = layers[place.layer], index[id(place)]
        low = layer[position - 1].right + APART + place.width / 2 if position else float("-inf")
        high = layer[position + 1].left - APART - place.width / 2 if position + 1 < len(layer) else float("inf")
        if run and max(lowest, low) > min(highest, high):
            settle()
            run, lowest, highest = [], float("-inf"), float("inf")
        run.append(place)
        lowest, highest = max(lowest, low), min(highest, high)
    if run:
        settle()


# ---- place down ------------------------------------------------------------------------------------------------------


def _stack(found: Layers) -> None:
    """Tops of the layers; where arrows go far across, the gap is higher."""
    top = 0
    for index, layer in enumerate(found.layers):
        height = max((place.height for place in layer), default=0)
        found.tops.append(top)
        found.heights.append(height)
        for place in layer:
            place.y = top
        far = max((abs(place.x - one.x) for place in layer for one, _ in place.below), default=0.0)
        top += height
        if index < len(found.layers) - 1:
            top += max(GAP, min(_MOST_GAP, round(far / 7)))
