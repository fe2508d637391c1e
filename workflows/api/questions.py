"""Questions to people: which wait for you, what one asks, and your answer."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema

from workflows.api.callers import Needs
from workflows.api.looking import about_run, looker
from workflows.api.problems import document
from workflows.api.shapes import Document, Given, RunNumber, VisitNumber
from workflows.operations.answering import Wish, answer
from workflows.queries.inbox import PAGE, InboxEntry, waiting_for
from workflows.queries.questions import question_of
from workflows.queries.runs import moment_text

router = Router(tags=["questions"])


class Waiting(Schema):
    run: int
    visit: int
    workflow: str
    run_title: str
    path: str
    kind: str
    ask: str
    asked_at: str
    deadline: str | None
    votes: int
    quorum: int
    audience: list[str]


class WaitingList(Schema):
    questions: list[Waiting]
    has_more: bool


class Question(Document):
    run: int
    visit: int
    attempt: int
    path: str
    kind: str
    status: str
    ask: str


class Answer(Given):
    """What you say: ``decision`` is approved, rejected, or a choice; ``fields`` are those of the form."""

    decision: str | None = None
    fields: dict[str, Any] = Field(default_factory=dict)
    comment: str = ""
    attempt: int | None = Field(
        None, ge=1, le=2**31 - 1, description="The one you looked at: what is asked anew since then is not answered."
    )


class Answered(Schema):
    run: int
    visit: int
    closed: bool = Field(description="false: further people have to answer.")


@router.get("", auth=Needs("read"), response=WaitingList)
def list_questions(request: HttpRequest, limit: Annotated[int, Query(ge=1, le=200)] = PAGE) -> HttpResponse:
    """The open questions that you may answer and have not, the next deadline first."""
    found = waiting_for(looker(request).user, limit=limit)
    return document({"questions": [_entry(entry) for entry in found.entries], "has_more": found.has_more})


@router.get("/{run}/{visit}", auth=Needs("read"), response=Question)
def show_question(request: HttpRequest, run: RunNumber, visit: VisitNumber) -> HttpResponse:
    """One question: what it shows, its form, and who has answered what."""
    about_run(request, run)
    return document(question_of(run, visit))


@router.post("/{run}/{visit}/answer", auth=Needs("answer"), response=Answered)
def answer_question(request: HttpRequest, run: RunNumber, visit: VisitNumber, body: Answer) -> Any:
    """Answer a question as the person you are; the key of a program answers as its owner."""
    caller = about_run(request, run)
    said = answer(run, visit, Wish(**body.model_dump()), actor=caller.actor)
    return {"run": run, "visit": visit, "closed": said.settled}


def _entry(entry: InboxEntry) -> dict[str, Any]:
    return {
        "run": entry.run,
        "visit": entry.visit,
        "workflow": entry.workflow,
        "run_title": entry.run_title,
        "path": entry.path,
        "kind": entry.kind,
        "ask": entry.ask,
        "asked_at": moment_text(entry.asked_at),
        "deadline": moment_text(entry.deadline),
        "votes": entry.votes,
        "quorum": entry.quorum,
        "audience": list(entry.audience),
    }
