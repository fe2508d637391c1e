"""LoginSession: a browser in which a person is logged in, so that they can see it and end it."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class LoginSession(models.Model):
    """Beside the row that Django keeps for a session and that nobody can read: whose it is, since when, from where.

    ``session_key`` is the key of that row; ``address`` and ``browser`` are what the last request came from, roughly.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    address = models.CharField(max_length=45, blank=True)
    browser = models.CharField(max_length=80, blank=True)

    class Meta:
        default_permissions = ("view",)
        permissions = [("end_session", "Can end the sessions of others")]

    def __str__(self) -> str:
        return f"session {self.pk} of user {self.user_id}"
