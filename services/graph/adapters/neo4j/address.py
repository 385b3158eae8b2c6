"""Where a Bolt server is, as `FLEETBRAIN_GRAPH_URL` says it: `bolt://[user:password@]host[:7687]/[prefix]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from services.domain.errors import InvalidArgument

SCHEMES = ("bolt", "bolt+s", "neo4j", "neo4j+s")
PORT = 7687
PREFIX = "fleetbrain"
USER = "neo4j"
PREFIX_FORM = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, who we are to it, and the prefix of all that this brain keeps there."""

    url: str
    """Without credentials."""
    user: str = ""
    """Empty for a server that asks nobody who they are."""
    password: str = field(default="", repr=False)
    prefix: str = PREFIX


def parse_address(text: str, *, password: str = "") -> Address:
    """Reads the URL; a password in it wins over the one that is set apart.

    Raises:
        InvalidArgument: It is no such URL. The error shows it without credentials.
    """
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
    except ValueError:
        raise refused(text, "has no port that is a number") from None
    if parts.scheme not in SCHEMES:
        raise refused(text, f"is none of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if not parts.hostname:
        raise refused(text, "names no host")
    if parts.query or parts.fragment:
        raise refused(text, "has parameters, and there are none")
    prefix = parts.path.strip("/") or PREFIX
    if not PREFIX_FORM.fullmatch(prefix):
        raise refused(text, "has a prefix other than up to 63 of a-z, 0-9 and -")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    secret = unquote(parts.password) if parts.password is not None else password
    user = unquote(parts.username) if parts.username else USER if secret else ""
    return Address(url=f"{parts.scheme}://{host}:{port}", user=user, password=secret, prefix=prefix)


def refused(text: str, why: str) -> InvalidArgument:
    """A URL that cannot be used."""
    scheme, separator, rest = text.partition("://")
    shown = f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else scheme.partition("@")[0]
    return InvalidArgument(
        "FIELD_INVALID",
        f"FLEETBRAIN_GRAPH_URL={shown} {why}",
        field="FLEETBRAIN_GRAPH_URL",
        value=shown,
        next_step="Use for example bolt://localhost:7687/fleetbrain, or leave it empty for SQLite in the data folder.",
    )
