"""Workflows: listed, shown with their parameters, validated, published."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema

from workflows.api.callers import Needs, caller_of
from workflows.api.looking import WORKFLOWS, looker
from workflows.api.problems import document
from workflows.api.shapes import Document, Given, VersionNumber, Warned, WorkflowName
from workflows.operations.versions import publish_text, version_definition
from workflows.operations.workflows import check_files
from workflows.queries.runs import moment_text
from workflows.queries.seen import seen_workflow
from workflows.queries.workflow_pages import PAGE, WorkflowRow, versions_of, workflow_page

router = Router(tags=["workflows"])


class WorkflowListed(Schema):
    name: str
    title: str
    version: int
    published_at: str
    published_by: str
    owner: str
    tags: list[str]
    summary: str


class WorkflowList(Schema):
    workflows: list[WorkflowListed]
    total: int
    after: str | None = Field(description="`after` of the next page; null at the end.")


class VersionListed(Schema):
    version: int
    hash: str
    published_at: str
    published_by: str
    is_current: bool


class WorkflowShown(Document):
    """The current version, its parameters as the file declares them, and the versions there are."""

    name: str
    title: str
    version: int
    hash: str
    parameters: list[dict[str, Any]]
    versions: list[VersionListed]


class VersionShown(Schema):
    name: str
    version: int
    hash: str
    document: dict[str, Any] = Field(description="The frozen plan.")
    source: str = Field(description="The file as it was published.")


class File(Given):
    source: str = Field(description="The text of a workflow file.", max_length=1_048_576)


class NewVersion(File):
    name: str | None = Field(None, description="A file that names another workflow is not published.")
    began_from: int | None = Field(
        None, ge=0, le=2**31 - 1, description="The version it was made from, 0 for a new one: a newer one is not lost."
    )


class Validated(Schema):
    is_valid: bool
    problems: list[Warned]


class Published(Schema):
    name: str
    version: int
    hash: str
    created: bool = Field(description="false: the current version says the same already.")
    warnings: list[Warned]


@router.get("", auth=Needs("read"), response=WorkflowList)
def list_workflows(
    request: HttpRequest,
    text: Annotated[str, Query(max_length=200)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str, Query(max_length=63)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = PAGE,
) -> HttpResponse:
    """The published workflows that you may see, by name."""
    caller = looker(request, WORKFLOWS)
    page = workflow_page(caller.user, text=text, tag=tag, after=after, limit=limit)
    told = {"workflows": [_row(row) for row in page.rows], "total": page.total, "after": page.after or None}
    return document(told)


@router.post("/validate", auth=Needs("read"), response=Validated)
def validate_workflow(request: HttpRequest, body: File) -> HttpResponse:
    """Every problem of a file. Nothing is stored."""
    caller = looker(request, WORKFLOWS)
    found = check_files([body.source.encode()], viewer=caller.user)[0]
    return document({"is_valid": found.is_valid, "problems": [one.as_json() for one in found.problems]})


@router.post("/publish", auth=Needs("publish"), response={200: Published, 201: Published})
def publish_workflow(request: HttpRequest, body: NewVersion) -> HttpResponse:
    """Make a file the current version of its workflow."""
    caller = caller_of(request)
    text = body.source.encode()
    definition, stored = publish_text(text, actor=caller.actor, name=body.name, began_from=body.began_from)
    told = {
        "name": definition.plan.name,
        "version": stored.version,
        "hash": definition.hash,
        "created": stored.created,
        "warnings": [one.as_json() for one in definition.warnings],
    }
    return document(told, status=201 if stored.created else 200)


@router.get("/{name}", auth=Needs("read"), response=WorkflowShown)
def show_workflow(request: HttpRequest, name: WorkflowName) -> HttpResponse:
    """One workflow: what it takes, and its versions."""
    row = seen_workflow(name, looker(request, WORKFLOWS).user)
    definition = version_definition(row)
    told = {
        "name": row.name,
        "title": row.title,
        "version": definition.version,
        "hash": definition.hash,
        "parameters": [dict(one) for one in definition.plan.params],
        "versions": [
            {
                "version": one.version,
                "hash": one.hash,
                "published_at": moment_text(one.published_at),
                "published_by": one.published_by,
                "is_current": one.is_current,
            }
            for one in versions_of(row)
        ],
    }
    return document(told)


@router.get("/{name}/versions/{version}", auth=Needs("read"), response=VersionShown)
def show_version(request: HttpRequest, name: WorkflowName, version: VersionNumber) -> HttpResponse:
    """One version as it was published."""
    row = seen_workflow(name, looker(request, WORKFLOWS).user)
    definition = version_definition(row, version)
    told = {
        "name": row.name,
        "version": version,
        "hash": definition.hash,
        "document": definition.plan.document,
        "source": definition.source,
    }
    return document(told)


def _row(row: WorkflowRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": row.title,
        "version": row.version,
        "published_at": moment_text(row.published_at),
        "published_by": row.published_by,
        "owner": row.about.owner,
        "tags": list(row.about.tags),
        "summary": row.about.summary,
    }
