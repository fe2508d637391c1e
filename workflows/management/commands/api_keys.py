"""``api_keys create|list|revoke``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.tables import table
from workflows.models.api_key import KeyScope
from workflows.operations.api_keys import USUAL_DAYS, create, revoke
from workflows.operations.people import shell_actor
from workflows.queries.api_keys import KeyRow, key_list
from workflows.queries.runs import moment_text


class Command(WaypostCommand):
    help = "Makes, lists and revokes keys with which programs use the API."

    def add_words(self, parser: CommandParser) -> None:
        actions = self.add_actions(parser)
        made = actions.add_parser("create", help="make a key and print it, once")
        made.add_argument("name", metavar="NAME", help="what the key is for")
        made.add_argument("--owner", required=True, metavar="USER", help="the user in whose name it acts")
        made.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            choices=KeyScope.values,
            default=[],
            help="what it may be used for; several times for several scopes (default: read)",
        )
        how_long = made.add_mutually_exclusive_group()
        how_long.add_argument(
            "--days", type=int, default=USUAL_DAYS, help=f"how long it is good (default: {USUAL_DAYS})"
        )
        how_long.add_argument("--never-expires", action="store_true", help="good until it is revoked")
        listed = actions.add_parser("list", help="the keys there are, never the keys themselves")
        listed.add_argument("--owner", metavar="USER", help="only the keys of this user")
        ended = actions.add_parser("revoke", help="end a key for ever")
        ended.add_argument("key", metavar="ID", help="as `api_keys list` shows it")
        for action in (made, listed, ended):
            action.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        code: int = getattr(self, f"do_{options['action']}")(**options)
        return code

    def do_create(self, *, name: str, owner: str, scopes: list[str], as_json: bool, **options: Any) -> int:
        made = create(
            owner=owner,
            name=name,
            scopes=scopes or [KeyScope.READ],
            days=None if options["never_expires"] else options["days"],
            actor=shell_actor(),
            now=timezone.now(),
        )
        if as_json:
            self.print_json({"id": made.key.public_id, "key": made.text})
        else:
            self.stderr.write("This is the only time that the key is shown.")
            self.stdout.write(made.text)
        return ExitCode.SUCCEEDED

    def do_list(self, *, owner: str | None, as_json: bool, **options: Any) -> int:
        rows = key_list(now=timezone.now(), owner=owner)
        if as_json:
            self.print_json([_document(row) for row in rows])
            return ExitCode.SUCCEEDED
        headings = ["ID", "NAME", "OWNER", "STATE", "EXPIRES", "LAST USED", "SCOPES"]
        cells = [
            [row.id, row.name, row.owner, row.state, _day(row.expires_at), _day(row.last_used_at), " ".join(row.scopes)]
            for row in rows
        ]
        self.print_lines(table(headings, cells) if rows else ["There are no keys."])
        return ExitCode.SUCCEEDED

    def do_revoke(self, *, key: str, as_json: bool, **options: Any) -> int:
        is_new = revoke(key, actor=shell_actor(), now=timezone.now())
        if as_json:
            self.print_json({"id": key, "new": is_new})
        else:
            self.stdout.write(f"{key} is revoked" if is_new else f"{key} was revoked already")
        return ExitCode.SUCCEEDED


def _day(moment: Any) -> str:
    return "–" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _document(row: KeyRow) -> dict[str, Any]:
    moments = ("created_at", "expires_at", "last_used_at", "revoked_at")
    return {
        "id": row.id,
        "name": row.name,
        "owner": row.owner,
        "scopes": list(row.scopes),
        "state": row.state,
        **{name: moment_text(getattr(row, name)) for name in moments},
    }
