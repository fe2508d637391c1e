"""Attacks: a run whose drivers are killed at chosen points, compared with the run that nobody disturbed."""

from __future__ import annotations

import json
import signal
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crashes.effects import EffectLog, read_log
from tests.crashes.forks import Ended, live_all, live_here
from tests.crashes.life import Order
from tests.crashes.moments import Point
from tests.crashes.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A run that nobody disturbed: its end, those of its child runs and of the runs beside it, its points and effects."""

    scenario: Scenario
    end: Mapping[str, Any]
    others: Mapping[str, Mapping[str, Any]]
    points: tuple[Point, ...]
    effects: EffectLog
    lingers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A run of a scenario whose first drivers are killed at ``deaths``, one after the other."""

    reference: Reference
    deaths: tuple[Point, ...]

    def __str__(self) -> str:
        return f"{self.reference.scenario.name} [{', then '.join(map(str, self.deaths))}]"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How many kills there were, how many in each window, and what differed."""

    undisturbed: int = 0
    points: int = 0
    kills: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.undisturbed += other.undisturbed
        self.points += other.points
        self.kills += other.kills
        self.tried += other.tried
        self.differences += other.differences

    def told(self) -> str:
        left_out = f", {self.points - self.kills} of their points left out" if self.points > self.kills else ""
        return f"{self.kills} kills in {self.undisturbed} runs{left_out}"


class Kit:
    """``directory`` is for logs and reports; ``jobs`` is how many drivers live at a time."""

    def __init__(self, directory: Path, *, jobs: int = 2) -> None:
        self._directory = directory
        self._jobs = jobs

    def for_scenarios(self, scenarios: Sequence[Scenario]) -> Kit:
        """One driver at a time where drivers meddle with each other's runs, since they look after shared places."""
        return Kit(self._directory, jobs=1 if any(one.shares_places for one in scenarios) else self._jobs)

    # ---- undisturbed runs -------------------------------------------------------------------------------------------

    def references(self, scenarios: Sequence[Scenario], outcome: Outcome) -> list[Reference]:
        """Run every scenario twice and watch the second run; one whose runs differ cannot be compared.

        A scenario that waits is run once more with a driver that parks the run meanwhile.
        """
        rounds = [[self._order(scenario) for scenario in scenarios] for _ in range(2)]
        # the first run of a file also stores its plan, so its points are not those of the others
        endings = [live_here(rounds[0]), self._live(rounds[1])]
        found: list[Reference] = []
        for index, scenario in enumerate(scenarios):
            first, second = (self._undisturbed(rounds[i][index], endings[i][index], outcome) for i in (0, 1))
            if first is None or second is None:
                continue
            outcome.differences += _unexpected(second)
            if changes := [*unequal_runs(first, second)]:
                outcome.differences.append(f"{scenario.name}: two undisturbed runs differ: {'; '.join(changes)}")
            else:
                found.append(second)
        return [*found, *self._parking(found, outcome)]

    def _parking(self, references: Sequence[Reference], outcome: Outcome) -> Iterator[Reference]:
        waiting = [one for one in references if any("park" in point.subject for point in one.points)]
        orders = [self._order(one.scenario, lingers=False) for one in waiting]
        for order, ended, like in zip(orders, self._live(orders), waiting, strict=True):
            reference = self._undisturbed(order, ended, outcome)
            if reference is not None and (changes := [*unequal_runs(reference, like)]):
                outcome.differences.append(f"{order.scenario.name}: parking changes the end: {'; '.join(changes)}")
            elif reference is not None:
                yield reference

    @staticmethod
    def _undisturbed(order: Order, ended: Ended, outcome: Outcome) -> Reference | None:
        if ended.report is None:
            outcome.differences.append(f"{order.scenario.name}: the undisturbed run did not end: {ended}")
            return None
        outcome.differences += [f"{order.scenario.name}: undisturbed: {text}" for text in ended.report["problems"]]
        return Reference(
            scenario=order.scenario,
            end=ended.report["end"],
            others=ended.report["others"],
            points=tuple(Point(**point) for point in ended.report["points"]),
            effects=read_log(order.log),
            lingers=order.lingers,
        )

    # ---- attacks ----------------------------------------------------------------------------------------------------

    def attack(self, attacks: Sequence[Attack], outcome: Outcome, *, tries: int = 4) -> list[Sequence[Point]]:
        """Carry out attacks and note what differed; for each the points that its last driver came by.

        All first drivers live and die before the second ones begin, so hardly a lease has to be waited for. A driver
        that never came to its point (on a busy machine a short wait may be over before it begins, and a chain of
        pure steps may be cut elsewhere) is tried again.
        """
        keys = [uuid.uuid4().hex for _ in attacks]
        lives: list[list[Ended]] = [[] for _ in attacks]
        for generation in range(max((len(attack.deaths) for attack in attacks), default=0) + 1):
            chosen = [index for index, attack in enumerate(attacks) if generation <= len(attack.deaths)]
            orders = [self._next(attacks[index], keys[index], generation) for index in chosen]
            for index, ended in zip(chosen, self._live(orders), strict=True):
                lives[index].append(ended)
        missed = [index for index, attack in enumerate(attacks) if tries > 1 and _is_missed(attack, lives[index])]
        for index, (attack, key, endings) in enumerate(zip(attacks, keys, lives, strict=True)):
            if index not in missed:
                outcome.tried.update(attack.deaths[-1].windows)
                outcome.kills += 1
                log = read_log(self._log(key))
                outcome.differences += [f"{attack}: {text}" for text in differences(attack, endings, log)]
        points = [_points(endings[-1]) for endings in lives]
        if missed:
            again = self.attack([attacks[index] for index in missed], outcome, tries=tries - 1)
            for index, seen in zip(missed, again, strict=True):
                points[index] = seen
        return points

    def _next(self, attack: Attack, key: str, generation: int) -> Order:
        return Order(
            scenario=attack.reference.scenario,
            key=key,
            log=self._log(key),
            dies_at=attack.deaths[generation] if generation < len(attack.deaths) else None,
            is_first=generation == 0,
            lingers=attack.reference.lingers,
        )

    def _order(self, scenario: Scenario, *, lingers: bool = True) -> Order:
        key = uuid.uuid4().hex
        return Order(scenario=scenario, key=key, log=self._log(key), lingers=lingers)

    def _log(self, key: str) -> Path:
        return self._directory / f"{key}.log"

    def _live(self, orders: Sequence[Order]) -> list[Ended]:
        return live_all(orders, self._directory, self._jobs)


def _is_missed(attack: Attack, endings: Sequence[Ended]) -> bool:
    """Whether a driver that should have been killed brought the run to its end, because it never came to that point."""
    return any(ended.report is not None for ended in endings[: len(attack.deaths)])


def _points(ended: Ended) -> list[Point]:
    return [Point(**point) for point in ended.report["points"]] if ended.report else []


def _unexpected(reference: Reference) -> Iterator[str]:
    """Where the undisturbed run is not what its case says; the rest of the expectations is checked elsewhere."""
    expected = reference.scenario.expected.get("status")
    if expected is not None and reference.end["status"] != expected:
        yield f"{reference.scenario.name}: undisturbed: status {reference.end['status']} instead of {expected}"
    if "output" in reference.scenario.expected:
        found, wanted = json.loads(reference.end["output"] or "null"), reference.scenario.expected["output"]
        if found != json.loads(json.dumps(wanted, default=str)):
            yield f"{reference.scenario.name}: undisturbed: output {found} instead of {wanted}"


# ---- comparing -------------------------------------------------------------------------------------------------------


def differences(attack: Attack, endings: Sequence[Ended], log: EffectLog) -> Iterator[str]:
    """Everything in which an attacked run differs from what is promised."""
    for death, ended in zip(attack.deaths, endings, strict=False):
        if ended.killed != signal.SIGKILL:
            yield f"the driver was not killed at {death}: {ended.complaint.strip() or ended.killed}"
            return
    last = endings[-1].report
    if last is None:
        yield f"the run was not brought to its end: {endings[-1].complaint.strip() or endings[-1].killed}"
        return
    found = last["found"]
    yield from (f"after the kill: {text}" for text in found["problems"])
    yield from (f"at its end: {text}" for text in last["problems"])
    if last["left"]:
        yield f"processes {last['left']} outlived their driver"
    if last["runs"] != 1:
        yield f"there are {last['runs']} runs of one key"
    yield from unequal(last["end"], attack.reference.end)
    yield from unequal_others(last["others"], attack.reference.others)
    yield from miscounted(attack.reference, found, log)
    if len(attack.deaths) == 1:
        yield from misplaced(attack.deaths[0], found)
        yield from misjudged(found, last["decisions"])


def unequal(end: Mapping[str, Any], reference: Mapping[str, Any]) -> Iterator[str]:
    for name, value in reference.items():
        if end[name] != value:
            yield f"{name} is {end[name]!r} instead of {value!r}"


def unequal_others(found: Mapping[str, Any], reference: Mapping[str, Any]) -> Iterator[str]:
    """Child runs and runs beside, by label."""
    if set(found) != set(reference):
        yield f"there are the other runs {sorted(found)} instead of {sorted(reference)}"
    for label in sorted(set(found) & set(reference)):
        yield from (f"{label} {text}" for text in unequal(found[label], reference[label]))


def unequal_runs(found: Reference, reference: Reference) -> Iterator[str]:
    yield from unequal(found.end, reference.end)
    yield from unequal_others(found.others, reference.others)


def miscounted(reference: Reference, found: Mapping[str, Any], log: EffectLog) -> Iterator[str]:
    """Effects that began more or less often than promised (the counts of promise KILL).

    A settled effect never begins again; an open one begins as often as its access and its log allow; the others begin
    as often as in the undisturbed run.
    """
    for key in sorted({*reference.effects.began, *log.began}):
        began = found["began"].get(key, 0)
        if key in found["open"]:
            promised = began + found["open"][key]["more"]
        else:
            promised = began or reference.effects.began.get(key, 0)
        if log.began.get(key, 0) != promised:
            yield f"the effect {key} began {log.began.get(key, 0)} times instead of {promised}"
        if len(set(log.dispatch_ids.get(key, ()))) > 1:
            yield f"the effect {key} was repeated under another dispatch id"
    for key, attempt in found["open"].items():
        if not attempt["repeats"] and len(log.done.get(key, ())) > 1:
            yield f"the effect {key} is a write and was done {len(log.done[key])} times"


#: What promise KILL says of an open attempt: how often its effect had begun when its driver was killed.
_BEGAN = {"admitted": 0, "began": 1, "done": 1}


def misplaced(death: Point, found: Mapping[str, Any]) -> Iterator[str]:
    """Whether the state found after a kill is the one of its window: all of a transaction or nothing of it."""
    phases = sorted(attempt["phase"] for attempt in found["open"].values())
    for key, attempt in found["open"].items():
        if found["began"].get(key, 0) != _BEGAN[attempt["phase"]]:
            yield f"the effect {key} had begun {found['began'].get(key, 0)} times"
    promised = _phase(death)
    if promised is not None and promised not in phases:
        yield f"{promised} was promised for this window, and {phases or 'nothing open'} was found"
    published = death.turn + (death.place == "committed")
    if death.subject == "publish" and found["published"] != published:
        yield f"{found['published']} runs were there instead of {published}"


def _phase(death: Point) -> str | None:
    """In which phase the attempt must be whose driver was killed there; None where the window does not say."""
    if death.subject.startswith("the effect "):
        return {"before": "admitted", "began": "began"}.get(death.place, "done")
    if death.place == "committed":
        return "admitted" if "admission" in death.subject else None
    return "done" if "settlement" in death.subject else None


def misjudged(found: Mapping[str, Any], decisions: Iterable[Sequence[str]]) -> Iterator[str]:
    """Exactly the open writes are parked for a person, and nothing else is."""
    promised = {
        key: "happened" if attempt["phase"] == "done" else "did_not"
        for key, attempt in found["open"].items()
        if not attempt["repeats"]
    }
    if dict(decisions) != promised or len(list(decisions)) != len(promised):
        yield f"parked and reconciled were {list(decisions)} instead of {promised}"
