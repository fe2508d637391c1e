"""Questions to people as lines of text, with the commands that answer them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from workflows.management.wording import one_line, placed, until, value_text
from workflows.statuses import InterruptKind, InterruptStatus

#: Open questions that are printed in full; further ones are counted.
MOST_QUESTIONS = 10
#: Lines and characters of one shown value.
MOST_LINES, LINE_WIDTH = 12, 200
#: Choices that get a command each.
MOST_CHOICES = 6
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
    "date": "date, as 2026-03-01",
    "datetime": "moment, as 2026-03-01T12:00:00Z",
}


def open_question_lines(questions: list[dict[str, Any]]) -> Iterator[str]:
    """What is asked, what is shown, who may answer until when, and the commands that do it."""
    for question in questions:
        yield f"  {place(question)}: {one_line(question['ask'], 400)}"
        yield from (f"      {line}" for line in shown_lines(question))
        yield f"      {'; '.join(conditions(question))}"
        yield from (f"      `{command}`" for command in commands(question))


def place(question: Mapping[str, Any]) -> str:
    """``v3 each[2]/ok (c)``"""
    return f"{question['id']} {placed(question['path'], question['item'])}"


def shown_lines(question: Mapping[str, Any]) -> Iterator[str]:
    """The values that are shown with a question; long ones are cut."""
    for entry in question["show"] or ():
        lines = value_text(entry["value"]).splitlines() or [""]
        if len(lines) == 1:
            yield f"{entry['name']}: {one_line(lines[0], LINE_WIDTH)}"
            continue
        yield f"{entry['name']}:"
        yield from (f"  {_kept_indent(line)}" for line in lines[:MOST_LINES])
        if len(lines) > MOST_LINES:
            yield f"  … {len(lines) - MOST_LINES} more lines"


def _kept_indent(line: str) -> str:
    stripped = line.lstrip(" ")
    return " " * min(len(line) - len(stripped), 40) + one_line(stripped, LINE_WIDTH)


def conditions(question: Mapping[str, Any]) -> Iterator[str]:
    """Who may answer, how many are needed, and until when."""
    people = [*question["users"], *(f"the group {group}" for group in question["groups"])]
    yield f"for {', '.join(people)}" if people else "for everyone"
    if question["not_by"]:
        yield f"not for {', '.join(question['not_by'])}"
    if question["quorum"] > 1:
        given = sum(1 for vote in question["votes"] if vote["decision"] == "approved")
        by = ", ".join(vote["by"] for vote in question["votes"])
        yield f"{given} of {question['quorum']} approvals" + (f" (by {by})" if by else "")
    if question["form"]:
        yield f"fields: {', '.join(field_text(field) for field in question['form'])}"
    if question["deadline"] is not None:
        yield f"until {until(int(datetime.fromisoformat(question['deadline']).timestamp() * 1000))}"


def field_text(field: Mapping[str, Any]) -> str:
    """
    >>> field_text({"name": "size", "type": "integer", "default": 3})
    'size (whole number, default 3)'
    """
    told = [" | ".join(str(value) for value in field["enum"])] if "enum" in field else []
    told = told or [_TYPES.get(field.get("type", "string"), str(field.get("type")))]
    if "default" in field:
        told.append(f"default {one_line(value_text(field['default']), 40)}")
    elif field.get("optional"):
        told.append("optional")
    return f"{field['name']} ({', '.join(told)})"


def commands(question: Mapping[str, Any]) -> Iterator[str]:
    """The commands that answer a question, one for each decision; fields that must be given are in them."""
    start = f"python manage.py runs answer {question['run']} {question['id']}"
    needed = [
        f" --field {field['name']}=…"
        for field in question["form"]
        if "default" not in field and not field.get("optional")
    ]
    end = "".join(needed) + _person(question)
    choices = [choice["name"] for choice in question["choices"]]
    if question["kind"] == InterruptKind.APPROVAL:
        yield f"{start} --approve{end}"
        yield f"{start} --reject{_person(question)}"
    elif len(choices) > MOST_CHOICES:
        yield f"{start} --choice {'|'.join(choices)}{end}"
    elif choices:
        yield from (f"{start} --choice {name}{end}" for name in choices)
    else:
        yield f"{start}{end}"


def _person(question: Mapping[str, Any]) -> str:
    """Who answers has to be said where not everybody may."""
    said = {vote["by"] for vote in question["votes"]}
    named = [user for user in question["users"] if user not in said and user not in question["not_by"]]
    if named:
        return f" --as {shlex.quote(named[0])}"
    return " --as …" if question["users"] or question["groups"] or question["not_by"] else ""


def history_lines(questions: list[dict[str, Any]]) -> Iterator[str]:
    """Questions that are over, with what was said."""
    for question in questions:
        if question["status"] == InterruptStatus.OPEN:
            continue
        yield f"  {place(question)}: {one_line(question['ask'], 200)}"
        is_answered = question["status"] == InterruptStatus.ANSWERED
        if is_answered:
            comment = _comment(question["votes"][-1:]) if question["quorum"] == 1 else ""
            yield f"      {question['decision']} by {question['answered_by']} at {question['answered_at']}{comment}"
        else:
            yield f"      {question['status']}"
        if question["quorum"] > 1:
            for vote in question["votes"]:
                yield f"      {vote['by']} {vote['decision']} at {vote['at']}{_comment([vote])}"


def _comment(votes: list[dict[str, Any]]) -> str:
    return "".join(f": {one_line(vote['comment'], 200)}" for vote in votes if vote["comment"])
