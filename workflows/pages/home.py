"""Home: what waits for the person, and how the runs stand."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from workflows.pages.guard import page


@page()
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "home.html")
