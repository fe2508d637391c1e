"""Refusals: the closed list of operations that are refused, by their dotted codes, and the exit codes of commands.

Codes are part of the API. Each has its sentence, a hint, its HTTP status and its exit code.
"""

from __future__ import annotations

from dataclasses import dataclass


class ExitCode:
    """Exit codes of every command."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    PARKED_FOR_PEOPLE = 3
    CANCELLED = 4
    BLOCKED = 5
    LEFT_RUNNING = 6
    HELD = 75


@dataclass(frozen=True, slots=True)
class RefusalRule:
    sentence: str
    hint: str = ""
    http_status: int = 409
    exit_code: int = ExitCode.FAILED


REFUSALS: dict[str, RefusalRule] = {
    "access.denied": RefusalRule(
        "{actor} may not {what}.", "Whoever manages users and groups can allow it (permission `{permission}`).", 403
    ),
    "attempt.conflict": RefusalRule("Attempt {attempt} is already settled with another result."),
    "attempt.input_changed": RefusalRule(
        "The inputs of {visit} differ from those of its interrupted attempt, so it is not repeated under the same key.",
        "Reconcile the step: say what happened to the interrupted attempt.",
        exit_code=ExitCode.BLOCKED,
    ),
    "attempt.not_interrupted": RefusalRule(
        "{visit} is not waiting to be reconciled.", "`python manage.py runs show {run}` lists what is."
    ),
    "attempt.invalid_result": RefusalRule("This result cannot be recorded for {visit}: {reason}", http_status=422),
    "bulk.conflict": RefusalRule("Request id {request_id} was already used for another bulk action ({bulk})."),
    "bulk.empty_filter": RefusalRule(
        "A bulk action needs a filter, so that it is never about every run by mistake.",
        "Name a status, a workflow or the numbers of runs.",
        422,
        ExitCode.USAGE,
    ),
    "bulk.not_found": RefusalRule("There is no bulk action {bulk}.", "", 404, ExitCode.USAGE),
    "bulk.too_many": RefusalRule(
        "The filter finds more than {limit} runs.", "Narrow it down, or do it in several parts.", 422, ExitCode.USAGE
    ),
    "control.conflict": RefusalRule("Request id {request_id} was already used for something else in this run."),
    "control.too_many": RefusalRule("Run {run} has {limit} control messages pending; no more are taken."),
    "control.too_large": RefusalRule(
        "The pending messages of run {run} would hold more than {limit} KiB; no more are taken."
    ),
    "definition.invalid": RefusalRule(
        "The workflow file has {problems}.",
        "`python manage.py workflows validate` shows all of them.",
        422,
        ExitCode.USAGE,
    ),
    "delivery.not_found": RefusalRule("There is no delivery {delivery}.", "", 404, ExitCode.USAGE),
    "delivery.waits": RefusalRule("Delivery {delivery} of this message is still on its way."),
    "fork.ambiguous": RefusalRule("{reason}", "{advice}", 422, ExitCode.USAGE),
    "fork.child_open": RefusalRule(
        "At revision {revision} run {run} waits for its child {children}.",
        "Say what the fork shall do: `--child take` (its result when it ends), `--child new` or `--child fork`.",
        422,
        ExitCode.USAGE,
    ),
    "fork.conflict": RefusalRule(
        "Request id {request_id} was already used for another fork of run {run}: run {fork}.", "Use a new request id."
    ),
    "fork.ended": RefusalRule(
        "At revision {revision} run {run} had ended ({status}); nothing is left to do from there.",
        "Name an earlier revision, or a visit to begin with.",
        422,
        ExitCode.USAGE,
    ),
    "fork.invalid_edit": RefusalRule("{reason}", "{advice}", 422, ExitCode.USAGE),
    "fork.plan_mismatch": RefusalRule(
        "Version {version} does not fit what run {run} has done: step {step} {difference}.",
        "Fork from before that step, or without `--plan`.",
        422,
        ExitCode.USAGE,
    ),
    "fork.unsound": RefusalRule(
        "A fork of run {run} at revision {revision} would not be sound: {reason}",
        "Nothing was written; `check_ledger {run}` looks at the run itself.",
        500,
    ),
    "fork.workspace": RefusalRule("The workspace of run {run} cannot be copied: {reason}", "", 409),
    "history.no_such_revision": RefusalRule(
        "Run {run} has no revision {revision}; it has 1 to {current}.", "", 404, ExitCode.USAGE
    ),
    "import.invalid": RefusalRule("The document cannot be imported: {reason}.", "", 422, ExitCode.USAGE),
    "input.invalid": RefusalRule("{reason}", "{advice}", 422, ExitCode.USAGE),
    "interrupt.ambiguous": RefusalRule(
        "Run {run} has {count} open questions.", "Name one of them: {choices}.", 422, ExitCode.USAGE
    ),
    "interrupt.answered": RefusalRule("{interrupt} of run {run} was answered by {by} at {at}."),
    "interrupt.changed": RefusalRule(
        "What {interrupt} of run {run} shows has changed since it was looked at.", "Look at it again, then answer."
    ),
    "interrupt.closed": RefusalRule("{interrupt} of run {run} is closed: {reason}."),
    "interrupt.invalid": RefusalRule("The answer has {problems}.", "", 422, ExitCode.USAGE),
    "interrupt.not_allowed": RefusalRule("{who} may not answer {interrupt} of run {run}: {reason}.", "{advice}", 403),
    "interrupt.not_found": RefusalRule(
        "Run {run} has no open question{interrupt}.",
        "`python manage.py runs show {run}` lists the open ones.",
        404,
        ExitCode.USAGE,
    ),
    "interrupt.voted": RefusalRule("{who} has already decided on {interrupt} of run {run}: {decision}."),
    "key.invalid": RefusalRule("{reason}", "", 422, ExitCode.USAGE),
    "key.not_found": RefusalRule("There is no API key {key}.", "", 404, ExitCode.USAGE),
    "key.scope": RefusalRule("{key} is not for this: it lacks the scope `{scope}`.", "Make a key that has it.", 403),
    "lease.held": RefusalRule(
        "Run {run} is driven by {holder} until {expires_at}.",
        "Wait for it, or stop that worker; a dead worker's lease ends by itself.",
        exit_code=ExitCode.HELD,
    ),
    "lease.lost": RefusalRule(
        "The lease on run {run} was lost: {reason}.",
        "Another worker goes on with the run; nothing of this one was written.",
        exit_code=ExitCode.HELD,
    ),
    "offer.invalid": RefusalRule("The result has {problems}.", "The work stays reserved; send another result.", 422),
    "offer.lost": RefusalRule(
        "The reservation of {work} of run {run} is lost: {reason}.", "Stop working on it; what it brings is not used."
    ),
    "offer.not_found": RefusalRule("There is no reservation with this token.", "", 404),
    "plan.corrupt": RefusalRule(
        "The stored plan of {plan} does not match its hash.",
        "Restore the row from a backup; runs of it can still be shown and abandoned.",
        500,
        ExitCode.BLOCKED,
    ),
    "plan.superseded": RefusalRule(
        "{by} published version {current} of {workflow} meanwhile; this text began from {began}.",
        "Look at the difference, take over what you need, then publish again.",
    ),
    "plan.no_such_version": RefusalRule("{workflow} has no version {version}.", "", 404, ExitCode.USAGE),
    "plan.missing_code": RefusalRule(
        "This server lacks what the workflow needs: {missing}.", "Install it, then try again.", 422, ExitCode.USAGE
    ),
    "plan.unsupported_kind": RefusalRule(
        "Step {step} is of kind {kind}, which this version of Waypost cannot run yet.",
        "Remove the step or wait for a version that runs this kind.",
        422,
        ExitCode.USAGE,
    ),
    "plan.unsupported_feature": RefusalRule(
        "The workflow uses {feature}, which this version of Waypost cannot run yet.", "", 422, ExitCode.USAGE
    ),
    "params.invalid": RefusalRule("The parameters have {problems}.", "", 422, ExitCode.USAGE),
    "request.csrf": RefusalRule(
        "The request does not prove that it comes from a page of this site.",
        "Send the cookie `csrftoken` as header `X-CSRFToken`, or use an API key.",
        403,
    ),
    "request.method": RefusalRule("This address does not take {method}.", "It takes {allowed}.", 405),
    "request.no_such_address": RefusalRule(
        "There is no such address.", "`/api/v1/openapi.json` lists all of them.", 404
    ),
    "request.not_json": RefusalRule("The body is not usable JSON: {reason}", "", 400),
    "request.too_large": RefusalRule("The body is larger than {limit} bytes.", "", 413),
    "request.too_many": RefusalRule(
        "This key has used its {limit} requests of this minute.", "Try again in {wait} seconds.", 429, ExitCode.HELD
    ),
    "request.unauthenticated": RefusalRule(
        "{reason}", "Send `Authorization: Bearer wp_…` with an API key, or log in.", 401
    ),
    "run.concurrency_full": RefusalRule(
        "No slot of {key} is free{holder}; the limit is {max}.", "Wait for it, cancel it, or start with `--over-limit`."
    ),
    "run.queued": RefusalRule("Run {run} waits in line for a slot of {key}.", exit_code=ExitCode.LEFT_RUNNING),
    "run.later": RefusalRule("Run {run} starts at {starts_at}.", exit_code=ExitCode.LEFT_RUNNING),
    "run.too_deep": RefusalRule("Child runs nest at most {limit} deep."),
    "run.too_many_children": RefusalRule("Run {run} may have at most {limit} child runs."),
    "run.conflict": RefusalRule("Run {run} changed in between (revision {revision}); nothing was written."),
    "run.key_conflict": RefusalRule(
        "Key {key} was already used for a run of {workflow} with other parameters or another version "
        "({known} there, {given} here).",
        "Use a new key, or start with exactly the same plan and parameters.",
    ),
    "run.not_found": RefusalRule("There is no run {run}.", "", 404, ExitCode.USAGE),
    "run.not_reopenable": RefusalRule("Run {run} is {status}; only failed, blocked and abandoned runs go on again."),
    "run.nothing_to_retry": RefusalRule(
        "Nothing in run {run} waits to be tried again.", "`python manage.py runs show {run}` says why."
    ),
    "run.nothing_to_skip": RefusalRule(
        "Nothing in run {run} can be skipped.",
        "Only a step that failed or waits; `python manage.py runs show {run}` says which.",
        409,
    ),
    "run.parent_abandoned": RefusalRule(
        "Run {run} was started by run {parent}, which is abandoned.",
        "`python manage.py runs resume {parent}` opens both again.",
    ),
    "run.parked": RefusalRule("Run {run} is {status} and waits: {reasons}."),
    "run.terminal": RefusalRule("Run {run} is already {status}."),
    "run.unknown_engine": RefusalRule(
        "Run {run} was published by engine version {engine_version}, which this worker does not know.",
        "Let a newer worker drive it.",
        exit_code=ExitCode.HELD,
    ),
    "schedule.conflict": RefusalRule(
        "Schedule {schedule} was changed meanwhile.", "Look at it again, then change what you need."
    ),
    "schedule.invalid": RefusalRule("The schedule has {problems}.", "", 422, ExitCode.USAGE),
    "schedule.not_found": RefusalRule(
        "There is no schedule {schedule}.", "`python manage.py schedules list` shows all.", 404, ExitCode.USAGE
    ),
    "schedule.of_file": RefusalRule(
        "Schedule {schedule} stands in the file of {workflow}.",
        "Change it there and publish the file; here it can be paused.",
        409,
        ExitCode.USAGE,
    ),
    "schema.behind": RefusalRule(
        "The database is {state}: {detail}", "Run `python manage.py migrate`.", 503, ExitCode.USAGE
    ),
    "schema.inconsistent": RefusalRule(
        "The migrations applied to the database do not match this code: position {position}, "
        "found {found}, expected {expected}.",
        "Use the code that migrated this database, or restore a backup.",
        503,
        ExitCode.USAGE,
    ),
    "store.contended": RefusalRule("The database is busy: {detail}.", "Try again in a moment.", 503, ExitCode.HELD),
    "store.unavailable": RefusalRule("The database cannot be used: {detail}.", "{advice}", 503, ExitCode.HELD),
    "user.not_found": RefusalRule(
        "There is no active user {user}.",
        "{advice}",
        404,
        ExitCode.USAGE,
    ),
    "visit.not_found": RefusalRule("Run {run} has no {what}.", "", 404, ExitCode.USAGE),
    "webhook.not_found": RefusalRule("There is no webhook {webhook}.", "", 404, ExitCode.USAGE),
    "workflow.not_found": RefusalRule("There is no workflow {name}.", "{suggestion}", 404, ExitCode.USAGE),
}
