"""The replicas of one service, each spoken to alone: for work that every owner of a store must do on its own.

Other calls go round over a name's replicas, one call to whichever is next; see `channels`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, TypeVar

from grpc import aio

from services.domain.errors import Unavailable
from services.runtime.channels import open_channel
from services.runtime.tls import TlsFiles

S = TypeVar("S")

BY_NAME = "dns:///"


class Replicas(Generic[S]):
    """Stubs of one service, one for each replica that its address leads to now."""

    def __init__(
        self, address: str, *, service: str, make_stub: Callable[[aio.Channel], S], token: str, tls: TlsFiles | None
    ) -> None:
        self._address = address
        self._service = service
        self._make_stub = make_stub
        self._token = token
        self._tls = tls
        self._open: dict[str, tuple[S, AsyncExitStack]] = {}

    async def stubs(self) -> Sequence[S]:
        """The stubs, in the order of the replicas' addresses; a single one when the address is no name of several.

        Raises:
            Unavailable: The name leads nowhere now.
        """
        addresses, host = await self._addresses()
        for gone in self._open.keys() - set(addresses):
            await self._open.pop(gone)[1].aclose()
        for address in addresses:
            if address not in self._open:
                stack = AsyncExitStack()
                opened = open_channel(
                    address, service=self._service, token=self._token, tls=self._tls, certified_as=host
                )
                self._open[address] = self._make_stub(await stack.enter_async_context(opened)), stack
        return [self._open[address][0] for address in addresses]

    async def close(self) -> None:
        """Ends all channels."""
        while self._open:
            await self._open.popitem()[1][1].aclose()

    async def _addresses(self) -> tuple[list[str], str]:
        if not self._address.startswith(BY_NAME):
            return [self._address], ""
        host, _, port = self._address.removeprefix(BY_NAME).rpartition(":")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"{host} leads to nobody: {error.strerror}",
                metadata={"peer": self._service},
                retry_after_seconds=1.0,
            ) from error
        hosts = {ipaddress.ip_address(entry[4][0]) for entry in found}
        ordered = sorted(hosts, key=lambda address: (address.version, address.packed))
        return [f"ipv{a.version}:{f'[{a}]' if a.version == 6 else a}:{port}" for a in ordered], host


@asynccontextmanager
async def open_replicas(
    address: str, *, service: str, make_stub: Callable[[aio.Channel], S], token: str = "", tls: TlsFiles | None = None
) -> AsyncIterator[Replicas[S]]:
    """The replicas behind an address; nothing is called or looked up yet.

    Args:
        address: As for `open_channel`; `dns:///host:port` may lead to several.
        service: Full name, such as `brain.v1.SearchService`.
        make_stub: The generated stub's class.
        token: Shown as bearer token.
        tls: Whom to believe and what to show; certificates are checked against the name, not the replica's number.
    """
    replicas = Replicas(address, service=service, make_stub=make_stub, token=token, tls=tls)
    try:
        yield replicas
    finally:
        await replicas.close()
