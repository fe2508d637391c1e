"""Cron expressions of five fields: what is wrong with one, in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from croniter import CroniterBadDateError, croniter

from workflows.definitions.timetables import MOST_YEARS

_TO = "\N{EN DASH}"
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_ANY_YEAR = datetime(2000, 1, 1)  # noqa: DTZ001  # a wall clock
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    specials: str = ""

    def number(self, text: str) -> int | None:
        """The value of a number or a name; None for anything else."""
        if re.fullmatch("[0-9]+", text, re.ASCII):
            return int(text)
        word = text.upper()
        return self.words.index(word) + self.least if word in self.words else None


_FIELDS = (
    _Field(name="minute", least=0, most=59),
    _Field(name="hour", least=0, most=23),
    _Field(name="day", least=1, most=31, specials="L"),
    _Field(name="month", least=1, most=12, words=_MONTHS),
    _Field(name="weekday", least=0, most=7, words=_DAYS, specials="#L"),
)


def cron_trouble(expression: str) -> str:
    """Why ``expression`` is not a cron expression of five fields; "" when it is one."""
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        return f"it has {len(parts)} field{'' if len(parts) == 1 else 's'}, not 5"
    for field, text in zip(_FIELDS, parts, strict=True):
        for item in text.split(","):
            if reason := _item_trouble(field, item):
                return reason
    return _never_or_unknown(expression)


def _item_trouble(field: _Field, item: str) -> str:
    values, slash, step = item.partition("/")
    if slash and (not step.isdigit() or int(step) == 0):
        return f'the step "{step}" of the {field.name} is not a positive number'
    if values == "*" or (field.specials and re.search(f"[{field.specials}]", values, re.IGNORECASE)):
        return ""
    bounds = values.split("-")
    if len(bounds) > 2:
        return f'{field.name} "{item}" cannot be read'
    numbers: list[int] = []
    for bound in bounds:
        number = field.number(bound)
        if number is None:
            return _unreadable(field, bound)
        if not field.least <= number <= field.most:
            return f"{field.name} {number} is out of range ({field.least}{_TO}{field.most})"
        numbers.append(number)
    if len(numbers) == 2 and numbers[0] > numbers[1] and not (field.name == "weekday" and numbers[1] == 0):
        return f"the {field.name}s {values} run backwards"
    return ""


def _unreadable(field: _Field, text: str) -> str:
    names = f" or a name ({field.words[0]}{_TO}{field.words[-1]})" if field.words else ""
    return f'{field.name} "{text}" is not a number{names}'


def _never_or_unknown(expression: str) -> str:
    if not croniter.is_valid(expression):
        return "it cannot be read"
    _, _, day, month, weekday = expression.split()
    if weekday == "*" and _is_impossible(day, month):
        return f"day {day} does not exist in month {month}"
    return "" if comes_ever(expression) else "no such day ever comes"


def comes_ever(expression: str) -> bool:
    """Whether any day fits an expression that can be read: 30 February never comes."""
    try:
        croniter(expression, _ANY_YEAR, max_years_between_matches=MOST_YEARS).get_next(datetime)
    except CroniterBadDateError:
        return False
    return True


def _is_impossible(day: str, month: str) -> bool:
    longest = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    number = _FIELDS[3].number(month)
    return day.isdigit() and number is not None and int(day) > longest[number - 1]
