"""Addresses of the web application."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from workflows.admin.login import login as admin_login

urlpatterns = [
    path("admin/login/", admin_login),
    path("admin/", admin.site.urls),
    path("", include("workflows.pages.urls")),
]
