"""Actions on runs that were ticked: a page that asks once more and why, then one result for each run.

An action is sent with a token of its page, so that sending it twice forks once.
"""

from __future__ import annotations

import tempfile
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin, helpers
from django.db.models import QuerySet
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse

from workflows.errors import Refusal
from workflows.operations import runs
from workflows.operations.exporting import export_run
from workflows.operations.forking import ForkWish, fork
from workflows.operations.people import Actor, user_actor
from workflows.operations.reasons import checked_reason

#: Runs of one action here; more of them are done from the list of runs, where they can be watched and stopped.
MOST_RUNS = 100
#: An export is kept in memory up to this size.
_IN_MEMORY = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of one run. ``other`` is a run that came of it."""

    run: int
    is_done: bool
    words: str
    hint: str = ""
    other: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    """``asks`` is what the page says before; ``carry_out`` gets run, actor, reason and the token of the page. None:
    what comes of it is a file."""

    word: str
    asks: str
    carry_out: Callable[[int, Actor, str, str], Told] | None
    needs_reason: bool = False
    is_grave: bool = False


def _cancel(run: int, actor: Actor, reason: str, token: str) -> Told:
    is_new = runs.cancel(run, actor=actor, reason=reason, request_id=f"admin:{token}:{run}")
    return Told(run=run, is_done=True, words="Asked to end." if is_new else "It was asked to end already.")


def _abandon(run: int, actor: Actor, reason: str, token: str) -> Told:
    runs.abandon(run, actor=actor, reason=reason)
    return Told(run=run, is_done=True, words="Abandoned.")


def _resume(run: int, actor: Actor, reason: str, token: str) -> Told:
    words = {"released": "No longer held.", "reopened": "Opened again.", "woken": "Looked at again."}
    how = runs.resume(run, actor=actor, reason=reason)
    return Told(run=run, is_done=True, words=words.get(how, how))


def _fork(run: int, actor: Actor, reason: str, token: str) -> Told:
    forked = fork(ForkWish(run_id=run, actor=actor, reason=reason, request_id=f"admin:{token}"))
    words = f"Forked at revision {forked.revision}" if forked.created else "This form had forked it already"
    return Told(run=run, is_done=True, words=f"{words}: run {forked.run_id}.", other=forked.run_id)


VERBS = {
    "cancel": _Verb(
        word="Cancel",
        asks="The runs end as cancelled; their closing steps still run. This cannot be taken back.",
        carry_out=_cancel,
        is_grave=True,
    ),
    "abandon": _Verb(
        word="Abandon",
        asks="The runs end at once, without closing steps. What runs outside is not undone. They can be resumed.",
        carry_out=_abandon,
        needs_reason=True,
        is_grave=True,
    ),
    "resume": _Verb(
        word="Resume",
        asks="Holds are lifted; failed and abandoned runs go on at the step that failed; blocked ones are looked at "
        "again.",
        carry_out=_resume,
    ),
    "fork": _Verb(
        word="Fork",
        asks="A new run goes on where each failed or abandoned run stopped. The page of a run forks anywhere, and "
        "with changed values.",
        carry_out=_fork,
    ),
    "export": _Verb(
        word="Export",
        asks="A file has the rows, plans and values of the runs, parameters and outputs included, and no secrets.",
        carry_out=None,
    ),
}


def answer(site: ModelAdmin[Any], request: HttpRequest, chosen: QuerySet[Any], name: str) -> HttpResponseBase:
    """The page that asks, or, once it is confirmed, what became of each run."""
    verb = VERBS[name]
    rows = list(chosen.order_by("-pk")[: MOST_RUNS + 1])
    too_many = len(rows) > MOST_RUNS
    problem = ""
    if "confirmed" in request.POST and not too_many:
        try:
            reason = checked_reason(
                request.POST.get("reason", ""), needed_for=f"{verb.word}ing runs" if verb.needs_reason else ""
            )
        except Refusal as refusal:
            problem = refusal.message.replace(" (`--reason`)", "")
        else:
            return _carried_out(site, request, [row.pk for row in rows], name, reason)
    context = {
        **site.admin_site.each_context(request),
        "title": f"{verb.word} {len(rows[:MOST_RUNS])} run{'' if len(rows) == 1 else 's'}?",
        "opts": site.model._meta,
        "verb": verb,
        "name": name,
        "rows": rows[:MOST_RUNS],
        "too_many": too_many,
        "most": MOST_RUNS,
        "problem": problem,
        "reason": request.POST.get("reason", ""),
        "token": request.POST.get("token") or uuid.uuid4().hex,
        "checkbox": helpers.ACTION_CHECKBOX_NAME,
        "media": site.media,
    }
    return TemplateResponse(request, "admin/runs/confirm.html", context, status=422 if problem else 200)


def _carried_out(
    site: ModelAdmin[Any], request: HttpRequest, numbers: list[int], name: str, reason: str
) -> HttpResponseBase:
    verb, actor = VERBS[name], user_actor(request.user)
    token = request.POST.get("token", "")[:64] or uuid.uuid4().hex
    if verb.carry_out is None:
        told, file = _exported(numbers, actor)
        if file is not None:
            return file
    else:
        told = [_attempted(verb.carry_out, number, actor, reason, token) for number in numbers]
    done = sum(one.is_done for one in told)
    context = {
        **site.admin_site.each_context(request),
        "title": f"{verb.word}: {done} of {len(told)} done",
        "opts": site.model._meta,
        "told": told,
        "media": site.media,
    }
    return TemplateResponse(request, "admin/runs/results.html", context)


def _attempted(
    carry_out: Callable[[int, Actor, str, str], Told], number: int, actor: Actor, reason: str, token: str
) -> Told:
    try:
        return carry_out(number, actor, reason, token)
    except Refusal as refusal:
        return Told(run=number, is_done=False, words=refusal.message, hint=refusal.hint)


def _exported(numbers: list[int], actor: Actor) -> tuple[list[Told], FileResponse | None]:
    """An archive with a document for each run; when one of them is refused there is no file, and it is told."""
    # a file of its own on the way: an export may be larger than the memory
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 # the response closes it
    told = []
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in numbers:
                with archive.open(f"run-{number}.json", "w", force_zip64=True) as entry:
                    for piece in export_run(number, actor=actor):
                        entry.write(piece.encode())
                told.append(Told(run=number, is_done=True, words="Can be exported."))
    except Refusal as refusal:
        file.close()
        told.append(Told(run=numbers[len(told)], is_done=False, words=refusal.message, hint=refusal.hint))
        return told, None
    file.seek(0)
    name = f"run-{numbers[0]}.zip" if len(numbers) == 1 else f"runs-{len(numbers)}.zip"
    return told, FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")
