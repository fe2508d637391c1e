"""From the canonical document of a frozen plan to the :class:`Plan` that the engine executes.

Every default of the file format is resolved here: routes, timeouts, retries, environment, titles. The document must
be valid; a template in it that cannot be compiled raises ``workflows.expressions.TemplateProblem``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from workflows.definitions import options
from workflows.definitions.durations import parse_duration, parse_rate
from workflows.definitions.freezing import verify
from workflows.definitions.kinds import (
    CONTINUE,
    FAILED,
    FOLLOW_MAIN,
    KINDS,
    ONE_TRY_TIMEOUT_MS,
    PEOPLE_TIMEOUT_MS,
    TIMED_OUT,
    default_route,
    outcomes_of,
    spelled_out,
    workspace_use,
)
from workflows.definitions.plan import DEFAULT_VISITS, FAIL, Body, Budget, Concurrency, Plan, RetryPolicy, StepPlan
from workflows.expressions import Value, compile_value

_KEPT = 64
_cache: OrderedDict[str, tuple[str, Plan]] = OrderedDict()
_cache_lock = Lock()


def compiled(hash_: str, canonical_text: str) -> Plan:
    """The plan of a stored document, verified (``plan.corrupt``) and compiled once per process for each hash."""
    with _cache_lock:
        kept = _cache.get(hash_)
        if kept is not None and kept[0] == canonical_text:
            _cache.move_to_end(hash_)
            return kept[1]
    plan = compile_plan(verify(canonical_text, hash_))
    with _cache_lock:
        _cache[hash_] = (canonical_text, plan)
        while len(_cache) > _KEPT:
            _cache.popitem(last=False)
    return plan


def compile_plan(document: Mapping[str, Any]) -> Plan:
    """Compile a canonical document (``freeze(…).document``)."""
    compiler = _Compiler(defaults=document.get("defaults", {}))
    blocks = {name: compiler.block(name, block) for name, block in document.get("blocks", {}).items()}
    sections = {
        name: compiler.section(name, key, document, blocks)
        for name, key in (("main", "steps"), ("on_failure", "on_failure"), ("finally", "finally"))
    }
    for name, block in document.get("blocks", {}).items():
        compiler.fill(blocks[name], block["steps"], blocks)
    main = sections["main"]
    if main is None:
        raise ValueError("a plan needs steps")
    name = document["name"]
    return Plan(
        name=name,
        title=document.get("title", name),
        document=document,
        params=tuple(document.get("params", ())),
        secrets=tuple(document.get("secrets", ())),
        budget=_budget(document.get("budget", {})),
        main=main,
        on_failure=sections["on_failure"],
        closing=sections["finally"],
        blocks=blocks,
        steps={step.id: step for body in (*sections.values(), *blocks.values()) for step in _in_reading_order(body)},
        output=compile_value(document["output"]) if "output" in document else None,
        returns=document.get("returns"),
        description=document.get("description", ""),
        owner=document.get("owner", ""),
        tags=tuple(document.get("tags", ())),
        concurrency=_concurrency(document.get("concurrency")),
        schedule=tuple(document.get("schedule", ())),
    )


def _in_reading_order(body: Body | None) -> Iterator[StepPlan]:
    for step in body.steps if body is not None else ():
        yield step
        for inner in step.bodies.values():
            if inner.kind != "block":
                yield from _in_reading_order(inner)


@dataclass(slots=True, kw_only=True)
class _Compiler:
    defaults: Mapping[str, Any]
    env: Mapping[str, Any] = field(init=False)
    retry: tuple[RetryPolicy, ...] = field(init=False)
    timeout: int | Value = field(init=False)

    def __post_init__(self) -> None:
        self.env = options.with_secrets(self.defaults.get("env", {}))
        self.retry = compile_retry(self.defaults.get("retry", ()))
        self.timeout = options.duration(self.defaults["timeout"]) if "timeout" in self.defaults else ONE_TRY_TIMEOUT_MS

    def section(self, name: str, key: str, document: Mapping[str, Any], blocks: Mapping[str, Body]) -> Body | None:
        steps = document.get(key)
        if not steps:
            return None
        variables = compile_variables(document.get("vars", {})) if name == "main" else {}
        return self.fill(Body(name=name, kind="section", vars=variables), steps, blocks)

    def block(self, name: str, block: Mapping[str, Any]) -> Body:
        return Body(
            name=name,
            kind="block",
            owner=name,
            vars=compile_variables(block.get("vars", {})),
            params=tuple(block.get("params", ())),
            collect=compile_value(block["output"]) if "output" in block else None,
        )

    def fill(self, body: Body, steps: Sequence[Mapping[str, Any]], blocks: Mapping[str, Body]) -> Body:
        """Put the compiled ``steps`` into ``body``. Blocks may call each other, so all bodies exist before this."""
        ids = [step["id"] for step in steps]
        compiled_steps = []
        for position, step in enumerate(steps):
            following = ids[position + 1] if position + 1 < len(ids) else "done"
            compiled_steps.append(self.step(body, position, step, following, blocks))
        body.steps = tuple(compiled_steps)
        return body

    def step(
        self, body: Body, position: int, step: Mapping[str, Any], following: str, blocks: Mapping[str, Body]
    ) -> StepPlan:
        rule = KINDS[step["kind"]]
        outcomes = outcomes_of(step)
        return StepPlan(
            id=step["id"],
            kind=rule.name,
            body=body,
            position=position,
            title=compile_value(step.get("title", spelled_out(step["id"]))),
            only_if=compile_value(step["only_if"]) if "only_if" in step else None,
            routes=compile_routes(step, following),
            main_outcome=outcomes.main,
            max_visits=step.get("max_visits"),
            timeout=self._timeout(step),
            retry=self._retry(step),
            access=step.get("access"),
            idempotent=step.get("idempotent"),
            workspace=workspace_use(step),
            sensitive=step.get("sensitive", False),
            limit=compile_limit(step.get("limit")),
            options=options.OPTIONS[rule.name](step, self.defaults),
            bodies=self._bodies(step, blocks),
            unrouted=unrouted_outcomes(step),
        )

    def _timeout(self, step: Mapping[str, Any]) -> int | Value | None:
        if "timeout" in step:
            return options.duration(step["timeout"])
        meaning = KINDS[step["kind"]].timeout
        if meaning == "attempt":
            return self.timeout
        waits_for_people = meaning == "people" and (step["kind"] != "wait" or "signal" in step)
        return PEOPLE_TIMEOUT_MS if waits_for_people else None

    def _retry(self, step: Mapping[str, Any]) -> tuple[RetryPolicy, ...]:
        if "retry" in step:
            return compile_retry(step["retry"])
        return self.retry if KINDS[step["kind"]].default_retry else ()

    def _bodies(self, step: Mapping[str, Any], blocks: Mapping[str, Body]) -> dict[str, Body]:
        owner = step["id"]
        if "use" in step and step["kind"] in ("map", "block"):
            return {"do": blocks[step["use"]]}
        if step["kind"] == "map":
            item = Body(
                name="do",
                kind="item",
                owner=owner,
                vars=compile_variables(step.get("vars", {})),
                collect=compile_value(step["collect"]) if "collect" in step else None,
            )
            return {"do": self.fill(item, step["do"], blocks)}
        if step["kind"] == "parallel":
            return {
                branch["name"]: self.fill(
                    Body(name=branch["name"], kind="branch", owner=owner), branch["steps"], blocks
                )
                for branch in step["branches"]
            }
        return {}


def compile_routes(step: Mapping[str, Any], following: str) -> dict[str, str]:
    """Targets of every outcome of a step document: written ones, then the defaults. ``following`` is the next step."""
    written: Mapping[str, str] = step.get("next", {})
    outcomes = outcomes_of(step, declared=())
    routes = {outcome: written.get(outcome) or default_route(outcome, written, outcomes) for outcome in outcomes.all}
    routes |= {outcome: target for outcome, target in written.items() if outcome not in routes}
    return {outcome: following if target == CONTINUE else target or FAIL for outcome, target in routes.items()}


def unrouted_outcomes(step: Mapping[str, Any]) -> frozenset[str]:
    """Outcomes that go to ``fail`` although neither they nor the outcome they follow are in `next`."""
    written = step.get("next", {})
    followed = {TIMED_OUT: FAILED}
    return frozenset(
        outcome
        for outcome, target in compile_routes(step, "").items()
        if target == FAIL and outcome not in written and followed.get(outcome) not in written
    ) - (FOLLOW_MAIN if outcomes_of(step).main in written else frozenset())


def compile_retry(policies: Sequence[Mapping[str, Any]]) -> tuple[RetryPolicy, ...]:
    return tuple(
        RetryPolicy(
            attempts=int(policy["attempts"]),
            wait_ms=parse_duration(policy.get("wait", "1s")),
            factor=float(policy.get("factor", 2)),
            max_wait_ms=parse_duration(policy.get("max_wait", "5m")),
            jitter=policy.get("jitter", "full") == "full",
            errors=frozenset(policy["errors"]) if "errors" in policy else None,
        )
        for policy in policies
    )


def compile_variables(variables: Mapping[str, Mapping[str, Any]]) -> dict[str, Value]:
    return {name: compile_value(declaration.get("value")) for name, declaration in variables.items()}


def compile_limit(limit: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """``group`` with ``max``, or with ``starts`` in ``per_ms``."""
    if limit is None:
        return None
    compiled_limit: dict[str, Any] = {"group": limit["group"]}
    if "max" in limit:
        compiled_limit["max"] = limit["max"]
    if "rate" in limit:
        compiled_limit["starts"], compiled_limit["per_ms"] = parse_rate(limit["rate"])
    return compiled_limit


def _budget(written: Mapping[str, Any]) -> Budget:
    return Budget(
        visits=written.get("visits", DEFAULT_VISITS),
        time_ms=parse_duration(written["time"]) if "time" in written else None,
        cost_usd=str(written["cost_usd"]) if "cost_usd" in written else None,
        tokens=written.get("tokens"),
        llm_calls=written.get("llm_calls"),
        failures=written.get("failures"),
    )


def _concurrency(written: Mapping[str, Any] | None) -> Concurrency | None:
    if written is None:
        return None
    return Concurrency(
        key=compile_value(written["key"]), max=written.get("max", 1), when_full=written.get("when_full", "queue")
    )
