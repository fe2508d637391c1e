"""The words in the picture of a plan, and how wide they are."""

from __future__ import annotations

import re
import unicodedata

from workflows.definitions.plan import Plan, StepPlan

_LEAST_WIDTH, _MOST_WIDTH = 156, 236
#: What a node has beside its title.
ICON_AND_MARK = 66


def title_of(step: StepPlan) -> str:
    """The title as it is written; expressions in it stay, without the spaces around them."""
    source = step.title.source
    return re.sub(r"\$\{\s*(.*?)\s*\}", r"${\1}", source) if isinstance(source, str) else step.id


def words_of_note(step: StepPlan) -> str:
    options = step.options
    match step.kind:
        case "map":
            return f"{options['concurrency']} at a time"
        case "workflow":
            return str(options["ref"])
        case "task":
            return str(options["call"])
        case "block":
            return str(options["use"])
        case "end":
            return str(options["status"])
    return ""


def named(step: StepPlan, target: str, names: list[str]) -> list[str]:
    """Where others share the way of the main outcome it is named too."""
    main = step.main_outcome
    shares = bool(names) and main is not None and main not in names and step.routes.get(main) == target
    return [main, *names] if shares and main is not None else names


def second_line(step: StepPlan) -> str:
    note = words_of_note(step)
    if step.kind == "end":
        return f"{step.id} · {note}"
    return f"{step.id} · {step.kind}" + (f" · {note}" if note else "")


def node_width(plan: Plan) -> int:
    widest = max((text_width(title_of(step), 14) for step in plan.steps.values()), default=0)
    below = max((text_width(second_line(step), 11) - 6 for step in plan.steps.values()), default=0)
    return max(_LEAST_WIDTH, min(_MOST_WIDTH, max(widest, below) + ICON_AND_MARK)) // 2 * 2


def text_width(text: str, size: int) -> int:
    """About how wide a text is in pixels; the fonts of readers differ."""
    units = sum(
        1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.34 if letter in "iljtf.,:;'|! ()[]" else 0.57
        for letter in text[:200]
    )
    return round(units * size)


def cut_to_width(text: str, width: int, size: int) -> str:
    if text_width(text, size) <= width:
        return text
    kept = text[:200]
    while kept and text_width(kept + "…", size) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"
