"""The routes of one list of steps as a graph: what can run, what has certainly run before, which loops have no end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from workflows.definitions.kinds import EXHAUSTED
from workflows.definitions.validation.tree import StepList


@dataclass(slots=True, kw_only=True, eq=False)
class Flow:
    """``edges[i]`` holds (outcome, position) of every route from step i to a step of the list.

    ``guesses`` are routes that were misspelled and what they were probably meant to be; they count only for what may
    run, never for loops. ``uncertain``: some route is missing or leads nowhere, so nothing is said about order.
    """

    steps: StepList
    edges: list[list[tuple[str, int]]]
    guesses: list[set[int]]
    uncertain: bool = False
    _reached: dict[int, frozenset[int]] = field(default_factory=dict)
    _around: dict[int, frozenset[int]] = field(default_factory=dict)

    def next_of(self, position: int) -> set[int]:
        """Positions that may follow ``position``."""
        return {target for _, target in self.edges[position]} | self.guesses[position]

    def reachable(self) -> frozenset[int]:
        """Positions that can run at all."""
        return self._walk([0]) if self.edges else frozenset()

    def may_precede(self, earlier: int, later: int) -> bool:
        """Whether a visit of ``later`` can come after one of ``earlier``."""
        if earlier not in self._reached:
            self._reached[earlier] = self._walk(self.next_of(earlier))
        return later in self._reached[earlier]

    def always_precedes(self, earlier: int, later: int) -> bool:
        """Whether every way to ``later`` leads through ``earlier``."""
        if earlier == 0:
            return True
        if earlier not in self._around:
            self._around[earlier] = self._walk([0], without=earlier)
        return later not in self._around[earlier]

    def _walk(self, starts: Iterable[int], without: int = -1) -> frozenset[int]:
        seen = {start for start in starts if start != without}
        waiting = list(seen)
        while waiting:
            for target in self.next_of(waiting.pop()):
                if target not in seen and target != without:
                    seen.add(target)
                    waiting.append(target)
        return frozenset(seen)


def unreachable(flow: Flow) -> list[int]:
    """Positions of steps that no route leads to, each standing for those that only it leads to."""
    missing = sorted(set(range(len(flow.edges))) - flow.reachable())
    has_route = {target for position in missing for target in flow.next_of(position) if target != position}
    found: list[int] = []
    explained: set[int] = set()
    for position in [*(each for each in missing if each not in has_route), *missing]:
        if position not in explained:
            found.append(position)
            explained |= flow._walk([position])
    return sorted(found)


def endless_loops(flow: Flow) -> list[list[int]]:
    """Cycles of positions that no ``max_visits`` ends, each beginning where its upward route leads to.

    A bounded step can be left for good only by ``exhausted``, so only that route of it counts. Each upward route
    gives at most one cycle, the shortest.
    """
    onward = [
        {target for outcome, target in edges if step.raw.get("max_visits") is None or outcome == EXHAUSTED}
        for step, edges in zip(flow.steps.steps, flow.edges, strict=True)
    ]
    cycles: list[list[int]] = []
    seen: set[frozenset[int]] = set()
    for position, targets in enumerate(onward):
        for target in sorted(targets):
            if target <= position:
                way = _shortest(onward, target, position)
                if way is not None and frozenset(way) not in seen:
                    seen.add(frozenset(way))
                    cycles.append(way)
    return cycles


def _shortest(onward: list[set[int]], start: int, goal: int) -> list[int] | None:
    came_from: dict[int, int] = {start: start}
    waiting = deque([start])
    while waiting:
        position = waiting.popleft()
        if position == goal:
            way = [position]
            while way[-1] != start:
                way.append(came_from[way[-1]])
            return way[::-1]
        for target in sorted(onward[position]):
            if target not in came_from:
                came_from[target] = position
                waiting.append(target)
    return None
