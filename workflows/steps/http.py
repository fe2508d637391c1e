"""``http``: makes one HTTP request (docs/format.md, ask_service).

A body that is empty is null. A status that the file names is an outcome whatever its body says: from 400 on, a body
that cannot be parsed is null then, and is not checked against the step's schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from workflows.engine.contract import Effect, EffectContext, Entered, Entry, Result
from workflows.engine.results import failure_result, output_result, stopped_result
from workflows.engine.secrets import AttemptSecrets, Masker, SecretMissing
from workflows.expressions import BadExpression, Value
from workflows.jsonvalue import NotStorable, canonical, text_of
from workflows.statuses import Access
from workflows.steps.entering import effect, kind_of_value
from workflows.steps.http_address import shown_address, written_address
from workflows.steps.http_body import BODY_LIMIT, UnusableBody, parse_body, quoted, retry_after_ms
from workflows.steps.http_messages import SAFE_METHODS, Answer, Header, NoAnswer, Request

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_FAULT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: Say how the message is delivered, which is the client's business; a wrong one would let two messages look like one.
_DELIVERY = frozenset({"connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade"})
#: Identify nobody, so a redirect to another origin takes them along.
_TRAVELLING = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})


class HttpKind:
    name = "http"

    def enter(self, entry: Entry) -> Entered:
        try:
            return self._effect(entry)
        except NotStorable as fault:
            raise BadExpression(fault.message) from None

    def _effect(self, entry: Entry) -> Effect:
        options = entry.step.options
        method = options["method"]
        headers = _headers(entry)
        inputs: dict[str, Any] = {
            "method": method,
            "url": written_address(entry, options["url"], _mapping(entry, options["query"], "query")),
            "headers": headers,
        }
        if options["json"] is not None:
            inputs["body"] = canonical(entry.evaluate(options["json"]))
            _add(headers, "Content-Type", "application/json")
        elif options["body"] is not None:
            inputs["body"] = _text(entry.evaluate(options["body"]), '"body"')
            _add(headers, "Content-Type", "text/plain; charset=utf-8")
        return effect(entry, inputs, access=Access.READ if method in SAFE_METHODS else Access.WRITE)

    def execute(self, context: EffectContext) -> Result:
        from workflows.steps.http_client import send  # slow to import

        secrets = _Secrets(context)
        lines: list[str] = []
        try:
            request = _request(context, secrets)
            answer = send(
                request, stop=context.stop, stop_reason=context.stop_reason, deadline=context.deadline, log=lines
            )
        except SecretMissing as error:
            return failure_result("secret_missing", str(error))
        except NoAnswer as error:
            log = _log(lines, secrets.masker())
            if error.stopped is not None:
                return stopped_result(error.stopped, log=log)
            return failure_result(error.code, secrets.masker().text(str(error)), log=log)
        return _result(context, answer, secrets.masker(), lines)


class _Secrets:
    """The secrets of one request, as headers carry them."""

    def __init__(self, context: EffectContext) -> None:
        self._secrets = AttemptSecrets(context.secrets)
        self._stripped: set[str] = set()

    def read(self, name: str) -> str:
        """The value without the line break that files of secrets end with. Raises :class:`SecretMissing`."""
        value = self._secrets.read(name).strip(" \t\r\n")
        if not value:
            raise SecretMissing(name)
        if _HEADER_FAULT.search(value):
            raise SecretMissing(name, "contains a character that no header can hold")
        self._stripped.add(value)
        return value

    def masker(self) -> Masker:
        return Masker(self._stripped)


# ---- entering --------------------------------------------------------------------------------------------------------


def _headers(entry: Entry) -> dict[str, Any]:
    """Headers as text; ``{"secret": name}`` where a secret goes, nothing where the value is null."""
    options = entry.step.options
    headers: dict[str, Any] = {}
    _check_name(options["idempotency_header"])
    for name, written in options["headers"].items():
        _check_name(name)
        if not isinstance(written, Value):
            _add(headers, name, dict(written))
            continue
        value = entry.evaluate(written)
        if value is None:
            continue
        text = _text(value, f'The header "{name}"').strip(" \t")
        if _HEADER_FAULT.search(text):
            raise BadExpression(f'The header "{name}" contains a line break or another character it cannot hold.')
        _add(headers, name, text)
    if options["auth"] is not None and _has(headers, "Authorization"):
        raise BadExpression('The step has both "auth" and a header "Authorization"; keep one of them.')
    return headers


def _check_name(name: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise BadExpression(f'"{name}" is not a name that a header can have.')
    if name.lower() in _DELIVERY:
        raise BadExpression(f'The header "{name}" is set by the request itself and cannot be written.')


def _has(headers: Mapping[str, Any], name: str) -> bool:
    return name.lower() in {known.lower() for known in headers}


def _add(headers: dict[str, Any], name: str, value: Any) -> None:
    """What the file says comes first."""
    if not _has(headers, name):
        headers[name] = value


def _mapping(entry: Entry, written: Value | None, key: str) -> Mapping[str, Any]:
    value = {} if written is None else entry.evaluate(written)
    if not isinstance(value, dict):
        raise BadExpression(f'"{key}" must be a mapping, but it is {kind_of_value(value)}.')
    return value


def _text(value: Any, what: str) -> str:
    if value is None:
        raise BadExpression(f"{what} is null, which has no text.")
    return text_of(value)


# ---- executing -------------------------------------------------------------------------------------------------------


def _request(context: EffectContext, secrets: _Secrets) -> Request:
    inputs, options = context.inputs, context.step.options
    body = inputs.get("body")
    return Request(
        method=inputs["method"],
        address=inputs["url"],
        headers=_sent_headers(context, secrets),
        content=None if body is None else body.encode(),
        expected=frozenset(options["statuses"]),
        body_limit=0 if options["parse"] == "none" else BODY_LIMIT,
    )


def _sent_headers(context: EffectContext, secrets: _Secrets) -> tuple[Header, ...]:
    options = context.step.options
    headers = dict(context.inputs["headers"])
    if options["auth"] is not None:
        _add(headers, "Authorization", f"Bearer {secrets.read(options['auth']['secret'])}")
    if context.inputs["method"] not in SAFE_METHODS:
        _add(headers, options["idempotency_header"], context.dispatch_id)
    _add(headers, "User-Agent", "Waypost")
    _add(headers, "Accept", "application/json, */*;q=0.5" if options["parse"] == "json" else "*/*")
    _add(headers, "Accept-Encoding", "identity")
    return tuple(
        Header(
            name=name,
            value=(secrets.read(value["secret"]) if isinstance(value, Mapping) else value).encode(),
            travels=name.lower() in _TRAVELLING and not isinstance(value, Mapping),
        )
        for name, value in headers.items()
    )


def _log(lines: list[str], masker: Masker) -> str:
    return "".join(f"{masker.text(line)}\n" for line in lines)


def _result(context: EffectContext, answer: Answer, masker: Masker, lines: list[str]) -> Result:
    options = context.step.options
    named = options["statuses"].get(answer.status)
    log = _log(lines, masker)
    if named is None and answer.status >= HTTPStatus.BAD_REQUEST:
        return _failure(context, answer, masker, log)
    is_error = answer.status >= HTTPStatus.BAD_REQUEST
    try:
        value, repaired = _output(answer, options["parse"], masker)
    except UnusableBody as error:
        if not is_error:
            return failure_result(error.code, str(error), log=log)
        value, repaired, log = None, False, f"{log}{error}\n"
    schema = None if is_error or context.inputs["method"] == "HEAD" else options["schema"]
    return output_result(value, outcome=named or "ok", schema=schema, log=log, repaired=repaired)


def _output(answer: Answer, parse: str, masker: Masker) -> tuple[Any, bool]:
    if answer.fault:
        raise UnusableBody("invalid_output", f"The response cannot be read: {answer.fault}.")
    content_type = answer.headers.get("content-type", "")
    return parse_body(answer.body, whole=answer.whole, content_type=content_type, parse=parse, masker=masker)


def _failure(context: EffectContext, answer: Answer, masker: Masker, log: str) -> Result:
    """A status from 400 on that the file does not name: what was asked, the status, and how the body begins."""
    asked = masker.text(f"{context.inputs['method']} {shown_address(answer.address)}")
    content_type = answer.headers.get("content-type", "")
    start = "" if answer.fault else quoted(answer.body, whole=answer.whole, content_type=content_type, masker=masker)
    wait_ms = retry_after_ms(answer.headers.get("retry-after"), answer.headers.get("date"))
    message = f"{asked} was answered with {_status_text(answer.status)}"
    message += f": {start}" if start else "."
    if wait_ms is not None:
        message += f" (The server asks to wait {wait_ms / 1000:g} s.)"
    code = "rate_limited" if answer.status == HTTPStatus.TOO_MANY_REQUESTS else "http_status"
    return replace(failure_result(code, message, log=log), retry_after_ms=wait_ms)


def _status_text(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
