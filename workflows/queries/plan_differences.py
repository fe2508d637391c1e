"""What two versions of a workflow have different: as lines of their files, and in words about the frozen plans.

Pure: no database.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

#: Lines around a change.
CONTEXT = 3
#: Lines of a file beyond which a difference in lines is not made: it could take minutes.
MOST_LINES = 12_000
_MOST_TEXT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """``mark`` is "+", "−", " " or "…" for lines that are left out; numbers of lines are None where there is none."""

    mark: str
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference of two plans. ``what`` is added, removed, changed or moved."""

    where: str
    what: str
    before: str = ""
    after: str = ""


def line_differences(old: str, new: str, *, context: int = CONTEXT) -> list[DiffLine] | None:
    """The lines that differ with those around them; empty when there are none, None when the files are too long."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_LINES:
        return None
    found: list[DiffLine] = []
    reached = 0
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(context):
        if group[0][1] > reached:
            found.append(DiffLine(mark="…", text=f"{group[0][1] - reached} lines"))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                found += [
                    DiffLine(mark=" ", text=before[old_from + step], old=old_from + step + 1, new=new_from + step + 1)
                    for step in range(old_to - old_from)
                ]
                continue
            found += [DiffLine(mark="−", text=before[at], old=at + 1) for at in range(old_from, old_to)]
            found += [DiffLine(mark="+", text=after[at], new=at + 1) for at in range(new_from, new_to)]
        reached = group[-1][2]
    if found and reached < len(before):
        found.append(DiffLine(mark="…", text=f"{len(before) - reached} lines"))
    return found


def plan_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """What differs between two canonical documents, in the order of the newer one."""
    return list(_members("", old, new))


def _members(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    names = [*new, *(name for name in old if name not in new)]
    for name in names:
        here = f"{where}.{name}" if where else name
        if name not in old:
            yield Change(where=here, what="added", after=_told(new[name]))
        elif name not in new:
            yield Change(where=here, what="removed", before=_told(old[name]))
        else:
            yield from _values(here, old[name], new[name])


def _values(where: str, old: Any, new: Any) -> Iterator[Change]:
    if old == new and type(old) is type(new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _members(where, old, new)
    elif (key := _key_of(old)) and key == _key_of(new):
        yield from _named(where, key, old, new)
    else:
        yield Change(where=where, what="changed", before=_told(old), after=_told(new))


def _key_of(value: Any) -> str:
    """By which member the objects of a list are known: steps by ``id``, parameters and branches by ``name``."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for key in ("id", "name"):
            names = [item.get(key) for item in value]
            if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
                return key
    return ""


def _named(where: str, key: str, old: list[Mapping[str, Any]], new: list[Mapping[str, Any]]) -> Iterator[Change]:
    before = {str(item[key]): item for item in old}
    after = {str(item[key]): item for item in new}
    for name, item in after.items():
        if name not in before:
            yield Change(where=f"{where}.{name}", what="added", after=_told(item))
        else:
            yield from _members(f"{where}.{name}", before[name], item)
    for name, item in before.items():
        if name not in after:
            yield Change(where=f"{where}.{name}", what="removed", before=_told(item))
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    if kept_before != kept_after:
        yield Change(where=where, what="moved", before=", ".join(kept_before), after=", ".join(kept_after))


def _told(value: Any) -> str:
    if isinstance(value, Mapping) and "kind" in value:
        return f"a {value['kind']} step"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    first, _, rest = text.partition("\n")
    text = f"{first} …" if rest.strip() else first
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
