"""Start a run: a form made from the parameters, or their JSON; what was typed stays, whatever is refused."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from workflows.definitions.parameters import check_parameters
from workflows.definitions.plan import Plan
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import read_json
from workflows.models import Workflow
from workflows.operations.access import may
from workflows.operations.readiness import refuse_unless_ready
from workflows.operations.runs import Start, start
from workflows.operations.versions import version_definition
from workflows.operations.workflows import Definition
from workflows.pages.fields import PREFIX, Typed, other_problems
from workflows.pages.guard import FORM, POST, actor, page, visible_run, visible_workflow
from workflows.pages.guard import LOOK as LOOK_AT_RUNS
from workflows.pages.run_choices import moment_in
from workflows.pages.start_fields import default_texts, plain_values, start_fields, texts_of, typed_values
from workflows.pages.tags import pretty
from workflows.queries.start_form import concurrency_line, earlier_runs, prefill_of, workers_now
from workflows.queries.workflow_pages import Version, versions_of

START = "workflows.start_run"
MOST_PRIORITY = 100
#: In a link, before the name of a parameter.
GIVEN = "p."
_MOST_LINK = 1_800
_MOST_VERSIONS = 100


@dataclass(slots=True, kw_only=True)
class Form:
    """A start form as it is at the moment. ``mode`` says what counts: the fields (``form``) or the text (``json``)."""

    definition: Definition
    texts: dict[str, str] = field(default_factory=dict)
    json: str = ""
    mode: str = "form"
    title: str = ""
    key: str = ""
    priority: str = ""
    start_at: str = ""
    over_limit: str = ""
    problems: tuple[Problem, ...] = ()
    refusal: Refusal | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def params(self) -> tuple[Any, ...]:
        return self.definition.plan.params

    def typed(self) -> Typed:
        """What was given, by the fields or by the text. Raises ``params.invalid`` for a text that is no JSON object."""
        return typed_values(self.params, self.texts) if self.mode == "form" else Typed(given=_json_object(self.json))


def _json_object(text: str) -> dict[str, Any]:
    value, problems = read_json(text if text.strip() else "{}")
    problems = [replace(problem, message=problem.message.replace("The file", "The text")) for problem in problems]
    if not problems and not isinstance(value, dict):
        message = "The text must be a JSON object that maps names of parameters to values."
        problems = [Problem(code="E609", path="(json)", message=message, hint='Example: {"region": "eu"}.')]
    if problems:
        raise Refusal("params.invalid", count=len(problems), problems=tuple(problems))
    found: dict[str, Any] = value
    return found


@page(methods=FORM, needs=START)
def start_form(request: HttpRequest, name: str) -> HttpResponse:
    """The form, prefilled from a link or an earlier run; posted, it starts a run or changes how it is shown."""
    row = visible_workflow(request, name)
    if request.method != "POST":
        return _shown(request, row, _fresh(request, row))
    form = _posted(row, request.POST)
    match request.POST.get("action", "start"):
        case "json":
            _to_json(form)
        case "form":
            _to_form(form)
        case "version":
            pass
        case _:
            return _started(request, row, form)
    return _shown(request, row, form)


@page(methods=POST, needs=START)
def preview(request: HttpRequest, name: str) -> HttpResponse:
    """What would be started with what is typed at the moment: the JSON, what is wrong with it, who is before it."""
    row = visible_workflow(request, name)
    form = _posted(row, request.POST)
    return render(request, "workflows/start_preview.html", _preview(request, row, form))


# ---- fresh forms -----------------------------------------------------------------------------------------------------


def _fresh(request: HttpRequest, row: Workflow) -> Form:
    asked = request.GET
    form = Form(definition=version_definition(row, _number(asked.get("version"))), key=_new_key())
    form.texts = default_texts(form.params)
    form.title = asked.get("title", "")[:500]
    number = _number(asked.get("from_run"))
    if number is not None:
        _prefill(request, row, form, number)
    declared = {one["name"] for one in form.params}
    for name, text in asked.items():
        if not name.startswith(GIVEN):
            continue
        parameter = name.removeprefix(GIVEN)
        if parameter.partition(":")[0] in declared:
            form.texts[PREFIX + parameter] = str(text)
        else:
            form.notes.append(f'The link names "{parameter[:60]}", which is no parameter of this version.')
    return form


def _prefill(request: HttpRequest, row: Workflow, form: Form, number: int) -> None:
    run = visible_run(request, number)
    if run.workflow_id != row.pk:
        form.notes.append(f"Run {number} is of another workflow; nothing was taken from it.")
        return
    earlier = prefill_of(run)
    form.title = form.title or earlier.title
    if earlier.values is None:
        form.notes.append(f"The parameters of run {number} are too large for a form; nothing was taken from it.")
        return
    form.texts = texts_of(form.params, earlier.values, hide=True)
    declared = {one["name"]: one for one in form.params}
    gone = [name for name in earlier.values if name not in declared]
    hidden = [name for name, one in declared.items() if one.get("sensitive") and name in earlier.values]
    form.notes.append(f"Filled in as run {number} was started.")
    if gone:
        form.notes.append(f"Not taken over, since this version has no such parameter: {', '.join(gone)}.")
    if hidden:
        form.notes.append(f"Left empty, since they are sensitive: {', '.join(hidden)}.")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _new_key() -> str:
    return f"form-{uuid.uuid4().hex[:20]}"


# ---- posted forms ----------------------------------------------------------------------------------------------------


def _posted(row: Workflow, posted: QueryDict) -> Form:
    return Form(
        definition=version_definition(row, _number(posted.get("version"))),
        texts={name: str(text) for name, text in posted.items() if name.startswith(PREFIX)},
        json=posted.get("json", "").replace("\r\n", "\n"),
        mode="json" if posted.get("mode") == "json" else "form",
        title=posted.get("title", ""),
        key=posted.get("key", "").strip(),
        priority=posted.get("priority", ""),
        start_at=posted.get("start_at", "").strip(),
        over_limit=posted.get("over_limit", "").strip(),
    )


def _to_json(form: Form) -> None:
    if form.mode == "form":
        form.json = pretty(plain_values(form.params, form.texts))
        form.mode = "json"


def _to_form(form: Form) -> None:
    """The text becomes fields, unless something in it would get lost."""
    if form.mode == "form":
        return
    try:
        values = form.typed().given
    except Refusal as refusal:
        form.problems = refusal.problems
        return
    # unknown names have no field, and a value of another type would become one of the declared type unseen
    lost = [one for one in check_parameters(form.params, values).problems if one.code in ("E602", "E603", "E605")]
    if lost:
        form.problems = tuple(lost)
        return
    form.texts = texts_of(form.params, values)
    form.mode = "form"


def _started(request: HttpRequest, row: Workflow, form: Form) -> HttpResponse:
    try:
        typed = form.typed()
        started = start(
            Start(
                definition=form.definition,
                actor=actor(request),
                given=typed.given,
                from_text=typed.from_text,
                title=form.title.strip(),
                key=form.key or None,
                origin="page",
                over_limit=form.over_limit or None,
                priority=_priority(form.priority),
                start_at=_start_at(form.start_at),
            )
        )
    except Refusal as refusal:
        if refusal.code == "params.invalid":
            form.problems = refusal.problems
        else:
            form.refusal = refusal
        if refusal.code == "run.key_conflict":
            form.key = _new_key()
            form.notes.append("A new key is filled in: start again to start another run.")
        return _shown(request, row, form, status=refusal.http_status)
    for warning in started.warnings:
        messages.warning(request, f"{warning.code}: {warning.message} {warning.hint}".strip())
    if not started.created:
        messages.info(request, f"This form had started run {started.run_id} already; no other run was started.")
    elif form.start_at:
        messages.info(request, "The run waits for its moment.")
    elif started.queued:
        messages.info(request, "The run waits in line for its turn.")
    return redirect("pages:run", number=started.run_id)


def _priority(text: str) -> int:
    """Raises ``input.invalid``."""
    text = text.strip().replace("−", "-")
    if not text:
        return 0
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4) or abs(int(text)) > MOST_PRIORITY:
        reason = f"The priority must be a whole number from −{MOST_PRIORITY} to {MOST_PRIORITY}."
        raise Refusal("input.invalid", reason=reason, advice="0 is usual; higher ones are driven first.")
    return int(text)


def _start_at(text: str) -> datetime | None:
    """Raises ``input.invalid``."""
    faults: list[str] = []
    found = moment_in("start_at", text, faults)
    if faults:
        raise Refusal("input.invalid", reason=faults[0], advice="Leave it empty to start the run now.")
    return found


# ---- how it is shown -------------------------------------------------------------------------------------------------


def _shown(request: HttpRequest, row: Workflow, form: Form, *, status: int = 200) -> HttpResponse:
    told = _preview(request, row, form)
    if form.refusal is not None and not form.problems:
        form.problems = told["preview_problems"]
    fields = start_fields(form.params, form.texts, form.problems)
    has_own_place = form.mode == "form"
    context = {
        **told,
        "unready": form.refusal is None and not_ready(form.definition.plan),
        "workflow": row,
        "plan": form.definition.plan,
        "form": form,
        "fields": fields,
        "problems": other_problems(form.params, form.problems) if has_own_place else form.problems,
        "count": len(form.problems),
        "versions": _choosable(row, form),
        "workers": workers_now(),
        "earlier": earlier_runs(row) if request.user.has_perm(LOOK_AT_RUNS) else [],
        "zone": timezone.get_current_timezone_name(),
        "json_rows": min(max(form.json.count("\n") + 2, 8), 30),
    }
    return render(request, "workflows/start.html", context, status=status)


def _choosable(row: Workflow, form: Form) -> list[Version]:
    """The newest versions, and the chosen one."""
    newest = versions_of(row, limit=_MOST_VERSIONS)
    chosen = form.definition.version
    if chosen is not None and all(one.version != chosen for one in newest):
        newest += [one for one in versions_of(row) if one.version == chosen]
    return newest


def not_ready(plan: Plan) -> Refusal | None:
    """Why a plan could not run on this server now: a kind, a function, a secret by name."""
    try:
        refuse_unless_ready(plan)
    except Refusal as refusal:
        return refusal
    return None


def _preview(request: HttpRequest, row: Workflow, form: Form) -> dict[str, Any]:
    """The checked JSON, its problems, the line before it, and a link that fills the form in like this."""
    try:
        typed = form.typed()
    except Refusal as refusal:
        return {"workflow": row, "preview_problems": refusal.problems, "form": form}
    checked = check_parameters(form.params, typed.given, from_text=typed.from_text)
    hidden = {one["name"] for one in form.params if one.get("sensitive")}
    shown = {name: "(hidden)" if name in hidden else value for name, value in checked.values.items()}
    is_valid = not checked.problems
    return {
        "workflow": row,
        "form": form,
        "preview": pretty(shown) if is_valid else "",
        "preview_problems": checked.problems,
        "preview_warnings": checked.warnings,
        "line": concurrency_line(form.definition.plan, checked.values, request.user) if is_valid else None,
        "may_exceed": may(actor(request), "exceed_limit"),
        "link": _link(request, row, form),
    }


def _link(request: HttpRequest, row: Workflow, form: Form) -> str:
    """An address that fills the form in like this; sensitive parameters are not in it. Empty when it gets too long."""
    values = plain_values(form.params, form.texts) if form.mode == "form" else _json_object(form.json)
    usual = default_texts(form.params)
    texts = texts_of(form.params, values, hide=True)
    given = {GIVEN + name.removeprefix(PREFIX): text for name, text in texts.items() if usual.get(name) != text}
    if form.title:
        given["title"] = form.title
    if form.definition.version is not None and form.definition.plan_id != row.current_id:
        given["version"] = str(form.definition.version)
    address = reverse("pages:start", args=[row.name]) + (f"?{urlencode(given)}" if given else "")
    return request.build_absolute_uri(address) if len(address) <= _MOST_LINK else ""
