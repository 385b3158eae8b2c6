"""Opens the client library's connection: to which servers, as whom, and with every limit set by us."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import nats.errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from services.domain.errors import InvalidArgument
from services.runtime.nats_config import MAX_PAYLOAD_BYTES
from services.runtime.nats_options import Addresses, NatsOptions, Signer, read_signer, tls_context
from services.runtime.nats_troubles import Troubles, absent, cannot_work

CONNECT_SECONDS = 3.0
CONNECT_HOST_SECONDS = 2
"""How long the first connection may take in all, and for each address. Patience with a server that comes later is
`open_bus`'s."""
PING_SECONDS, CLUSTER_PING_SECONDS = 10, 2
"""Unanswered, and the server is left for another where there is one. A server that died is seen at once; one that
stands still, or is behind a cut line, only so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Where we go, who we are there and whom we believe, read from the files that the settings name."""

    addresses: Addresses
    tls: ssl.SSLContext | None
    signer: Signer | None


def read_identity(addresses: Addresses, options: NatsOptions) -> Identity:
    """Reads certificates and credentials.

    Raises:
        InvalidArgument: Names the setting whose file cannot be used.
    """
    with_tls = addresses.tls or options.authority is not None or options.certificate is not None
    return Identity(
        addresses=addresses,
        tls=tls_context(options) if with_tls else None,
        signer=read_signer(options.credentials) if options.credentials is not None else None,
    )


async def connect(
    client: Client,
    identity: Identity,
    name: str,
    troubles: Troubles,
    *,
    on_disconnect: Callable[[], Awaitable[None]],
    on_reconnect: Callable[[], Awaitable[None]],
) -> None:
    """Connects to the first server that answers, and from then on to another whenever a connection breaks.

    Raises:
        Unavailable: No server answers.
        InvalidArgument: The servers refuse who we are or messages of MAX_PAYLOAD_BYTES, or we do not believe theirs.
    """
    addresses, signer = identity.addresses, identity.signer
    if signer is not None:
        client._public_nkey = signer.public_key  # noqa: SLF001 - its only other way in needs a library more
    connecting = asyncio.ensure_future(
        client.connect(
            list(addresses.urls),
            name=name,
            error_cb=troubles.on_error,
            closed_cb=troubles.on_closed,
            disconnected_cb=on_disconnect,
            reconnected_cb=on_reconnect,
            user=addresses.user if signer is None else signer.public_key,
            password=addresses.password,
            signature_cb=None if signer is None else signer.sign,
            user_jwt_cb=None if signer is None else signer.jwt,
            tls=identity.tls,
            inbox_prefix=inbox_prefix(addresses.user),
            allow_reconnect=True,
            connect_timeout=CONNECT_HOST_SECONDS,
            reconnect_time_wait=0.1,  # type: ignore[arg-type]  # seconds; a restarted child is back at once
            max_reconnect_attempts=-1,
            ping_interval=PING_SECONDS if len(addresses.urls) == 1 else CLUSTER_PING_SECONDS,
            max_outstanding_pings=2 if len(addresses.urls) == 1 else 1,
            # What was not sent when the connection broke is sent by the next one, after its caller was told that
            # it failed: harmless, for an append carries an expectation and an acknowledgement may be repeated.
            pending_size=16 * 1024 * 1024,
            flusher_queue_size=1024,
            drain_timeout=5,
            skip_subject_validation=True,  # slugs.subject_of makes them, a token at a time
        )
    )
    try:
        # The client itself would try for ever, and would ask a server again and again that has refused it.
        seconds = CONNECT_SECONDS + CONNECT_HOST_SECONDS * (len(addresses.urls) - 1)
        ended: set[asyncio.Future[None] | asyncio.Future[Exception]] = {connecting, troubles.refused}
        await asyncio.wait(ended, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if troubles.refused.done():
            raise cannot_work(troubles.refused.result(), addresses.shown)
        if not connecting.done():
            raise absent(troubles.last or TimeoutError("no answer"), addresses.shown)
        connecting.result()
    except (OSError, nats.errors.Error, TimeoutError) as error:
        raise absent(error, addresses.shown) from error
    finally:
        connecting.cancel()
        await asyncio.wait({connecting})
    troubles.connected = True
    if client.max_payload < MAX_PAYLOAD_BYTES:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"the NATS server takes messages of at most {client.max_payload} bytes",
            field="max_payload",
            value=client.max_payload,
            next_step=f"Set max_payload: {MAX_PAYLOAD_BYTES} in the server's configuration.",
        )


def cut(transport: TcpTransport) -> None:
    """Ends a connection without a word to the other side."""
    if transport._io_writer is not None:  # noqa: SLF001
        transport._io_writer.transport.abort()  # noqa: SLF001


def inbox_prefix(user: str | None) -> str:
    """Where replies arrive: below the user's name, so that the servers can keep one service from another's."""
    return f"_INBOX.{user}" if user is not None and re.fullmatch(r"[A-Za-z0-9_-]+", user) else "_INBOX"
