"""What looks like a credential: names that promise one and values in the shape of a known token.

A guess, made to warn before a secret is stored and shown; it never sees more than a name and a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from workflows.jsonvalue import item_path, member_path

_LAST_WORDS = frozenset(
    {
        "token",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "apikey",
        "credential",
        "credentials",
        "bearer",
        "authorization",
    }
)
_LAST_PAIRS = frozenset(
    f"{first} key" for first in ("api", "access", "private", "secret", "signing", "encryption", "deploy", "auth", "ssh")
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_SHAPES = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b                           # AWS access key id
    | \bgh[pousr]_[0-9A-Za-z]{20,}                            # GitHub
    | \bgithub_pat_[0-9A-Za-z_]{20,}
    | \bglpat-[0-9A-Za-z_-]{16,}                              # GitLab
    | \bxox[abeoprs]-[0-9A-Za-z-]{10,}                        # Slack
    | \bsk-[0-9A-Za-z_-]{20,}                                 # OpenAI, Anthropic
    | \b[rs]k_(?:live|test)_[0-9A-Za-z]{10,}                  # Stripe
    | \bAIza[0-9A-Za-z_-]{30,}                                # Google
    | \bya29\.[0-9A-Za-z_-]{20,}
    | \bnpm_[0-9A-Za-z]{30,}
    | \bpypi-[0-9A-Za-z_-]{30,}
    | \bhf_[0-9A-Za-z]{30,}                                   # Hugging Face
    | \bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}            # SendGrid
    | \beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*   # JSON Web Token
    | ^Bearer\ [0-9A-Za-z._~+/-]{16,}=*$
    | \b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@               # password in a URL
    """,
    re.VERBOSE,
)


def names_credential(name: str) -> bool:
    """Whether a value under this name is probably a credential: ``api_token``, ``dbPassword``, not ``max_tokens``."""
    words = [word.lower() for word in _WORD.findall(name)]
    return bool(words) and (words[-1] in _LAST_WORDS or " ".join(words[-2:]) in _LAST_PAIRS)


def has_credential_shape(value: Any) -> bool:
    """Whether a text contains something in the shape of a known token."""
    return isinstance(value, str) and _SHAPES.search(value) is not None


def looks_like_credential(name: str, value: Any) -> bool:
    """Whether ``value`` under ``name`` looks like a credential. Only text that is not empty can."""
    return isinstance(value, str) and value != "" and (names_credential(name) or has_credential_shape(value))


def credential_paths(value: Any, path: str, name: str) -> Iterator[str]:
    """Paths at and below ``path`` whose values look like credentials; ``name`` is the last name of ``path``."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from credential_paths(member, member_path(path, key), key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from credential_paths(item, item_path(path, index), name)
    elif looks_like_credential(name, value):
        yield path
