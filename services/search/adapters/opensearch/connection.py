"""The one way to the cluster: a deadline on every call, bounded connections, and its errors turned into ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from opensearchpy import AsyncOpenSearch

from services.runtime.engine_url import EngineUrl
from services.search.adapters.opensearch import errors

T = TypeVar("T")
Body = Mapping[str, Any]
"""JSON as the client has it: here it is at the edge."""

CONNECTIONS_MAX = 24
"""To each node: a cluster does a few dozen things at once at best, the rest stands in line here."""
READ_SECONDS_MAX = 10.0
"""Any read is stopped here, whoever asked; callers bring shorter deadlines and cancel."""
WRITE_SECONDS_MAX = 60.0
"""A batch of some hundred pages takes a second; beside other work on a small cluster many times that."""
TRIES_MAX = 2
"""Other nodes tried when one does not answer, within the same deadline."""
VERSION_MIN = (2, 11)
"""Older ones lack points in time as they are asked for here."""


class Connection:
    """A client with our bounds."""

    def __init__(self, client: AsyncOpenSearch) -> None:
        self._client = client

    @classmethod
    def open(cls, url: EngineUrl) -> Connection:
        """Prepares a client; nothing is sent yet."""
        tls = url.scheme.endswith("+tls")
        options: dict[str, Any] = {"ca_certs": url.query["ca"]} if url.query.get("ca") else {}
        password = url.password.value if url.password else ""
        client = AsyncOpenSearch(
            hosts=[{"host": host, "port": port} for host, port in url.hosts],
            http_auth=(url.user, password) if url.user or password else None,
            use_ssl=tls,
            verify_certs=tls,
            ssl_show_warn=False,
            pool_maxsize=CONNECTIONS_MAX,
            timeout=WRITE_SECONDS_MAX,
            max_retries=TRIES_MAX if len(url.hosts) > 1 else 0,
            retry_on_status=(502, 503, 504),
            **options,
        )
        return cls(client)

    async def check(self) -> None:
        """Looks whether this is a server we know.

        Raises:
            InvalidArgument: It is too old, or another kind.
            Unavailable: It does not answer, or refuses the credentials.
        """
        about = await self._call(self._client.info, READ_SECONDS_MAX)
        refuse_unsupported(about.get("version", {}))

    async def search(self, index: str, body: Body) -> dict[str, Any]:
        """Hits and aggregations of one search; `index` is empty for one within a point in time."""
        options = {"index": index} if index else {}
        found: dict[str, Any] = await self._call(lambda: self._client.search(body=body, **options), READ_SECONDS_MAX)
        if found.get("timed_out") or found["_shards"].get("failed"):
            raise errors.unavailable("OpenSearch answered with a part of an index missing")
        return found

    async def bulk(self, index: str, body: bytes) -> list[Body]:
        """The answer to each item, in order; durable, and visible to searches, on return."""
        done = await self._call(
            lambda: self._client.bulk(body=body, index=index, params={"refresh": "true"}), WRITE_SECONDS_MAX
        )
        return [answer for item in done["items"] for answer in item.values()]

    async def refresh(self, *names: str) -> None:
        """Makes visible what anybody has written."""
        await self._call(lambda: self._client.indices.refresh(index=",".join(names)), WRITE_SECONDS_MAX)

    async def begin_view(self, index: str, keep_seconds: int) -> str:
        """A frozen view of an index."""
        made = await self._call(
            lambda: self._client.create_pit(index=index, params={"keep_alive": f"{keep_seconds}s"}), READ_SECONDS_MAX
        )
        return str(made["pit_id"])

    async def end_view(self, view: str) -> None:
        """Gives a view back."""
        await self._call(lambda: self._client.delete_pit(body={"pit_id": [view]}), READ_SECONDS_MAX)

    async def get(self, index: str, name: str) -> dict[str, Any] | None:
        """One document as it is now; None when there is none."""
        found = await self._call(
            lambda: self._client.get(index=index, id=name, params={"ignore": 404}), READ_SECONDS_MAX
        )
        return found if found.get("found") else None

    async def put(self, index: str, name: str, body: Body, *, guard: tuple[int, int] | None) -> bool:
        """Writes one document if it is still the one the guard names (None: not there); whether it was."""
        params: dict[str, Any] = {"ignore": 409, "refresh": "true"}
        if guard is None:
            params["op_type"] = "create"
        else:
            params["if_seq_no"], params["if_primary_term"] = guard
        done = await self._call(
            lambda: self._client.index(index=index, id=name, body=body, params=params), WRITE_SECONDS_MAX
        )
        return "result" in done

    async def create_index(self, name: str, body: Body) -> None:
        """Makes an index, unless it is there."""
        done = await self._call(
            lambda: self._client.indices.create(index=name, body=body, params={"ignore": 400}), WRITE_SECONDS_MAX
        )
        kind = done.get("error", {}).get("type", "")
        if kind and kind != "resource_already_exists_exception":
            raise errors.of_status(400, kind)

    async def mappings(self, pattern: str) -> dict[str, Any]:
        """The mappings of the indices that a pattern names, by name; none is no error."""
        found: dict[str, Any] = await self._call(
            lambda: self._client.indices.get_mapping(index=pattern, params={"ignore": 404}), READ_SECONDS_MAX
        )
        return {} if "error" in found else found

    async def move_aliases(self, actions: Sequence[Body]) -> None:
        """Changes aliases in one step."""
        await self._call(lambda: self._client.indices.update_aliases(body={"actions": actions}), WRITE_SECONDS_MAX)

    async def remove_index(self, name: str) -> None:
        """Removes an index; one that is gone already is no error."""
        await self._call(lambda: self._client.indices.delete(index=name, params={"ignore": 404}), WRITE_SECONDS_MAX)

    async def close(self) -> None:
        """Closes every connection."""
        await self._client.close()

    async def _call(self, call: Callable[[], Awaitable[T]], seconds: float) -> T:
        with errors.translated():
            async with asyncio.timeout(seconds):
                return await call()


def refuse_unsupported(version: Mapping[str, Any]) -> None:
    """Raises InvalidArgument unless the server is an OpenSearch that is new enough."""
    number, kind = str(version.get("number", "")), str(version.get("distribution", "another kind of server"))
    parts = tuple(int(part) for part in number.split("-")[0].split(".")[:2] if part.isdecimal())
    if kind != "opensearch" or parts < VERSION_MIN:
        raise errors.unsupported(f"{kind} {number}", "OpenSearch 2.11")
