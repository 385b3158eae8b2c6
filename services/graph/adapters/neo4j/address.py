"""Where a Bolt server is, as `FLEETBRAIN_GRAPH_URL` says it: `bolt://[user:password@]host[:7687]/[prefix]`."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.domain.errors import InvalidArgument
from services.runtime.engine_url import parse_engine_url, without_credentials

NAME = "FLEETBRAIN_GRAPH_URL"
SCHEMES = frozenset({"bolt", "bolt+s", "neo4j", "neo4j+s"})
PORT = 7687
USER = "neo4j"
"""The first user of every server; meant when there is a password and nobody it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, who we are to it, and the prefix of all that this brain keeps there."""

    url: str
    """Without credentials."""
    user: str
    """Empty for a server that asks nobody who they are."""
    password: str = field(repr=False)
    prefix: str


def parse_address(text: str, *, password: str = "") -> Address:
    """Reads the URL; a password in it wins over the one that is set apart.

    Raises:
        InvalidArgument: It is no such URL. The error shows it without credentials.
    """
    parsed = parse_engine_url(NAME, text, SCHEMES, PORT)
    if len(parsed.hosts) > 1:
        shown = without_credentials(text)
        raise InvalidArgument(
            "FIELD_INVALID",
            f"{NAME}={shown} names several hosts",
            field=NAME,
            value=shown,
            next_step="Name one; a routing neo4j:// server names the others itself.",
        )
    ((host, port),) = parsed.hosts
    secret = parsed.password.value if parsed.password is not None else password
    place = f"[{host}]" if ":" in host else host
    user = parsed.user or (USER if secret else "")
    return Address(url=f"{parsed.scheme}://{place}:{port}", user=user, password=secret, prefix=parsed.path)
