"""Moments as people write them on a command line."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from workflows.definitions.durations import parse_duration


def later_moment(text: str) -> datetime:
    """A date and a time, in the time zone of the site unless it names one, or how long from now (``2h``)."""
    try:
        moment = parse_datetime(text)
        if moment is not None:
            return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
        return timezone.now() + timedelta(milliseconds=parse_duration(text))
    except (ValueError, OverflowError):
        message = f"{text!r} is no moment; examples: 2026-01-31T09:30, 2026-01-31T09:30+01:00, 2h"
        raise argparse.ArgumentTypeError(message) from None
