"""The admin has no login of its own: the one of the site is slowed down for who guesses, and knows every person."""

from __future__ import annotations

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse


def login(request: HttpRequest) -> HttpResponseBase:
    """To the login of the site, and from there back to where the person wanted to go.

    Who is logged in already and came here lacks the right to the admin: another login would not give it.
    """
    if request.user.is_authenticated:
        raise PermissionDenied("The admin is for staff.")
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"), reverse("pages:login"))
