"""How to reach a NATS that others run: its addresses, who we are there, whom we believe, how many copies we want."""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.domain.errors import InvalidArgument

URL: Final = "FLEETBRAIN_NATS_URL"
CREDENTIALS: Final = "FLEETBRAIN_NATS_CREDENTIALS_FILE"
DEFAULT_PORT: Final = 4222
HOSTS_MAX: Final = 16
CREDENTIALS_BYTES_MAX: Final = 64 * 1024
SEED_PREFIX: Final = bytes([18 << 3 | (20 << 3) >> 5, 0])
"""The first bytes of a user's seed: they make the text begin with SU."""
USER_PREFIX: Final = 20 << 3
"""The first byte of a user's public key: it makes the text begin with U."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsOptions:
    """What the settings say beside the URL. The defaults are those of the embedded server."""

    authority: Path | None = None
    """Whose certificates the servers must show; the system's authorities when there is none."""
    certificate: Path | None = None
    key: Path | None = None
    """What we show, where the servers ask for it: both or none."""
    credentials: Path | None = None
    """A `.creds` file (JWT and seed), or a file that holds an nkey seed."""
    replicas: int = 0
    """Copies of every stream; 0 means three in a cluster and one on a single server."""
    tags: tuple[str, ...] = ()
    """Servers that may hold the streams must have all of these."""
    allow_shrink: bool = False
    """Whether streams may be brought down to fewer replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """What a URL says, with one user for all of its hosts: servers found later are greeted with it too."""

    urls: tuple[str, ...]
    tls: bool
    user: str | None
    password: str | None = field(repr=False)

    @property
    def shown(self) -> str:
        """For people: without user and password."""
        return ", ".join(self.urls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Shows who we are without telling the secret: signs what the server asks with."""

    sign: Callable[[str], bytes]
    jwt: Callable[[], bytes] | None
    public_key: str


def parse_addresses(url: str) -> Addresses:
    """The addresses in a URL such as `nats://user:password@a:4222,b:4222` or `tls://a,b`.

    Raises:
        InvalidArgument: It is no such URL; the error shows no password.
    """
    urls: list[str] = []
    users: set[tuple[str | None, str | None]] = set()
    schemes: set[str] = set()
    scheme = "nats"
    parts = [part.strip() for part in url.split(",")]
    for part in parts:
        try:
            parsed = urlsplit(part if "://" in part else f"{scheme}://{part}")
            host, port = parsed.hostname, parsed.port or DEFAULT_PORT
        except ValueError as error:
            raise refused(f"has a host that cannot be read: {error}") from error
        scheme = parsed.scheme
        if not host or scheme not in ("nats", "tls") or parsed.path not in ("", "/") or parsed.query:
            raise refused("is not nats://HOST:PORT[,HOST:PORT…] nor tls://HOST:PORT[,…]")
        schemes.add(scheme)
        if parsed.username is not None:
            password = None if parsed.password is None else unquote(parsed.password)
            users.add((unquote(parsed.username), password))
        shown = f"[{host}]" if ":" in host else host
        urls.append(f"{scheme}://{shown}:{port}")
    if len(urls) > HOSTS_MAX or len(schemes) > 1 or len(users) > 1:
        raise refused(f"names more than {HOSTS_MAX} hosts, more than one scheme or more than one user")
    user, password = next(iter(users), (None, None))
    return Addresses(urls=tuple(urls), tls=scheme == "tls", user=user, password=password)


def tls_context(options: NatsOptions) -> ssl.SSLContext:
    """Whom we believe, and what we show.

    Raises:
        InvalidArgument: Names the setting whose file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=options.authority)
    except OSError as error:
        raise refused_file("FLEETBRAIN_NATS_CA", options.authority, error) from error
    if options.certificate is not None:
        try:
            context.load_cert_chain(options.certificate, options.key)
        except OSError as error:
            raise refused_file("FLEETBRAIN_NATS_CERTIFICATE", options.certificate, error) from error
    return context


def read_signer(path: Path) -> Signer:
    """What a credentials file says.

    Raises:
        InvalidArgument: It cannot be read, or holds no user's seed.
    """
    try:
        with path.open("rb") as file:
            return parse_credentials(file.read(CREDENTIALS_BYTES_MAX).decode("ascii"))
    except (OSError, ValueError) as error:
        raise refused_file(CREDENTIALS, path, error) from error


def parse_credentials(text: str) -> Signer:
    """What the text of a credentials file says.

    Raises:
        ValueError: It holds no user's seed.
    """
    lines = [line.strip() for line in text.splitlines()]
    jwt = after(lines, "BEGIN NATS USER JWT")
    seed = after(lines, "BEGIN USER NKEY SEED") or next((line for line in lines if line.startswith("SU")), "")
    raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    if len(raw) != 36 or raw[:2] != SEED_PREFIX or binascii.crc_hqx(raw[:-2], 0) != int.from_bytes(raw[-2:], "little"):
        raise ValueError("no seed of a user (SU…) in it")
    key = Ed25519PrivateKey.from_private_bytes(raw[2:34])
    public = bytes([USER_PREFIX]) + key.public_key().public_bytes_raw()
    checked = public + binascii.crc_hqx(public, 0).to_bytes(2, "little")
    return Signer(
        sign=lambda nonce: base64.b64encode(key.sign(nonce.encode())),
        jwt=jwt.encode if jwt else None,
        public_key=base64.b32encode(checked).decode().rstrip("="),
    )


def after(lines: list[str], marker: str) -> str:
    """The line that follows the one with the marker; empty when there is none."""
    return next((lines[at + 1] for at, line in enumerate(lines[:-1]) if marker in line), "")


def refused(why: str) -> InvalidArgument:
    """A URL that cannot be used. It may hold a password, so it is not quoted."""
    return InvalidArgument(
        "FIELD_INVALID",
        f"{URL} {why}",
        field=URL,
        next_step="Use for example nats://user:password@a:4222,b:4222,c:4222, or tls:// for TLS.",
    )


def refused_file(setting: str, path: Path | None, error: Exception) -> InvalidArgument:
    """A file that cannot be used."""
    return InvalidArgument(
        "FIELD_INVALID",
        f"{setting}={path} cannot be used: {error}",
        field=setting,
        value=str(path),
        next_step="Name a readable file: PEM for certificates, .creds or an nkey seed for credentials.",
    )
