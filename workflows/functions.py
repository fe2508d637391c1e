"""Python functions that workflows call: the decorator, its registry, and what a function is given.

In ``<app>/workflow_tasks.py`` of any installed app::

    from workflows.functions import Outcome, TaskContext, workflow_task

    @workflow_task("billing.charge", idempotent=True, outcomes=("declined",))
    def charge(amount: Decimal, customer: str, context: TaskContext) -> Receipt | Outcome:
        answer = provider.charge(amount, customer, key=context.idempotency_key)
        return Outcome("declined", answer.reason) if answer.declined else Receipt(answer.number)

Arguments are checked and converted by the annotations of the function. The return value becomes the output of the step.
"""

from __future__ import annotations

import inspect
import re
import threading
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, overload

from django.apps import apps
from django.utils.module_loading import autodiscover_modules
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from workflows.statuses import Access

MODULE = "workflow_tasks"

Function = TypeVar("Function", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*", re.ASCII)
_OUTCOME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
#: Outcomes that the format itself gives a meaning.
_RESERVED_OUTCOMES = frozenset({"ok", "failed", "timed_out", "skipped", "exhausted", "done", "fail", "continue"})


class FunctionError(Exception):
    """A function was declared in a way that cannot work, or twice under one name."""


class ArgumentError(Exception):
    """The arguments of a step do not fit its function; the message names the argument."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Returned by a function that ends its step with one of its declared outcomes; ``value`` is the output."""

    name: str
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContext:
    """What a function gets for a parameter annotated with this class.

    ``idempotency_key`` stays the same when an uncertain try is repeated; hand it to receivers that remember keys.
    ``round`` is the number of this entry of the step, ``attempt`` that of the try. ``cancelled`` is set when the
    function shall end, for ``check_cancelled`` to end it from the inside.
    """

    run_id: int
    workflow: str
    step: str
    visit: int
    round: int
    attempt: int
    index: int | None
    idempotency_key: str
    cancelled: threading.Event
    report: Callable[[str], None] = field(repr=False)
    check: Callable[[], None] = field(repr=False)
    read_secret: Callable[[str], str] = field(repr=False)
    make_workspace: Callable[[], Path] = field(repr=False)

    def progress(self, text: str) -> None:
        """Shows a short line on the run page while the function runs."""
        self.report(text)

    def check_cancelled(self) -> None:
        """Ends the function here if its attempt was cancelled or timed out. ``except Exception`` does not catch it."""
        self.check()

    def secret(self, name: str) -> str:
        """The value of a secret that the workflow declares. It is masked in outputs and messages of this attempt."""
        return self.read_secret(name)

    @property
    def workspace(self) -> Path:
        """The directory of the run, made when it is first asked for."""
        return self.make_workspace()


class TaskFunction:
    """A registered function with what its decorator declared.

    ``access`` and ``idempotent`` say what a crash leaves behind; ``outcomes`` are the function's own outcomes besides
    ``ok``, which a workflow must route.
    """

    def __init__(
        self, function: Callable[..., Any], *, name: str, access: str, idempotent: bool, outcomes: tuple[str, ...]
    ) -> None:
        self.function = function
        self.name = name
        self.access = access
        self.idempotent = idempotent
        self.outcomes = outcomes
        self.signature = inspect.signature(function)
        _check_declaration(self)

    def __repr__(self) -> str:
        return f"TaskFunction({self.name!r}, access={self.access!r}, outcomes={self.outcomes!r})"

    @property
    def declaration(self) -> dict[str, Any]:
        """What is frozen beside a plan that calls the function."""
        return {"access": self.access, "idempotent": self.idempotent, "outcomes": list(self.outcomes)}

    @cached_property
    def _hints(self) -> dict[str, Any]:
        # Read at the first call and not in the decorator: annotations may name what is defined further down.
        return typing.get_type_hints(self.function, include_extras=True)

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        adapters = {}
        for name, parameter in self.signature.parameters.items():
            hint = self._hints.get(name, Any)
            if _takes_context(hint) or parameter.kind is parameter.VAR_POSITIONAL:
                continue
            try:
                adapters[name] = TypeAdapter(hint)
            except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation) as error:
                raise ArgumentError(
                    f'{self.name}: the annotation of "{name}" cannot be filled from JSON: {error.message}'
                ) from None
        return adapters

    def bind(self, given: Mapping[str, Any], context: TaskContext) -> inspect.BoundArguments:
        """The arguments of a call. Raises :class:`ArgumentError` naming every argument that does not fit."""
        values: dict[str, Any] = {}
        problems: list[str] = []
        try:
            adapters = self._adapters
        except NameError as error:
            raise ArgumentError(f"{self.name}: an annotation names something unknown: {error}.") from None
        rest = next((p.name for p in self.signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
        for name in given:
            if (name not in adapters and rest is None) or name in self._context_names:
                problems.append(f'there is no argument "{name}"; {self._expected()}')
        for name, parameter in self.signature.parameters.items():
            if name in self._context_names:
                values[name] = context
            elif parameter.kind is parameter.VAR_KEYWORD:
                extra = {key: value for key, value in given.items() if key not in adapters or key == rest}
                values[name] = {key: _convert(adapters[name], key, extra[key], problems) for key in extra}
            elif name in given:
                values[name] = _convert(adapters[name], name, given[name], problems)
            elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
                problems.append(f'argument "{name}" is missing')
        if problems:
            raise ArgumentError(f"{self.name}: {'; '.join(problems)}.")
        bound = inspect.BoundArguments(self.signature, values)  # type: ignore[arg-type]
        bound.apply_defaults()
        return bound

    @cached_property
    def _context_names(self) -> frozenset[str]:
        return frozenset(name for name in self.signature.parameters if _takes_context(self._hints.get(name)))

    def _expected(self) -> str:
        named = self.signature.parameters
        names = [name for name in self._adapters if named[name].kind is not inspect.Parameter.VAR_KEYWORD]
        return f"it takes {', '.join(names)}" if names else "it takes none"


class Registry:
    """Task functions by name; every name once."""

    def __init__(self) -> None:
        self._functions: dict[str, TaskFunction] = {}

    def add(self, function: TaskFunction) -> None:
        """Raises :class:`FunctionError` when another function has the name. The same one again replaces itself."""
        known = self._functions.get(function.name)
        if known is not None and _origin(known) != _origin(function):
            raise FunctionError(
                f'The task function "{function.name}" is registered twice: '
                f"by {_origin(known)} and by {_origin(function)}."
            )
        self._functions[function.name] = function

    def get(self, name: str) -> TaskFunction | None:
        return self._functions.get(name)

    def names(self) -> list[str]:
        return sorted(self._functions)

    def declarations(self) -> dict[str, TaskFunction]:
        """All functions by name, for the validation of files."""
        return dict(sorted(self._functions.items()))

    def remove(self, name: str) -> None:
        """Forgets a function, if it is there."""
        self._functions.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[TaskFunction]:
        return iter(self._functions.values())


registry = Registry()


@overload
def workflow_task(name: Function, /) -> Function: ...


@overload
def workflow_task(
    name: str | None = None,
    /,
    *,
    access: typing.Literal["read", "write"] = "write",
    idempotent: bool = False,
    outcomes: tuple[str, ...] = (),
) -> Callable[[Function], Function]: ...


def workflow_task(
    name: Any = None,
    /,
    *,
    access: str = Access.WRITE,
    idempotent: bool = False,
    outcomes: tuple[str, ...] = (),
) -> Any:
    """Registers a function for steps of kind ``task``; the function itself stays as it is.

    ``name`` is what ``call`` says; by default ``<app label>.<function name>``. ``access="read"``: it changes nothing,
    so it is repeated after a crash. ``idempotent``: it may be repeated with the same ``idempotency_key``.
    ``outcomes``: what it may end with besides ``ok``. Raises :class:`FunctionError`.
    """

    def register(function: Function) -> Function:
        registry.add(
            TaskFunction(
                function,
                name=name if isinstance(name, str) else default_name(function),
                access=str(access),
                idempotent=idempotent,
                outcomes=tuple(outcomes),
            )
        )
        return function

    return register(name) if callable(name) else register


def default_name(function: Callable[..., Any]) -> str:
    """``<app label>.<function name>``; outside of an app the package takes the place of the label."""
    config = apps.get_containing_app_config(function.__module__) if apps.apps_ready else None
    if config is not None:
        return f"{config.label}.{function.__name__}"
    parts = function.__module__.split(".")
    if len(parts) > 1 and parts[-1] == MODULE:
        parts.pop()
    return f"{parts[-1]}.{function.__name__}"


def autodiscover() -> None:
    """Imports ``workflow_tasks`` of every installed app; again it does nothing, since modules are imported once."""
    autodiscover_modules(MODULE)


def _takes_context(hint: Any) -> bool:
    return hint is TaskContext or TaskContext in typing.get_args(hint)


def _convert(adapter: TypeAdapter[Any], name: str, value: Any, problems: list[str]) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
            message = detail["msg"]
            problems.append(f'argument "{name}{place}": {message[:1].lower()}{message[1:]}')
        return None


def _check_declaration(declared: TaskFunction) -> None:
    if _NAME.fullmatch(declared.name) is None:
        raise FunctionError(
            f'"{declared.name}" cannot be the name of a task function: '
            "use lower-case letters, digits and _, in parts joined by dots."
        )
    if declared.access not in set(Access):
        raise FunctionError(f'{declared.name}: access must be "read" or "write", not "{declared.access}".')
    for outcome in declared.outcomes:
        if _OUTCOME.fullmatch(outcome) is None or outcome in _RESERVED_OUTCOMES:
            raise FunctionError(f'{declared.name}: "{outcome}" cannot be an outcome of its own.')


def _origin(function: TaskFunction) -> str:
    return f"{function.function.__module__}.{function.function.__qualname__}"
