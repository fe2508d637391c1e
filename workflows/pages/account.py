"""Account: logging in and out, the password, the sessions, and the theme of this browser."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth import views as auth_views
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url

from workflows.pages.guard import FORM, POST, is_ours, page
from workflows.pages.tags import THEMES
from workflows.queries.sessions import sessions_of

_A_YEAR_S = 365 * 86_400


class _Login(auth_views.LoginView):
    template_name = "account/login.html"
    redirect_authenticated_user = True
    next_page = "pages:home"

    def get_context_data(self, **more: object) -> dict[str, object]:
        """On a fresh installation there is nobody yet: the page says how the first person is made."""
        nobody = not get_user_model()._default_manager.filter(is_active=True).exists()
        return super().get_context_data(nobody=nobody, **more)


class _Password(auth_views.PasswordChangeView):
    template_name = "account/account.html"
    success_url = "/account/?changed=1"

    def get_context_data(self, **more: object) -> dict[str, object]:
        sessions = sessions_of(self.request.user, this_key=self.request.session.session_key)
        return super().get_context_data(sessions=sessions, **more)


login = page(methods=FORM, is_public=True)(_Login.as_view())
account = page(methods=FORM, needs=None)(_Password.as_view())
logout = page(methods=POST, is_public=True)(auth_views.LogoutView.as_view(next_page="pages:login"))


@page(methods=POST, is_public=True)
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the chosen theme in a cookie, and go back to where it was chosen."""
    response = HttpResponseRedirect(safe_next(request))
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=_A_YEAR_S, samesite="Lax", httponly=True)
    return response


def safe_next(request: HttpRequest) -> str:
    """The address of this site that a form wants to go to next; home for every other one."""
    wanted = request.POST.get("next", "")
    return wanted if is_ours(request, wanted) else resolve_url("pages:home")
