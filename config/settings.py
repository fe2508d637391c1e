"""All settings, read from the environment. The table of variables is in docs/settings.md."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config import databases, logging
from config.environment import Environment
from workflows.stores import files

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

#: ``web`` waits shortly for database locks, ``command`` (commands and workers) waits long.
WAYPOST_PROCESS = env.choice("WAYPOST_PROCESS", ("web", "command"), default="command")
#: Directory of the embedded database, the secret key and the workspaces; private to its owner.
WAYPOST_VAR = Path(env.str("WAYPOST_VAR", default=str(BASE_DIR / "var"))).absolute()

# ---- database --------------------------------------------------------------------------------------------------------

WAYPOST_EMBEDDED_DATABASE = WAYPOST_VAR / "waypost.sqlite3"
WAYPOST_SQLITE_JOURNAL_MODE = env.str("WAYPOST_SQLITE_JOURNAL_MODE", default="wal")
#: A SQLite file on a network file system is refused by a check, since its locks are not reliable there.
WAYPOST_ALLOW_NETWORK_DATABASE = env.bool("WAYPOST_ALLOW_NETWORK_DATABASE", default=False)
WAYPOST_USES_EMBEDDED_DATABASE = not env.str("DATABASE_URL", default="")

if WAYPOST_USES_EMBEDDED_DATABASE:
    files.prepare_private_file(WAYPOST_EMBEDDED_DATABASE)
    _database = {"ENGINE": databases.SQLITE, "NAME": str(WAYPOST_EMBEDDED_DATABASE)}
else:
    _database = env.database("DATABASE_URL")

DATABASES = {
    "default": databases.configure(_database, process=WAYPOST_PROCESS, journal_mode=WAYPOST_SQLITE_JOURNAL_MODE)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ---- web -------------------------------------------------------------------------------------------------------------

DEBUG = env.bool("DEBUG", default=False)
#: Without SECRET_KEY in the environment one is made once and kept in the private directory.
WAYPOST_MAKES_SECRET_KEY = not env.str("SECRET_KEY", default="")
if WAYPOST_MAKES_SECRET_KEY and WAYPOST_PROCESS == "web" and not (WAYPOST_USES_EMBEDDED_DATABASE or DEBUG):
    raise ImproperlyConfigured("SECRET_KEY has to be set for pages on a database of their own.")
SECRET_KEY = env.str("SECRET_KEY", default="") or files.secret_key(WAYPOST_VAR / "secret_key")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
#: The pages are reached over https only: other requests are sent there, and cookies and browsers keep to it.
HTTPS_ONLY = env.bool("HTTPS_ONLY", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS_ONLY
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000) if HTTPS_ONLY else 0
#: The header in which a proxy says how the browser reached it. Believed from everybody, so it is off by default.
if _proxy_header := env.str("HTTPS_PROXY_HEADER", default=""):
    SECURE_PROXY_SSL_HEADER = (f"HTTP_{_proxy_header.upper().replace('-', '_')}", "https")
#: Whether names below this one, and lists inside of browsers, are bound to https is for the owner of the domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

INSTALLED_APPS = [
    # without the one that looks for admin modules at once: config/urls.py does, and commands do without them
    "django.contrib.admin.apps.SimpleAdminConfig",
    "workflows.apps.WorkflowsConfig",  # before what it brings commands of its own for
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
]
MIDDLEWARE = [
    "config.requests.RequestId",
    "config.security.ContentSecurityPolicy",
    "django.middleware.security.SecurityMiddleware",
    "config.static.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "workflows.pages.presence.Presence",
    "axes.middleware.AxesMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["workflows.pages.tags"],
            "libraries": {
                "graph": "workflows.pages.graph_tags",
                "runs": "workflows.pages.run_tags",
                "workflow": "workflows.pages.workflow_tags",
            },
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"
STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(WAYPOST_VAR / "static"))).absolute()
#: The documents of the API are shown with files of ninja; as an installed app every command would import it.
_ninja = find_spec("ninja")
STATICFILES_DIRS = [BASE_DIR / "static", ("ninja", Path(str(_ninja and _ninja.origin)).parent / "static" / "ninja")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static.HashedWhenCollected"},
}
#: Files are served from where they are written too, so that pages have their style without ``collectstatic``.
WHITENOISE_USE_FINDERS = True
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
#: Wrong passwords of one person from one address before both have to wait. The database counts, for all processes.
AXES_FAILURE_LIMIT = env.int("LOGIN_FAILURE_LIMIT", default=10)
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "account/locked.html"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
LOGIN_URL = "pages:login"
LOGIN_REDIRECT_URL = "pages:home"
LOGOUT_REDIRECT_URL = "pages:login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = env.time_zone("TIME_ZONE", default="UTC")

# ---- workflows -------------------------------------------------------------------------------------------------------

WORKSPACE_ROOT = Path(env.str("WORKSPACE_ROOT", default=str(WAYPOST_VAR / "workspaces"))).absolute()
#: Directories of workflow files beside the ones that are shipped; the first one that has a name wins.
WAYPOST_LIBRARY_DIRS = [Path(path).absolute() for path in env.list("WAYPOST_LIBRARY_DIRS", default=[])]
WAYPOST_EFFECT_THREADS = env.int("WAYPOST_EFFECT_THREADS", default=8)
WAYPOST_LEASE_TTL_MS = env.int("WAYPOST_LEASE_TTL_MS", default=60_000)
WAYPOST_HEARTBEAT_MS = env.int("WAYPOST_HEARTBEAT_MS", default=15_000)
WAYPOST_CONTROL_POLL_MS = env.int("WAYPOST_CONTROL_POLL_MS", default=1_000)
WAYPOST_SHUTDOWN_GRACE_MS = env.int("WAYPOST_SHUTDOWN_GRACE_MS", default=10_000)
WAYPOST_POISON_LIMIT = env.int("WAYPOST_POISON_LIMIT", default=5)
#: Where messages for Celery workers go, as redis:// or amqp://; without it nothing is sent.
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="")
#: Workers of one pool hear the same messages; pools of one broker do not hear each other.
WAYPOST_POOL = env.name("WAYPOST_POOL", default="")

# ---- notifications ---------------------------------------------------------------------------------------------------

#: Where the pages are reached, for links in messages.
WAYPOST_BASE_URL = env.web_address("WAYPOST_BASE_URL", default="http://127.0.0.1:8000")
#: Without a mail server nobody gets e-mail.
WAYPOST_SENDS_EMAIL = bool(env.str("EMAIL_URL", default=""))
vars().update(env.mail_server("EMAIL_URL", default="dummymail://"))
#: Seconds that one answer of the mail server may take.
EMAIL_TIMEOUT = env.int("EMAIL_TIMEOUT", default=10)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="waypost@localhost")
#: Networks that are not public and take webhooks nevertheless.
WAYPOST_WEBHOOK_NETWORKS = env.list("WAYPOST_WEBHOOK_NETWORKS", default=[])

# ---- API -------------------------------------------------------------------------------------------------------------

WAYPOST_API_REQUESTS_PER_MINUTE = env.int("WAYPOST_API_REQUESTS_PER_MINUTE", default=600)
WAYPOST_API_BODY_LIMIT = env.int("WAYPOST_API_BODY_LIMIT", default=2_621_440)
DATA_UPLOAD_MAX_MEMORY_SIZE = max(WAYPOST_API_BODY_LIMIT, 2_621_440)
#: Requests of one web process that wait for events at once; each holds a thread of it.
WAYPOST_API_WAITING_LIMIT = env.int("WAYPOST_API_WAITING_LIMIT", default=8)

# ---- metrics ---------------------------------------------------------------------------------------------------------

#: Whoever sends it as a bearer token reads ``/metrics``. Without it nobody does, apart from superusers.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
if METRICS_TOKEN and len(METRICS_TOKEN) < 16:
    raise ImproperlyConfigured("METRICS_TOKEN must have 16 characters at least, or it could be guessed.")

# ---- logging ---------------------------------------------------------------------------------------------------------

#: ``line`` for people, ``json`` for whoever collects logs: one object on each line.
LOG_FORMAT = env.choice("LOG_FORMAT", logging.FORMATS, default="line")
LOGGING = logging.as_settings(LOG_FORMAT, env.str("LOG_LEVEL", default="WARNING"))
