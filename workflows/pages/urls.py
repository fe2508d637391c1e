"""Addresses of the pages; every address is here, by noun.

Names that pages link to: ``home``, ``workflow_list``, ``workflow`` (name), ``start`` (name), ``run_list``, ``run``
(number), ``visit`` (number, visit), ``question`` (number, visit), ``reconcile`` (number, visit), ``inbox``, ``bulk``
(bulk), ``audit``, ``schedule_list``, ``schedule`` (number).
"""

from __future__ import annotations

from django.urls import path

from workflows.pages import (
    account,
    audit,
    bulk,
    home,
    inbox,
    keys,
    notifications,
    reconciling,
    run_urls,
    runs,
    schedule_urls,
    sessions,
    workers,
    workflow_urls,
)

app_name = "pages"

urlpatterns = [
    path("", home.home, name="home"),
    path("parts/home/", home.home_part, name="home_part"),
    # ---- account
    path("login/", account.login, name="login"),
    path("logout/", account.logout, name="logout"),
    path("account/", account.account, name="account"),
    path("account/sessions/<int:session>/end/", sessions.end_one, name="session_end"),
    path("account/sessions/end-others/", sessions.end_others, name="session_end_others"),
    path("account/keys/", keys.keys, name="keys"),
    path("account/notifications/", notifications.preferences, name="notification_preferences"),
    path("theme/", account.theme, name="theme"),
    # ---- workflows
    *workflow_urls.urlpatterns,
    # ---- runs, questions, audit
    path("runs/", runs.run_list, name="run_list"),
    path("runs/bulk/", bulk.bulk_new, name="bulk_new"),
    path("bulk/", bulk.bulk_index, name="bulk_list"),
    path("bulk/<int:number>/", bulk.bulk, name="bulk"),
    path("bulk/<int:number>/carry-on/", bulk.bulk_carry_on, name="bulk_carry_on"),
    path("bulk/<int:number>/abort/", bulk.bulk_abort, name="bulk_abort"),
    path("inbox/", inbox.inbox, name="inbox"),
    path("runs/<int:number>/questions/<int:visit>/", inbox.question, name="question"),
    path("runs/<int:number>/reconcile/<int:visit>/", reconciling.reconciling, name="reconcile"),
    path("audit/", audit.audit, name="audit"),
    path("workers/", workers.worker_list, name="worker_list"),
    path("parts/workers/", workers.worker_part, name="worker_part"),
    # ---- schedules
    *schedule_urls.urlpatterns,
    # ---- one run
    *run_urls.urlpatterns,
]
