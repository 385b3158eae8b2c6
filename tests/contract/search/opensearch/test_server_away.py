"""An OpenSearch that dies, comes back, refuses or is another: what was acknowledged stays, and nobody has to help."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from services.domain.errors import BrainError, InvalidArgument, Unavailable
from services.search.adapters.opensearch.connection import refuse_unsupported
from services.search.adapters.opensearch.errors import BLOCKED, of_status
from services.search.adapters.opensearch.index import OpenSearchIndex
from tests.contract.search.engines import connect
from tests.contract.search.pages import EVERYTHING, state
from tests.engines.opensearch import OpenSearchServer, running

WRITERS = 3
AWAY_SECONDS_MAX = 15.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchServer]:
    """A server of this file's own: it is killed."""
    with running(tmp_path_factory.mktemp("killed")) as started:
        yield started


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # The client forgets the session of a dead node.
async def test_what_was_acknowledged_outlives_a_kill_and_work_goes_on_by_itself(server: OpenSearchServer) -> None:
    index = OpenSearchIndex(connect(server.url), "contract", "killed", owns_connection=True)
    await index.begin()
    acknowledged: list[str] = []
    refused: list[BrainError] = []

    async def write(writer: int) -> None:
        for number in range(10_000):
            slug = f"w{writer}/{number}"
            try:
                await index.apply([state(slug, "alpha", number + 1)])
            except BrainError as error:
                refused.append(error)
                return
            acknowledged.append(slug)

    writers = [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
    try:
        async with asyncio.timeout(60):
            while len(acknowledged) < 5 * WRITERS:
                await asyncio.wait(writers, timeout=0.05)
        server.kill()
        async with asyncio.timeout(AWAY_SECONDS_MAX):
            await asyncio.gather(*writers)
            with pytest.raises(Unavailable):
                await index.counts(EVERYTHING)
        assert {type(error) for error in refused} == {Unavailable}
        await asyncio.to_thread(server.start)
        held = {page.key.slug async for page in index.held()}
        assert set(acknowledged) <= held
        await index.apply([state("after", "beta", 1)])
        assert "after" in {page.key.slug async for page in index.held()}
    finally:
        await asyncio.gather(*writers)
        await index.close()


def test_another_kind_of_server_or_an_old_one_is_refused() -> None:
    refuse_unsupported({"distribution": "opensearch", "number": "2.19.6"})
    refuse_unsupported({"distribution": "opensearch", "number": "3.9.0"})
    for version in ({"number": "8.15.0"}, {"distribution": "opensearch", "number": "1.3.0"}, {}):
        with pytest.raises(InvalidArgument, match=r"2\.11"):
            refuse_unsupported(version)


def test_a_full_disk_and_wrong_credentials_have_one_clear_line_each() -> None:
    assert "disk" in of_status(403, BLOCKED).next_step
    assert "FLEETBRAIN_LEXICAL_PASSWORD" in of_status(401, "").next_step
