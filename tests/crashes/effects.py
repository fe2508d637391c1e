"""Effects with a log of their own: which began, which did their work, and with what result (promise KILL)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.crashes.moments import Watch
from workflows.definitions.plan import StepPlan
from workflows.engine.contract import EffectContext, EffectKind, Kinds, Result, StepKind
from workflows.engine.processes import Command, Finished, find_program
from workflows.engine.secrets import Masker
from workflows.errors import Failure
from workflows.jsonvalue import store
from workflows.steps import shell

RECORDER = str(Path(__file__).with_name("recorder.sh"))
#: The name under which the kit knows a run, in front of the keys of its effects.
LabelOf = Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One line of the log: an effect that has done its work."""

    line: Mapping[str, Any]

    def result(self, step: StepPlan) -> Result:
        """What a driver would have settled, from what the log shows."""
        if "outcome" in self.line:
            return _told(self.line)
        code = self.line["code"]
        stdout, stderr = (Path(self.line[name]).read_bytes() for name in ("stdout", "stderr"))
        finished = Finished(
            exit_code=code,
            signal=None,
            stopped=None,
            stdout=stdout,
            stdout_size=len(stdout),
            stderr_end=stderr,
            log_parts=(),
            log_dropped=0,
        )
        return shell._result(cast(EffectContext, SimpleNamespace(step=step)), finished, Masker())


def _told(line: Mapping[str, Any]) -> Result:
    failure = line["failure"]
    return Result(
        outcome=line["outcome"],
        output=None if line["output"] is None else store(json.loads(line["output"])),
        failure=Failure(code=failure["code"], message=failure["message"]) if failure else None,
        exit_code=line["exit_code"],
    )


@dataclass(slots=True, kw_only=True)
class EffectLog:
    """The log of an attack's effects. Keys are the run's label, path and try: ``kid>deploy[3]/roll_out@1``."""

    began: dict[str, int] = field(default_factory=dict)
    done: dict[str, list[Done]] = field(default_factory=dict)
    dispatch_ids: dict[str, list[str]] = field(default_factory=dict)
    processes: set[int] = field(default_factory=set)


def read_log(path: Path) -> EffectLog:
    log = EffectLog()
    lines: Iterable[str] = path.read_text().splitlines() if path.exists() else ()
    for line in map(json.loads, lines):
        key = line["key"]
        log.processes.add(line["process"])
        if line["what"] == "began":
            log.began[key] = log.began.get(key, 0) + 1
            log.dispatch_ids.setdefault(key, []).append(line["dispatch"])
        else:
            log.done.setdefault(key, []).append(Done(line=line))
    return log


def key_of(path: str, attempt: int, label: str = "") -> str:
    """The name of an effect that is the same in every run of a scenario."""
    return f"{label}{path}@{attempt}"


class Recorded:
    """A kind whose effects leave traces in a log, and whose driver may be killed before, in and after them."""

    def __init__(self, kind: EffectKind, watch: Watch, log: Path, label_of: LabelOf) -> None:
        self.name = kind.name
        self.enter = kind.enter
        self._kind = kind
        self._watch = watch
        self._log = log
        self._label_of = label_of

    def execute(self, context: EffectContext) -> Result:
        key = key_of(context.path, context.attempt, self._label_of(context.run_id))
        subject = f"the effect {key}"
        self._watch.reach(subject, "before")
        _here.effect = _Here(watch=self._watch, log=self._log, subject=subject, key=key, context=context)
        try:
            result = self._kind.execute(context) if self.name == "shell" else self._call(key, subject, context)
        finally:
            del _here.effect
        self._watch.reach(subject, "after")
        return result

    def _call(self, key: str, subject: str, context: EffectContext) -> Result:
        known = {"key": key, "dispatch": context.dispatch_id, "process": 0}
        self._note(what="began", **known)
        self._watch.reach(subject, "began")
        result = self._kind.execute(context)
        failure = result.failure
        self._note(
            what="done",
            outcome=result.outcome,
            output=result.output.text if result.output else None,
            failure={"code": failure.code, "message": failure.message} if failure else None,
            exit_code=result.exit_code,
            **known,
        )
        self._watch.reach(subject, "done")
        return result

    def _note(self, **line: Any) -> None:
        append(self._log, json.dumps(line))


def append(log: Path, line: str) -> None:
    """Add a line to a log in one piece. A process that is killed afterwards does not take it away."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    watch: Watch
    log: Path
    subject: str
    key: str
    context: EffectContext


_here = threading.local()
_run_process = shell.run_process


def record_processes() -> None:
    """Let the programs of shell steps run under the recorder, in this process, from now on."""
    shell.run_process = _recorded


def _recorded(command: Command, **how: Any) -> Finished:
    here: _Here = _here.effect
    program = find_program(command)
    dies = here.watch.foretell(here.subject, ("began", "done"))
    argv = ["/bin/sh", RECORDER, str(here.log), here.key, here.context.dispatch_id]
    argv += [str(here.watch.process), dies or "-", program, *command.argv[1:]]
    return _run_process(replace(command, argv=argv), **how)


def recorded_kinds(kinds: Kinds, watch: Watch, log: Path, label_of: LabelOf) -> Kinds:
    """The same kinds, with the effects of all that have one recorded."""
    return {
        name: cast(StepKind, Recorded(kind, watch, log, label_of)) if isinstance(kind, EffectKind) else kind
        for name, kind in kinds.items()
    }
