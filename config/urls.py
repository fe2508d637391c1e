"""Addresses of the web application."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from workflows.admin.login import login as admin_login
from workflows.pages.metrics import metrics

admin.autodiscover()
urlpatterns = [
    path("admin/login/", admin_login),
    path("admin/", admin.site.urls),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("workflows.api.urls")),
    path("", include("workflows.pages.urls")),
]
