"""``shell``: runs a script or a program (docs/format.md, Shell)."""

from __future__ import annotations

import os
import signal
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workflows.engine.contract import Effect, EffectContext, Entered, Entry, Result
from workflows.engine.processes import CannotStart, Command, Finished, mark_of, run_process
from workflows.engine.results import failure_result, output_result, short, stopped_result
from workflows.engine.secrets import AttemptSecrets, Masker, SecretMissing
from workflows.engine.workspaces import WorkspaceRefused, folder_below
from workflows.expressions import BadExpression, Value
from workflows.jsonvalue import clean_text, text_of
from workflows.steps.entering import effect, failed, kind_of_value
from workflows.steps.shell_output import UnusableOutput, log_of, parse_output

#: Linux refuses an argument or a variable of 128 KiB; this leaves room for the name.
VALUE_LIMIT = 100 * 1024
#: How much of the last line of standard error a failure quotes.
QUOTED_LIMIT = 500

_SHELL = ("/bin/sh", "-eu", "-c")
#: By this variable the supervisor finds all processes of one start, and no others. The idempotency key would not do:
#: a repetition has the same, and must not be taken for what the worker before it left behind.
_MARK_NAME = "WAYPOST_EFFECT"


class TooLarge(Exception):
    """A variable or an argument that the system would refuse."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__(
            f"{what} is {size:,} bytes; one variable or argument may hold {VALUE_LIMIT:,} bytes. "
            "Pass large values with `stdin`."
        )


class ShellKind:
    name = "shell"

    def enter(self, entry: Entry) -> Entered:
        try:
            return self._effect(entry)
        except TooLarge as error:
            return failed("value_too_large", str(error))

    def _effect(self, entry: Entry) -> Effect:
        options = entry.step.options
        inputs: dict[str, Any] = {"env": _variables(entry, options.get("env") or {})}
        if options.get("argv") is not None:
            inputs["argv"] = _arguments(entry.evaluate(options["argv"]))
        else:
            inputs["run"] = options["run"]
        if options.get("stdin") is not None:
            given = entry.evaluate(options["stdin"])
            inputs["stdin"] = None if given is None else text_of(given)
        if options.get("cwd") is not None:
            inputs["cwd"] = _text_option(entry, options["cwd"], "cwd")
        return effect(entry, inputs)

    def execute(self, context: EffectContext) -> Result:
        secrets = AttemptSecrets(context.secrets)
        try:
            environment = _environment(context, secrets)
            if context.step.workspace == "none" and not context.inputs.get("cwd"):
                with tempfile.TemporaryDirectory(prefix="waypost-", ignore_cleanup_errors=True) as folder:
                    return self._run(context, environment, Path(folder), secrets.masker())
            return self._run(context, environment, _folder(context), secrets.masker())
        except SecretMissing as error:
            return failure_result("secret_missing", str(error))
        except WorkspaceRefused as error:
            return failure_result("start_failed", str(error))
        except TooLarge as error:
            return failure_result("value_too_large", str(error))
        except CannotStart as error:
            return failure_result(error.code, secrets.masker().text(str(error)))

    def _run(self, context: EffectContext, environment: Mapping[str, str], folder: Path, masker: Masker) -> Result:
        inputs = context.inputs
        environment = {**environment, "HOME": environment.get("HOME") or os.environ.get("HOME") or str(folder)}
        command = Command(
            argv=inputs["argv"] if "argv" in inputs else [*_SHELL, inputs["run"]],
            environment=environment,
            folder=folder,
            stdin=(inputs.get("stdin") or "").encode(),
            mark=mark_of(environment, [_MARK_NAME]),
        )
        finished = run_process(
            command,
            groups=context.groups,
            stop=context.stop,
            stop_reason=context.stop_reason,
            deadline=context.deadline,
        )
        return _result(context, finished, masker)


def _variables(entry: Entry, written: Mapping[str, Any]) -> dict[str, Any]:
    """Variables as text; ``{"secret": name}`` where a secret goes, nothing where the value is null."""
    variables: dict[str, Any] = {}
    for name, value in written.items():
        if not isinstance(value, Value):
            variables[name] = dict(value)
            continue
        given = entry.evaluate(value)
        if given is not None:
            variables[name] = _limited(text_of(given), f'The variable "{name}"')
    return variables


def _arguments(given: Any) -> list[str]:
    if not isinstance(given, list) or not given:
        raise BadExpression(f'"argv" must be a list of at least the program, but it is {kind_of_value(given)}.')
    arguments = []
    for number, value in enumerate(given):
        if value is None:
            raise BadExpression(f"argv[{number}] is null; an argument must have a value.")
        arguments.append(_limited(text_of(value), f"Argument {number} of the program"))
    return arguments


def _text_option(entry: Entry, value: Value, key: str) -> str:
    given = entry.evaluate(value)
    if not isinstance(given, str):
        raise BadExpression(f'"{key}" must be text, but it is {kind_of_value(given)}.')
    return given


def _limited(text: str, what: str) -> str:
    # Texts of fewer characters than a quarter of the limit cannot exceed it in UTF-8.
    if len(text) * 4 > VALUE_LIMIT and (size := len(text.encode())) > VALUE_LIMIT:
        raise TooLarge(what, size)
    return text


def _environment(context: EffectContext, secrets: AttemptSecrets) -> dict[str, str]:
    environment = {"PATH": os.environ.get("PATH") or os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}
    for name, value in context.inputs["env"].items():
        text = secrets.read(value["secret"]) if isinstance(value, Mapping) else value
        environment[name] = _limited(text, f'The variable "{name}"')
    environment.update(
        WAYPOST_RUN_ID=str(context.run_id),
        WAYPOST_STEP=context.step.id,
        WAYPOST_VISIT=str(context.round),
        WAYPOST_ATTEMPT=str(context.attempt),
        WAYPOST_INDEX="" if context.index is None else str(context.index),
        WAYPOST_IDEMPOTENCY_KEY=context.dispatch_id,
    )
    environment[_MARK_NAME] = uuid.uuid4().hex
    return environment


def _folder(context: EffectContext) -> Path:
    workspace = context.workspace()
    folder = context.inputs.get("cwd")
    return folder_below(workspace, folder) if folder else workspace


def _result(context: EffectContext, finished: Finished, masker: Masker) -> Result:
    log = log_of(finished, masker)
    if finished.stopped is not None:
        detail = "" if finished.exit_code is not None else " Not even SIGKILL ended its process."
        return stopped_result(finished.stopped, exit_code=finished.exit_code, log=log, detail=detail)
    options = context.step.options
    assert finished.exit_code is not None
    code = finished.exit_code
    named = (options.get("exits") or {}).get(code)
    if code != 0 and named is None:
        return failure_result("exit_nonzero", _why(finished, masker), exit_code=code, log=log)
    schema = options.get("schema")
    parse = options.get("parse") or "text"
    if named is not None and parse == "json" and not finished.stdout.strip():
        # An expected exit code is an outcome by itself; that it came without a document is no error.
        return output_result(None, outcome=named, schema=None, exit_code=code, log=log)
    try:
        value, repaired = parse_output(finished, parse, masker)
    except UnusableOutput as error:
        return failure_result(error.code, str(error), exit_code=code, log=log)
    return output_result(value, outcome=named or "ok", schema=schema, exit_code=code, log=log, repaired=repaired)


def _why(finished: Finished, masker: Masker) -> str:
    if finished.signal is not None:
        try:
            name = signal.Signals(finished.signal).name
        except ValueError:
            name = "signal"
        ended = f"The process was ended by {name} ({finished.signal})"
    else:
        ended = f"Exit code {finished.exit_code}"
    # What is kept of standard error may begin inside of a secret.
    end = masker.cut_start(masker.text(clean_text(finished.stderr_end)[0]))
    last = next((line.strip() for line in reversed(end.split("\n")) if line.strip()), "")
    return f"{ended}: {short(last, QUOTED_LIMIT)}" if last else f"{ended}."
