"""The one way to the server: bounded, with a deadline on every call, and with its errors turned into ours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TypeAlias, TypeVar

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    NotificationMinimumSeverity,
    Query,
    unit_of_work,
)

from services.domain.errors import Unavailable
from services.graph.adapters.neo4j import errors
from services.graph.adapters.neo4j.schema import AWAIT_SECONDS, SHOW_INDEXES, STATEMENTS

T = TypeVar("T")

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"
Row: TypeAlias = Mapping[str, Value]
Parameters: TypeAlias = Mapping[str, object]

POOL_MAX = 24
"""Connections of a process: a server does two dozen things at once at best, the rest stands in line here."""
ACQUIRE_SECONDS = 5.0
CONNECT_SECONDS = 3.0
RETRY_SECONDS = 3.0
"""How long the driver repeats what may succeed when repeated (a deadlock, a lost connection): below our deadlines."""
READ_SECONDS_MAX = 10.0
"""Any read is stopped here, whoever asked; callers bring shorter deadlines and cancel."""
WRITE_SECONDS_MAX = 60.0
"""A batch of some hundred pages takes a second; beside other work on a small server many times that."""
SCHEMA_SECONDS_MAX = AWAIT_SECONDS + 30.0
LIVENESS_SECONDS = 30.0
"""A connection that was idle this long is tried before use: a firewall may have dropped it without a word."""
VERSION_MIN = (5, 26)
"""Older ones do not know the subqueries that reads are made of."""


class Statements:
    """Statements of one transaction, one after the other."""

    def __init__(self, transaction: AsyncManagedTransaction) -> None:
        self._transaction = transaction

    async def run(self, statement: str, parameters: Parameters) -> list[Row]:
        """All rows of a statement. Its text is made of our own words alone; every value is a parameter."""
        result = await self._transaction.run(planned_once(statement), {"p": dict(parameters)})
        keys = result.keys()
        return [dict(zip(keys, record.values(), strict=True)) async for record in result]

    async def explain(self, statement: str, parameters: Parameters) -> list[str]:
        """The operators by which the server would run a statement."""
        result = await self._transaction.run(planned_once(f"EXPLAIN {statement}"), {"p": dict(parameters)})
        summary = await result.consume()
        return operators(summary.plan or {})


class Connection:
    """A driver with our bounds, to one database."""

    def __init__(self, driver: AsyncDriver, *, database: str) -> None:
        self._driver = driver
        self._database = database
        self._preparing = asyncio.Lock()
        self._prepared = False

    @classmethod
    def open(
        cls,
        url: str,
        *,
        user: str,
        password: str,
        database: str = "neo4j",
    ) -> Connection:
        """Prepares a driver; nothing is sent yet."""
        driver = AsyncGraphDatabase.driver(
            url,
            auth=(user, password) if user else None,
            max_connection_pool_size=POOL_MAX,
            connection_acquisition_timeout=ACQUIRE_SECONDS,
            connection_timeout=CONNECT_SECONDS,
            max_transaction_retry_time=RETRY_SECONDS,
            liveness_check_timeout=LIVENESS_SECONDS,
            keep_alive=True,
            telemetry_disabled=True,
            user_agent="fleetbrain",
            notifications_min_severity=NotificationMinimumSeverity.OFF,
        )
        return cls(driver, database=database)

    async def prepare(self) -> None:
        """Looks whether the server is one we know, and makes constraints and indexes, which then are filled.

        Every transaction does it first when the server was lost since: after a crash its indexes come back empty and
        fill again, and until then nothing is found by them.

        Raises:
            InvalidArgument: The server is too old, or another kind.
            Unavailable: It does not answer, or refuses the credentials.
        """
        with errors.translated():
            async with asyncio.timeout(SCHEMA_SECONDS_MAX):
                await self._prepare()

    async def _prepare(self) -> None:
        async with self._preparing:
            if self._prepared:
                return
            refuse_unsupported((await self._driver.get_server_info()).agent)
            async with self._driver.session(database=self._database) as session:
                found = await session.run(Query(SHOW_INDEXES, timeout=AWAIT_SECONDS))
                if {record["state"]: record["indexes"] async for record in found} != {"ONLINE": len(STATEMENTS)}:
                    for statement in STATEMENTS:
                        await (await session.run(Query(statement, timeout=AWAIT_SECONDS))).consume()
                    waiting = Query("CALL db.awaitIndexes($seconds)", timeout=SCHEMA_SECONDS_MAX)
                    await (await session.run(waiting, seconds=AWAIT_SECONDS)).consume()
            self._prepared = True

    async def read(self, work: Callable[[Statements], Awaitable[T]], *, seconds: float = READ_SECONDS_MAX) -> T:
        """Reads in one transaction; the work may be done again, so it keeps nothing."""
        return await self._transact(work, READ_ACCESS, seconds)

    async def write(self, work: Callable[[Statements], Awaitable[T]], *, seconds: float = WRITE_SECONDS_MAX) -> T:
        """Writes in one transaction, all or nothing; the work may be done again, so it keeps nothing."""
        return await self._transact(work, WRITE_ACCESS, seconds)

    async def plan(self, statement: str, parameters: Parameters) -> list[str]:
        """The operators by which the server would run a statement, for whoever asserts that an index is used."""
        return await self.read(lambda statements: statements.explain(statement, parameters))

    async def close(self) -> None:
        """Closes every connection."""
        await self._driver.close()

    async def _transact(self, work: Callable[[Statements], Awaitable[T]], access: str, seconds: float) -> T:
        @unit_of_work(timeout=seconds)
        async def run(transaction: AsyncManagedTransaction) -> T:
            return await work(Statements(transaction))

        try:
            with errors.translated():
                # The server has the same clock, so that it stops what we have given up; ours is for one that hangs.
                async with asyncio.timeout(seconds):
                    if not self._prepared:
                        await self._prepare()
                    async with self._driver.session(database=self._database, default_access_mode=access) as session:
                        execute = session.execute_read if access == READ_ACCESS else session.execute_write
                        return await execute(run)
        except Unavailable:
            self._prepared = False
            raise


@lru_cache(maxsize=64)  # There are some two dozen statements.
def planned_once(statement: str) -> str:
    """The statement in the form for which the server makes one plan and keeps it.

    By itself it makes another one whenever counts have changed, and for every length of every list among the
    parameters: seconds, in an import or after a start. Each of our statements begins at an index, so that its plan does
    not depend on how much there is; and what is inside of a map does not take part in the choice.
    """
    return "CYPHER replan=skip " + re.sub(r"\$(\w+)", r"$p.\1", statement)


def refuse_unsupported(agent: str) -> None:
    """Raises InvalidArgument unless the server is new enough; `agent` is such as `Neo4j/5.26.30`."""
    kind, _, version = agent.partition("/")
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
    if kind != "Neo4j" or numbers < VERSION_MIN:
        raise errors.unsupported(agent, "Neo4j 5.26")


def operators(plan: Mapping[str, object]) -> list[str]:
    """The operator of each step of a plan."""
    children = plan.get("children")
    below = [name for child in (children if isinstance(children, list) else []) for name in operators(child)]
    return [str(plan.get("operatorType", "")).partition("@")[0], *below]
