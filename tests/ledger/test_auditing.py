from __future__ import annotations

import json

import pytest

from tests.support.plans import START, publish_run, workflow
from workflows.ledger.auditing import audit, record_audit
from workflows.ledger.transactions import ledger_transaction
from workflows.models import AuditEntry
from workflows.models.guard import OutsideLedgerError

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = workflow("  - { id: work, kind: shell, run: make }", name="deploy")


def test_an_entry_names_the_workflow_of_its_run() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    audit(actor="shell:root as alice", action="run.abandon", at=START, run=run_id, reason="stuck", data={"children": 2})
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.action, entry.allowed, entry.run, entry.workflow, entry.reason, entry.data) == (
        "shell:root as alice",
        "run.abandon",
        True,
        run_id,
        "deploy",
        "stuck",
        '{"children":2}',
    )


def test_an_entry_is_written_in_a_ledger_transaction_or_not_at_all() -> None:
    """REV.3"""
    with pytest.raises(OutsideLedgerError):
        record_audit(actor="ann", action="run.cancel", at=START)
    assert not AuditEntry.objects.exists()


def test_an_entry_goes_with_the_transaction_that_it_is_about() -> None:
    """WEB.2"""

    @ledger_transaction
    def change_and_fail() -> None:
        record_audit(actor="ann", action="run.cancel", at=START)
        raise ValueError("the change failed")

    with pytest.raises(ValueError, match="the change failed"):
        change_and_fail()
    assert not AuditEntry.objects.exists()


def test_data_that_is_too_long_leaves_its_names() -> None:
    audit(actor="ann", action="run.reconcile", at=START, data={"decision": "stop", "text": "x" * 9_000})
    assert json.loads(AuditEntry.objects.get().data) == {"left_out": ["decision", "text"]}
