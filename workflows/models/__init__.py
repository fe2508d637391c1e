"""The nouns: one table each, with its queryset and the manager that holds the table's compare-and-swap.

Columns that are hashed or compared hold canonical JSON text. Rows of one run refer to each other by
(run, number) or (run, path), so they can be inserted in one batch and copied by a fork without renaming.
"""

from workflows.models.access import WorkflowAccess
from workflows.models.api_key import ApiKey
from workflows.models.attempt import Attempt
from workflows.models.audit import AuditEntry
from workflows.models.bulk import BulkAction, BulkItem
from workflows.models.control import ControlMessage
from workflows.models.event import Event
from workflows.models.external import ExternalOffer
from workflows.models.history import RowVersion
from workflows.models.interrupt import Interrupt, Vote
from workflows.models.lease import Lease
from workflows.models.login_session import LoginSession
from workflows.models.notification import Delivery, Notification, NotificationPreference, Webhook
from workflows.models.payload import Payload
from workflows.models.run import Run
from workflows.models.run_filter import RunFilter
from workflows.models.schedule import Schedule, ScheduleFire
from workflows.models.scope import Fanout, Scope, ScopeVars
from workflows.models.slot import LimitGroup, LimitStart, Slot
from workflows.models.tally import Tally
from workflows.models.visit import Visit
from workflows.models.worker import Worker
from workflows.models.workflow import Plan, Workflow

__all__ = [
    "ApiKey",
    "Attempt",
    "AuditEntry",
    "BulkAction",
    "BulkItem",
    "ControlMessage",
    "Delivery",
    "Event",
    "ExternalOffer",
    "Fanout",
    "Interrupt",
    "Lease",
    "LimitGroup",
    "LimitStart",
    "LoginSession",
    "Notification",
    "NotificationPreference",
    "Payload",
    "Plan",
    "RowVersion",
    "Run",
    "RunFilter",
    "Schedule",
    "ScheduleFire",
    "Scope",
    "ScopeVars",
    "Slot",
    "Tally",
    "Visit",
    "Vote",
    "Webhook",
    "Worker",
    "Workflow",
    "WorkflowAccess",
]
