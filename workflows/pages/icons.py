"""Small pictures, drawn here so that they need no request and take the colour of the text beside them."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

_RING = '<circle cx="8" cy="8" r="6.25"/>'
_DISC = '<circle cx="8" cy="8" r="7" fill="currentColor" stroke="none"/>'
_ON_DISC = 'class="icon-cut"'

#: The inside of a 16 × 16 picture by name; strokes take the colour of the text.
_SHAPES: dict[str, str] = {
    # statuses of runs, visits and attempts
    "queued": '<circle cx="8" cy="8" r="6.25" stroke-dasharray="2.4 2.5"/>',
    "running": f'{_RING}<path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" stroke="none"/>',
    "waiting": f'{_RING}<path d="M8 4.5V8l2.4 1.6"/>',
    "paused": f'{_RING}<path d="M6.4 5.6v4.8M9.6 5.6v4.8"/>',
    "blocked": '<path d="M8 1.9 15 14H1z"/><path d="M8 6.2v3.6M8 11.8v.2"/>',
    "succeeded": f'{_DISC}<path d="m4.9 8.3 2.2 2.2 4-4.6" {_ON_DISC}/>',
    "failed": f'{_DISC}<path d="m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8" {_ON_DISC}/>',
    "cancelled": f'{_RING}<path d="m3.7 12.3 8.6-8.6"/>',
    "abandoned": f'{_RING}<path d="M5 8h6"/>',
    "interrupted": '<path d="M8.8 1.5 3.5 9h3.7l-.8 5.5L11.9 7H8z"/>',
    "skipped": '<path d="m3 4 5 4-5 4zM12 4v8"/>',
    "refused": f'{_RING}<path d="M4.6 8h6.8"/>',
    "open": f'{_RING}<circle cx="8" cy="8" r="2" fill="currentColor" stroke="none"/>',
    "unknown": f'{_RING}<path d="M6.3 6.2A1.8 1.8 0 1 1 8 8.2v.9M8 11.3v.2"/>',
    # places and actions
    "home": '<path d="M2 7.4 8 2l6 5.4V14H9.8v-4H6.2v4H2z"/>',
    "workflows": '<rect x="1.75" y="2" width="5" height="4" rx="1"/><rect x="9.25" y="10" width="5" height="4" rx="1"/>'
    '<path d="M4.25 6v6h5"/>',
    "runs": '<path d="M2 3.5h12M2 8h12M2 12.5h7"/>',
    "inbox": '<path d="M2 9.5 4 3h8l2 6.5V13H2z"/><path d="M2 9.5h3.5L6.6 11h2.8l1.1-1.5H14"/>',
    "audit": '<path d="M8 1.5 13.5 4v3.6c0 3.2-2.2 5.6-5.5 6.9-3.3-1.3-5.5-3.7-5.5-6.9V4z"/>'
    '<path d="m5.6 7.8 1.8 1.8 3-3.4"/>',
    "admin": '<path d="M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7"/><circle cx="11" cy="4.5" r="1.75"/>'
    '<circle cx="5" cy="11.5" r="1.75"/>',
    "person": '<circle cx="8" cy="5" r="2.75"/><path d="M2.5 14c.6-3 2.6-4.5 5.5-4.5s4.9 1.5 5.5 4.5"/>',
    "search": '<circle cx="7" cy="7" r="4.75"/><path d="m10.5 10.5 3.75 3.75"/>',
    "start": '<path d="M4.5 2.5 13 8l-8.5 5.5z"/>',
    "next": '<path d="m6 3 5 5-5 5"/>',
    "previous": '<path d="m10 3-5 5 5 5"/>',
    "down": '<path d="m3 6 5 5 5-5"/>',
    "check": '<path d="m2.5 8.5 3.5 3.5 7.5-8"/>',
    "close": '<path d="m3.5 3.5 9 9m0-9-9 9"/>',
    "copy": '<rect x="5.5" y="5.5" width="8.5" height="8.5" rx="1.5"/><path d="M3 10.5H2V2h8.5v1"/>',
    "link": '<path d="M6.5 9.5a3 3 0 0 0 4.2.3l2.4-2.4a3 3 0 0 0-4.2-4.2L8 4"/>'
    '<path d="M9.5 6.5a3 3 0 0 0-4.2-.3L2.9 8.6a3 3 0 0 0 4.2 4.2l.9-.8"/>',
    "filter": '<path d="M2 3h12L9.5 8.5V13l-3-1.5v-3z"/>',
    "question": '<path d="M2 3h12v8H8.5L5 14v-3H2z"/>',
    "theme": f'{_RING}<path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" stroke="none"/>',
    "warning": '<path d="M8 1.9 15 14H1z"/><path d="M8 6.2v3.6M8 11.8v.2"/>',
    "worker": '<rect x="2" y="3" width="12" height="4" rx="1"/><rect x="2" y="9" width="12" height="4" rx="1"/>'
    '<path d="M4.5 5h.2M4.5 11h.2"/>',
    "clock": f'{_RING}<path d="M8 4.5V8l2.4 1.6"/>',
    "fork": '<circle cx="4" cy="3.5" r="1.6"/><circle cx="12" cy="3.5" r="1.6"/><circle cx="8" cy="12.5" r="1.6"/>'
    '<path d="M4 5.1C4 8.5 8 7.5 8 10.9 8 7.5 12 8.5 12 5.1"/>',
    "download": '<path d="M8 2v8m-3.5-3L8 10.5 11.5 7M2.5 13.5h11"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "menu": '<path d="M2 4h12M2 8h12M2 12h12"/>',
}


def picture(name: str) -> SafeString:
    """An inline picture that screen readers pass over; an unknown name is a question mark."""
    shape = _SHAPES.get(name, _SHAPES["unknown"])
    return format_html(
        '<svg class="icon icon-{}" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" '
        'fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">{}</svg>',
        name if name in _SHAPES else "unknown",
        mark_safe(shape),  # noqa: S308 # one of the shapes above
    )
