"""Where an engine is and who we are to it: `SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/[PREFIX][?NAME=VALUE]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote

from services.domain.errors import InvalidArgument
from services.runtime.settings import Secret

HOSTS_MAX: Final = 32
PREFIX: Final = "fleetbrain"
_PREFIX_FORM: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUrl:
    """An engine's address."""

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    user: str = ""
    password: Secret | None = None
    path: str = PREFIX
    """The prefix of all that this brain keeps there."""
    query: Mapping[str, str] = field(default_factory=dict)


def parse_engine_url(
    name: str, text: str, schemes: frozenset[str], default_port: int, *, parameters: frozenset[str] = frozenset()
) -> EngineUrl:
    """Reads a URL.

    Args:
        name: The setting that holds it, for errors.
        text: The URL.
        schemes: Those the engine has.
        default_port: Where none is named.
        parameters: Those that may follow the `?`.

    Raises:
        InvalidArgument: It is no such URL. The error shows it without credentials.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in schemes:
        raise _refused(name, text, f"is none of {', '.join(f'{one}://' for one in sorted(schemes))}")
    rest, _, query_text = rest.partition("?")
    place, _, path = rest.partition("/")
    credentials, _, hosts_text = place.rpartition("@")
    user, colon, password = credentials.partition(":")
    query = dict(parse_qsl(query_text, keep_blank_values=True))
    unknown = sorted(set(query) - parameters)
    if unknown or "#" in rest:
        raise _refused(name, text, f"has a parameter that there is not: {unknown[0] if unknown else '#'}")
    hosts = tuple(_host(name, text, part, default_port) for part in hosts_text.split(","))
    if len(hosts) > HOSTS_MAX:
        raise _refused(name, text, f"names more than {HOSTS_MAX} hosts")
    prefix = path.strip("/") or PREFIX
    if not _PREFIX_FORM.fullmatch(prefix):
        raise _refused(name, text, "has a prefix other than up to 63 of a-z, 0-9 and -")
    secret = Secret(value=unquote(password), origin=name) if colon else None
    return EngineUrl(scheme=scheme, hosts=hosts, user=unquote(user), password=secret, path=prefix, query=query)


def without_credentials(text: str) -> str:
    """A URL as it may be shown."""
    scheme, separator, rest = text.partition("://")
    # At the last @, wherever it is: a password may hold any character by mistake.
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else scheme.rpartition("@")[2]


def _host(name: str, text: str, part: str, default_port: int) -> tuple[str, int]:
    found = _HOST.fullmatch(part)
    if found is None or int(found["port"] or default_port) > 65535:
        raise _refused(name, text, "names a host that is none" if part else "names no host")
    return found["six"] or found["name"], int(found["port"] or default_port)


def _refused(name: str, text: str, why: str) -> InvalidArgument:
    shown = without_credentials(text)
    return InvalidArgument(
        "FIELD_INVALID",
        f"{name}={shown} {why}",
        field=name,
        value=shown,
        next_step="Use SCHEME://HOST:PORT/prefix, or leave it empty for the embedded engine in the data folder.",
    )
