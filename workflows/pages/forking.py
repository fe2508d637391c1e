"""Fork a run in the browser: the cut, what is edited, what that comes to, then the new run (promises FORK)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from workflows.errors import Refusal
from workflows.jsonvalue import canonical, decode, read_json
from workflows.operations.access import words_of
from workflows.operations.forking import CHILD_CHOICES, ForkPreview, ForkWish, preview
from workflows.operations.forking import fork as carry_out
from workflows.pages import guard
from workflows.pages.run_context import RunView
from workflows.pages.tags import pretty
from workflows.queries.excerpts import whole_value
from workflows.queries.run_choices import plan_versions, variables_at

FIELDS = ("begin_with", "at", "params", "variables", "outputs", "plan", "child", "title", "reason")
#: Parameters that are longer are not laid into the form.
MOST_PARAMS = 100_000
#: Steps of a preview that are listed.
MOST_LISTED = 30


@guard.page(methods=guard.FORM)
def fork(request: HttpRequest, number: int) -> HttpResponse:
    """GET shows the form, and what the fork comes to where a cut is given; POST shows it anew, or forks."""
    view = RunView(request, number)
    if request.method != "POST":
        _refuse_without_permission(request)
    given = _first(view) if request.method != "POST" else _given(request.POST)
    shown: ForkPreview | None = None
    refusal: Refusal | None = None
    try:
        wish = _wish(view, given, request.POST.get("key"))
        if request.method == "POST" and request.POST.get("do") == "fork":
            return _forked(request, wish)
        shown = preview(wish)
    except Refusal as found:
        if request.method == "POST" or found.code != "fork.ambiguous":
            refusal = found
    return _asked(view, given, shown, refusal)


def _forked(request: HttpRequest, wish: ForkWish) -> HttpResponse:
    done = carry_out(wish)
    words = f"Run {done.run_id} is a fork of run {wish.run_id} at revision {done.revision}."
    messages.success(request, words + (" It waits in line for its slot." if done.queued else ""))
    for warning in done.warnings:
        messages.warning(request, warning.message)
    return HttpResponseRedirect(reverse("pages:run", args=[done.run_id]))


def _asked(view: RunView, given: Mapping[str, str], shown: ForkPreview | None, refusal: Refusal | None) -> HttpResponse:
    context = {
        "head": view.head,
        "given": given,
        "shown": shown,
        "refusal": refusal,
        "most_listed": MOST_LISTED,
        "needs_child": bool(shown and shown.children) or (refusal is not None and refusal.code == "fork.child_open"),
        "children": CHILD_CHOICES,
        "versions": plan_versions(view.run),
        "variables": variables_at(view.run, shown.revision) if shown is not None else [],
        "copies_workspace": bool(view.request.POST.get("copy_workspace")),
        "request_key": view.request.POST.get("key") or uuid.uuid4().hex,
    }
    status = refusal.http_status if refusal is not None and view.request.method == "POST" else 200
    return render(view.request, "runs/fork.html", context, status=status)


def _refuse_without_permission(request: HttpRequest) -> None:
    if not request.user.has_perm("workflows.fork_run"):
        name = "fork_run"
        raise Refusal("access.denied", actor=request.user.get_username(), what=words_of(name), permission=name)


def _first(view: RunView) -> dict[str, str]:
    """What the form begins with: the cut of the link that led here, and the parameters of the origin."""
    asked = view.request.GET
    params = _params_text(view)
    return {
        **dict.fromkeys(FIELDS, ""),
        "begin_with": asked.get("from", ""),
        "at": asked.get("at", ""),
        "params": params,
    }


def _params_text(view: RunView) -> str:
    text, _ = whole_value(view.run.pk, view.run.params_digest)
    if len(text) > MOST_PARAMS:
        return ""
    return pretty(decode(text))


def _given(posted: QueryDict) -> dict[str, str]:
    return {name: posted.get(name, "").strip() for name in FIELDS}


def _wish(view: RunView, given: Mapping[str, str], key: str | None) -> ForkWish:
    """Raises ``input.invalid``."""
    child: Any = given["child"] if given["child"] in CHILD_CHOICES else None
    return ForkWish(
        run_id=view.run.pk,
        actor=guard.actor(view.request),
        begin_with=given["begin_with"] or None,
        at=_revision(given["at"]),
        params=_changed_params(view, _object(given["params"], "parameters")),
        variables=_object(given["variables"], "variables"),
        outputs=_object(given["outputs"], "outputs"),
        plan=given["plan"] or None,
        child=child,
        copy_workspace=bool(view.request.POST.get("copy_workspace")),
        title=given["title"] or None,
        reason=given["reason"],
        request_id=key or None,
    )


def _revision(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refusal("input.invalid", reason=f'"{text[:40]}" is not the number of a revision.')
    return int(text)


def _object(text: str, what: str) -> dict[str, Any]:
    if not text:
        return {}
    value, problems = read_json(text)
    if problems:
        raise Refusal("input.invalid", reason=f"The {what}: {problems[0].message}")
    if not isinstance(value, dict):
        raise Refusal("input.invalid", reason=f"The {what} are a JSON object: a value for each name.")
    return value


def _changed_params(view: RunView, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not as they were."""
    if not params:
        return {}
    text, _ = whole_value(view.run.pk, view.run.params_digest)
    origin = decode(text)
    return {
        name: value
        for name, value in params.items()
        if name not in origin or canonical(value) != canonical(origin[name])
    }
