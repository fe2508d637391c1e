"""Words of the templates that draw a plan: ``{% load graph %}``.

``{% include "parts/graph.html" with graph=graph states=states anchor="#step-" %}`` draws a ``queries.graph.Graph``;
``states`` maps paths in the plan to ``NodeState`` and may be left out, ``anchor`` is put before the id of a step to
make a link where the state has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from workflows.pages import icons
from workflows.queries.graph import FAMILIES, Drawn, Edge, Graph, Node, NodeState, drawn

register = template.Library()

#: The inside of a 16 × 16 picture for each kind of step.
_KINDS = {
    "shell": '<path d="m3 4.5 3.5 3.5L3 11.5M8.5 12H13"/>',
    "task": '<path d="M10.5 2.5H9.6c-1.4 0-2 .8-2.1 2.1L7 11.4c-.1 1.3-.7 2.1-2.1 2.1H4M4.8 6.5h5.4"/>',
    "http": '<circle cx="8" cy="8" r="6"/><path d="M2 8h12M8 2c2.3 2 2.3 10 0 12M8 2c-2.3 2-2.3 10 0 12"/>',
    "llm": '<path d="M8 1.8 9.5 6.5 14.2 8 9.5 9.5 8 14.2 6.5 9.5 1.8 8l4.7-1.5z"/>',
    "agent": '<rect x="2.5" y="5.5" width="11" height="7.5" rx="2"/><path d="M8 5.5V2.8M5.8 9v.6M10.2 9v.6"/>',
    "verify": '<path d="M8 1.6 13.4 4v3.7c0 3-2.2 5.5-5.4 6.7-3.2-1.2-5.4-3.7-5.4-6.7V4z"/>'
    '<path d="m5.6 7.9 1.7 1.7 3.1-3.4"/>',
    "assign": '<path d="M3 6h10M3 10h10"/>',
    "condition": '<path d="M8 1.8 14.2 8 8 14.2 1.8 8z"/>',
    "approval": '<circle cx="6.2" cy="4.8" r="2.5"/>'
    '<path d="M1.8 13.5c.4-3 2-4.6 4.4-4.6 1 0 1.8.3 2.5.7M9.6 12l1.6 1.6 3-3.3"/>',
    "question": '<path d="M2 3h12v8H8.5L5.5 13.8V11H2z"/><path d="M6.6 6a1.5 1.5 0 1 1 1.5 1.6v.4"/>',
    "wait": '<circle cx="8" cy="8" r="6"/><path d="M8 4.6V8l2.3 1.5"/>',
    "map": '<rect x="5" y="2" width="9" height="7" rx="1.2"/><path d="M3.4 5.2H2V14h9v-2.2"/>',
    "parallel": '<path d="M3.5 2.5v11M8 2.5v11M12.5 2.5v11"/>',
    "block": '<rect x="2" y="2.5" width="12" height="11" rx="1.5"/><path d="M2 6h12"/>',
    "workflow": '<rect x="1.75" y="2" width="5" height="4" rx="1"/>'
    '<rect x="9.25" y="10" width="5" height="4" rx="1"/><path d="M4.25 6v6h5"/>',
    "external": '<path d="M9 2.5h4.5V7M13.5 2.5 7.5 8.5M6.5 3H2.5v10.5H13V9.5"/>',
    "langgraph": '<circle cx="3.7" cy="8" r="1.8"/><circle cx="12" cy="3.8" r="1.8"/>'
    '<circle cx="12" cy="12.2" r="1.8"/><path d="m5.3 7.2 5-2.6M5.3 8.8l5 2.6"/>',
    "end": '<circle cx="8" cy="8" r="6"/>'
    '<rect x="5.7" y="5.7" width="4.6" height="4.6" fill="currentColor" stroke="none"/>',
}
_UNKNOWN = '<circle cx="8" cy="8" r="6"/>'
#: Pictures of the states of a node.
_STATES = {"ok": "succeeded", "people": "question", "stopped": "abandoned"}
_WORDS = {
    "ok": "succeeded",
    "people": "waits for people",
    "stopped": "stopped",
    "reached": "reached",
}


@register.simple_tag
def drawn_with(graph: Graph, states: Mapping[str, NodeState] | str | None) -> Drawn:
    """The graph beside the states of a run; anything but a mapping stands for none."""
    return drawn(graph, states if isinstance(states, Mapping) else None)


@register.simple_tag
def kind_icon(kind: str) -> SafeString:
    """A picture of a kind of step, in the colour of the text."""
    return format_html(
        '<svg class="kind-icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" '
        'fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">{}</svg>',
        mark_safe(_KINDS.get(kind, _UNKNOWN)),  # noqa: S308 # one of the shapes above
    )


@register.filter
def state_icon(state: NodeState) -> SafeString:
    if state.status == "reached":
        return SafeString("")
    return icons.picture(_STATES.get(state.status, state.status))


@register.filter
def state_words(state: NodeState | None) -> str:
    """The state of a node in words, as a title and for screen readers."""
    if state is None:
        return ""
    words = [_WORDS.get(state.status, state.status)]
    if state.total is not None:
        words.append(f"{state.done or 0} of {state.total} items done")
    if state.visits > 1:
        words.append(f"entered {state.visits} times")
    if state.words:
        words.append(state.words)
    return ", ".join(words)


@register.filter
def right_note(state: NodeState | None) -> str:
    """What stands at the right end of the second line of a node: items or rounds."""
    if state is None:
        return ""
    if state.total is not None:
        return f"{state.done or 0}/{state.total}"
    return f"×{state.visits}" if state.visits > 1 else ""


@register.filter
def plus(number: int, other: int) -> int:
    return number + other


@register.filter
def node_class(node: Node, state: NodeState | None) -> str:
    words = ["graph-node", f"family-{node.family}", f"kind-{node.kind}"]
    if node.is_group:
        words.append("is-group")
        words.append("is-even" if node.depth % 2 else "is-odd")
    if state is not None and state.status.isidentifier():
        words.append(f"state-{state.status}")
    return " ".join(words)


@register.filter
def edge_class(edge: Edge, taken: int) -> str:
    words = ["graph-edge"]
    words += ["is-back"] if edge.is_back else []
    words += [] if edge.is_main else ["is-side"]
    words += ["is-taken"] if taken else []
    return " ".join(words)


@register.simple_tag
def href_of(node: Node, anchor: Any) -> str:
    return f"{anchor}{node.step}" if isinstance(anchor, str) and anchor else ""


@register.filter
def words_of_node(graph: Graph, path: str) -> str:
    """Where a step goes on, in words."""
    return graph.words.get(path, "")


@register.filter
def family_of(kind: str) -> str:
    """The colour family of a kind of step."""
    return FAMILIES.get(kind, "flow")
