"""What the steps of a run wait for, in sentences. Pure; a cause that is not known is told as it is (WEB.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workflows.definitions.durations import write_duration
from workflows.queries.why_facts import Because, LineFacts, Standing, Target, WaitFacts, counted, holders_words
from workflows.statuses import RunStatus, WaitsFor


def reasons_of_steps(standing: Standing) -> Iterator[Because]:
    """A reason for each scope that waits."""
    for wait in standing.waits:
        yield _TOLD.get(wait.cause, _unknown)(standing, wait)
    if standing.further_waits:
        yield Because(
            code="more", sentence=f"{counted(standing.further_waits, 'further step')} of it wait, too.", passes=True
        )


def _visit(standing: Standing, wait: WaitFacts, kind: str = "visit") -> Target | None:
    return None if wait.visit is None else Target(kind=kind, run=standing.run, visit=wait.visit)


def _timer(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="timer",
        sentence=f"{wait.step} waits for a moment to come.",
        since=wait.since,
        until=wait.until,
        target=_visit(standing, wait),
        passes=True,
    )


def _retry(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="retry",
        sentence=f"{wait.step} failed{f' ({wait.missing})' if wait.missing else ''} and waits for its next attempt.",
        since=wait.since,
        until=wait.until,
        advice="“Retry now” ends the waiting; the attempts that are left stay the same.",
        target=_visit(standing, wait),
        verb="retry",
        passes=True,
    )


def _signal(standing: Standing, wait: WaitFacts) -> Because:
    named = f'the signal "{wait.signal}"' if wait.signal else "a signal"
    command = f"python manage.py runs signal {standing.run} {wait.signal or 'NAME'}"
    return Because(
        code="signal",
        sentence=f"{wait.step} waits for {named}.",
        since=wait.since,
        until=wait.until,
        advice=f"Whoever knows of it sends the signal, here or with `{command}`.",
        target=_visit(standing, wait),
        verb="signal",
        passes=wait.until is not None,
    )


def _people(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="people",
        sentence=f"{wait.step} waits for an answer{f' of {wait.people}' if wait.people else ''}.",
        since=wait.since,
        until=wait.until,
        advice="It goes on with the answer." if wait.people else "Anybody may answer; it goes on with the answer.",
        target=_visit(standing, wait, "question"),
        passes=wait.until is not None,
    )


def _child(standing: Standing, wait: WaitFacts) -> Because:
    if wait.child is None:
        return Because(code="child", sentence=f"{wait.step} waits for a child run.", since=wait.since, passes=True)
    stands = f", which is {wait.child_status}{f': {wait.child_reason}' if wait.child_reason else ''}"
    return Because(
        code="child",
        sentence=f"{wait.step} waits for run {wait.child}{stands}.",
        since=wait.since,
        until=wait.until,
        target=Target(kind="run", run=wait.child),
        passes=wait.child_status not in (RunStatus.BLOCKED, RunStatus.PAUSED),
    )


def _slot(standing: Standing, wait: WaitFacts) -> Because:
    line = wait.line
    if line is None:
        return Because(code="limit", sentence=f"{wait.step} waits for a place of its limit.", passes=True)
    behind = f" behind {counted(line.ahead, 'other')}" if line.ahead else ""
    return Because(
        code="limit",
        sentence=f'{wait.step} waits for a place in "{line.name}"{behind}{holders_words(line)}.',
        since=line.since or wait.since,
        until=wait.until,
        advice=_bounds(line),
        target=Target(kind="run", run=line.holders[0]) if line.holders else None,
        passes=True,
    )


def _bounds(line: LineFacts) -> str:
    at_once = f"may run at once{'' if line.starts else ', over all runs'}" if line.max else ""
    rate = f"{line.starts} may start in any {write_duration(line.per_ms)}, over all runs" if line.starts else ""
    if not at_once:
        return f"At most {rate}." if rate else ""
    return f"At most {counted(line.max, 'attempt')} of this limit {at_once}{f', and {rate}' if rate else ''}."


def _reconcile(standing: Standing, wait: WaitFacts) -> Because:
    which = f"attempt {wait.attempt} of {wait.step}" if wait.attempt else wait.step
    return Because(
        code="reconcile",
        sentence=f"The worker of {which} died, and nobody knows whether its effect happened.",
        since=wait.since,
        advice="Look where the effect would show, then say what happened. It is not repeated by itself.",
        target=_visit(standing, wait, "reconcile"),
        verb="reconcile",
    )


def _code(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code="missing_code",
        sentence=f"{wait.step} needs {wait.missing or 'code'}, which the worker that drove the run lacks.",
        since=wait.since,
        advice="Install it on the workers, then resume the run.",
        target=_visit(standing, wait),
        verb="resume",
    )


def _external(standing: Standing, wait: WaitFacts) -> Because:
    work = wait.work
    sentence, advice = f"{wait.step} waits for another program that does its work.", ""
    if work is not None and work.worker:
        renewed = f", renewed {counted(work.renewals, 'time')}" if work.renewals else ""
        sentence = f'{work.worker} has the work of {wait.step}, from the queue "{work.queue}"{renewed}.'
        advice = "It goes on with what the program brings; what is not renewed in time is offered again."
    elif work is not None:
        again = ", not for the first time" if work.times > 1 else ""
        sentence = f'{wait.step} waits in the queue "{work.queue}" for a program that takes it{again}.'
        advice = f'A program that asks for work of "{work.queue}" gets it; look whether one runs.'
    return Because(
        code="external",
        sentence=sentence,
        since=wait.since,
        until=wait.until,
        advice=advice,
        target=_visit(standing, wait),
        passes=True,
    )


def _unknown(standing: Standing, wait: WaitFacts) -> Because:
    return Because(
        code=wait.cause,
        sentence=f'{wait.step} waits for "{wait.cause}".',
        since=wait.since,
        until=wait.until,
        target=_visit(standing, wait),
    )


_TOLD: dict[str, Callable[[Standing, WaitFacts], Because]] = {
    WaitsFor.TIMER: _timer,
    WaitsFor.RETRY: _retry,
    WaitsFor.SIGNAL: _signal,
    WaitsFor.PEOPLE: _people,
    WaitsFor.CHILD: _child,
    WaitsFor.SLOT: _slot,
    WaitsFor.RECONCILE: _reconcile,
    WaitsFor.CODE: _code,
    WaitsFor.EXTERNAL: _external,
}
