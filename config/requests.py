"""The id of a request: on its answer and on every log record between."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from workflows.log_context import marked

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)


class RequestId:
    """Middleware: takes the id that a proxy gave, if it is one that may stand in a log, else draws one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _WELL_FORMED.fullmatch(given) else uuid.uuid4().hex
        with marked(request=request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response
