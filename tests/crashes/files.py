"""The attacks on one case: on each of its files, that is the workflow with one variant of promises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.crashes.attacks import Attack, Kit, Outcome, Reference
from tests.crashes.choosing import Choice, Place, belongs_to_the_start, worth_a_second_death
from tests.crashes.scenarios import Scenario


def attack_case(kit: Kit, scenarios: Sequence[Scenario], choice: Choice, twice: int, outcome: Outcome) -> None:
    """Kill a driver at the chosen points of the scenarios of one case, and a second one after ``twice`` first deaths
    of each file."""
    kit = kit.for_scenarios(scenarios)
    references = kit.references(scenarios, outcome)
    outcome.undisturbed += len(references)
    first: list[Attack] = []
    known: set[tuple[str, ...]] = set()
    for number, points in enumerate(_points_by_file(references).values()):
        outcome.points += len(points)
        first += [_attack(references, place) for place in choice.of(_once(points), known, start=number)]
    kit.attack(first, outcome)
    _attack_twice(kit, references, choice, twice, outcome)


def _points_by_file(references: Sequence[Reference]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = defaultdict(list)
    for number, reference in enumerate(references):
        found[reference.scenario.file] += [(number, point) for point in reference.points]
    return found


def _once(points: Sequence[Place]) -> Iterable[Place]:
    """What lies before anything that depends on the scenario is tried once per file."""
    return (place for place in points if place[0] == points[0][0] or not belongs_to_the_start(place[1]))


def _attack(references: Sequence[Reference], place: Place) -> Attack:
    return Attack(reference=references[place[0]], deaths=(place[1],))


def _attack_twice(kit: Kit, references: Sequence[Reference], choice: Choice, twice: int, outcome: Outcome) -> None:
    chosen = {reference.scenario.file: reference for reference in reversed(references)}.values()
    first = [
        Attack(reference=reference, deaths=(point,))
        for reference in chosen
        for point in worth_a_second_death(reference.points, twice)
    ]
    again = kit.attack(first, Outcome())
    second: list[Attack] = []
    known: set[tuple[str, ...]] = set()
    for number, (attack, points) in enumerate(zip(first, again, strict=True)):
        outcome.points += len(points)
        places = choice.of([(number, point) for point in points], known, start=number)
        second += [Attack(reference=attack.reference, deaths=(*attack.deaths, point)) for _, point in places]
    kit.attack(second, outcome)
