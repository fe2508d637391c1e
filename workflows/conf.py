"""One frozen view of the application's Django settings, with every default.

Nothing else in the application reads ``django.conf.settings`` for these names. The view is made once and made again
when a test changes a setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

Network = IPv4Network | IPv6Network
#: Where ``serve`` shows the pages unless it is told otherwise.
BASE_URL = "http://127.0.0.1:8000"

#: Version of the engine that publishes runs; a worker claims only the versions it knows.
ENGINE_VERSION = 1
KNOWN_ENGINE_VERSIONS = frozenset({1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """The settings of Waypost.

    ``secrets``: name → value, or a callable without arguments that gives it (``WAYPOST_SECRETS``).
    ``workspace_root``: directory that holds one directory per run (``WORKSPACE_ROOT``).
    ``library_dirs``: a team's own directories of workflow files (``WAYPOST_LIBRARY_DIRS``).
    ``lease_ttl_ms``, ``heartbeat_ms``: life of a lease and time between its renewals.
    ``effect_threads``: effects one worker runs at once. ``poison_limit``: crashes in a row at one revision after which
    a run is failed. ``control_poll_ms``: how often a driver looks for control messages.
    ``api_requests_per_minute``: of one API key, over all processes. ``api_body_limit``: bytes of a request of the API.
    ``api_waiting_limit``: requests of one process that wait for events at once.
    ``shutdown_grace_ms``: how long running effects may go on after the worker was told to stop.
    ``pool``: the workers that hear the same messages of a broker (``WAYPOST_POOL``).
    ``base_url``: where the pages are reached. ``sends_email``: whether there is a mail server.
    ``webhook_networks``: networks that are not public and take webhooks nevertheless.
    """

    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    workspace_root: Path
    library_dirs: tuple[Path, ...] = ()
    lease_ttl_ms: int = 60_000
    heartbeat_ms: int = 15_000
    effect_threads: int = 8
    poison_limit: int = 5
    control_poll_ms: int = 1_000
    shutdown_grace_ms: int = 10_000
    api_requests_per_minute: int = 600
    api_body_limit: int = 2_621_440
    api_waiting_limit: int = 8
    pool: str = ""
    engine_version: int = ENGINE_VERSION
    base_url: str = BASE_URL
    sends_email: bool = False
    webhook_networks: tuple[Network, ...] = ()


_WHOLE_NUMBERS = {
    "lease_ttl_ms": "WAYPOST_LEASE_TTL_MS",
    "heartbeat_ms": "WAYPOST_HEARTBEAT_MS",
    "effect_threads": "WAYPOST_EFFECT_THREADS",
    "poison_limit": "WAYPOST_POISON_LIMIT",
    "control_poll_ms": "WAYPOST_CONTROL_POLL_MS",
    "shutdown_grace_ms": "WAYPOST_SHUTDOWN_GRACE_MS",
    "api_requests_per_minute": "WAYPOST_API_REQUESTS_PER_MINUTE",
    "api_body_limit": "WAYPOST_API_BODY_LIMIT",
    "api_waiting_limit": "WAYPOST_API_WAITING_LIMIT",
}


def _whole_number(name: str) -> int:
    value = getattr(settings, name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ImproperlyConfigured(f"{name} must be a whole number from 1 on, but it is {value!r}.")
    return value


def _networks(texts: Iterable[str]) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(text.strip()) for text in texts)
    except ValueError as error:
        raise ImproperlyConfigured(f"WAYPOST_WEBHOOK_NETWORKS must be networks such as 10.0.0.0/8: {error}.") from None


@lru_cache(maxsize=1)
def conf() -> Conf:
    """The settings as they are. Raises ``ImproperlyConfigured`` naming the setting that cannot be used."""
    numbers = {key: _whole_number(name) for key, name in _WHOLE_NUMBERS.items() if hasattr(settings, name)}
    secrets = getattr(settings, "WAYPOST_SECRETS", None) or {}
    if not isinstance(secrets, Mapping):
        raise ImproperlyConfigured("WAYPOST_SECRETS must map names to values or to callables.")
    root = getattr(settings, "WORKSPACE_ROOT", None) or Path(getattr(settings, "BASE_DIR", ".")) / "var" / "workspaces"
    view = Conf(
        secrets=dict(secrets),
        workspace_root=Path(root).absolute(),
        library_dirs=tuple(Path(path) for path in getattr(settings, "WAYPOST_LIBRARY_DIRS", ())),
        pool=getattr(settings, "WAYPOST_POOL", ""),
        base_url=getattr(settings, "WAYPOST_BASE_URL", BASE_URL),
        sends_email=bool(getattr(settings, "WAYPOST_SENDS_EMAIL", False)),
        webhook_networks=_networks(getattr(settings, "WAYPOST_WEBHOOK_NETWORKS", ())),
        **numbers,
    )
    if view.heartbeat_ms * 2 > view.lease_ttl_ms:
        raise ImproperlyConfigured(
            f"WAYPOST_HEARTBEAT_MS ({view.heartbeat_ms}) must be at most half of "
            f"WAYPOST_LEASE_TTL_MS ({view.lease_ttl_ms}), or a single late heartbeat loses the lease."
        )
    return view


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith(("WAYPOST_", "WORKSPACE_", "BASE_DIR")):
        conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="workflows.conf")
