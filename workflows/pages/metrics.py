"""``/metrics``: what an installation measures of itself, in the text format of Prometheus (promise OBS.4).

For a program that sends ``METRICS_TOKEN`` as a bearer token, and for superusers that are logged in: names of all
workflows are in it. For everybody else there is nothing at this address.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import django.db
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseNotFound
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache

from workflows.queries.metrics import Measured, measure

logger = logging.getLogger(__name__)


@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        return HttpResponseNotFound("Not found.\n", content_type="text/plain")
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(("GET", "HEAD"))
    # slow to import
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    try:
        registry.register(_Collector(measure()))
    except django.db.Error as error:
        logger.warning("The metrics could not be read: %s", error)
        return HttpResponse("The database cannot be read.\n", status=503, content_type="text/plain")
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    wanted = settings.METRICS_TOKEN
    if wanted and scheme.lower() == "bearer" and constant_time_compare(token.strip(), wanted):
        return True
    user: Any = request.user
    return bool(user.is_active and user.is_superuser)


class _Collector:
    """What was measured, in the words of the client library."""

    def __init__(self, measured: list[Measured]) -> None:
        self._measured = measured

    def collect(self) -> Iterator[Any]:
        # slow to import
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for one in self._measured:
            metric = one.metric
            kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            for labels, value in one.samples:
                family.add_metric(labels, value)
            yield family
