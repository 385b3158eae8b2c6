"""An embedder behind HTTP: what it asks, what it makes of every answer, and what the brain does while it is away."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest

from brain.v1 import search_service_pb2 as pb
from services.domain.errors import InvalidArgument, Unavailable
from services.runtime.bus import Bus
from services.runtime.settings import Secret, Settings
from services.search.adapters.openai_embedder import (
    BATCH_CHARACTERS_MAX,
    BATCH_TEXTS_MAX,
    CUTS,
    Endpoint,
    OpenAiEmbedder,
    batches,
    parse_url,
    retry_after,
)
from services.search.ports import Purpose
from services.search.wiring import check_engines
from tests.integration.search.embedding_server import Behaviour, embedded, embedding_server
from tests.integration.search.service import asking, put, running, settings_for

DIMENSION = 64


class Clock:
    """Time that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def served() -> Iterator[tuple[str, Behaviour]]:
    with embedding_server() as both:
        yield both


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def embedder(served: tuple[str, Behaviour], clock: Clock) -> AsyncIterator[OpenAiEmbedder]:
    endpoint = Endpoint(
        model="m/small", dimension=DIMENSION, base_url=served[0], key="sk-secret", key_origin="FLEETBRAIN_EMBEDDER_KEY"
    )
    made = OpenAiEmbedder(endpoint, clock=clock, jitter=lambda: 0.0)
    yield made
    await made.close()


def remote_settings(data: Path, base_url: str, *, model: str = "m", dimension: int = DIMENSION) -> Settings:
    return Settings(data=data, embedder_url=f"openai://{model}?dim={dimension}", embedder_base_url=base_url)


@pytest.mark.parametrize("encoding", ["base64", "float"])
@pytest.mark.parametrize("shuffled", [False, True])
async def test_every_text_gets_its_own_vector_of_length_one_whatever_the_order_and_the_encoding(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder, encoding: str, shuffled: bool
) -> None:
    served[1].encoding, served[1].shuffled = encoding, shuffled
    texts = ["a cat", "猫睡觉", "two dogs and a cat"]
    made = await embedder.embed(texts, Purpose.PASSAGE)
    wanted = np.array([embedded(text, DIMENSION) / np.linalg.norm(embedded(text, DIMENSION)) for text in texts])
    np.testing.assert_allclose(made, wanted, atol=1e-6)
    assert made.dtype == np.float32
    assert served[1].requests[0]["dimensions"] == DIMENSION
    assert served[1].requests[0]["model"] == "m/small"


async def test_many_texts_go_in_calls_of_bounded_size_and_none_is_lost(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder
) -> None:
    texts = [f"word{chr(97 + n % 26)} {chr(97 + n // 26)}" for n in range(BATCH_TEXTS_MAX * 2 + 3)]
    assert (await embedder.embed(texts, Purpose.PASSAGE)).shape == (len(texts), DIMENSION)
    assert [len(asked["input"]) for asked in served[1].requests] == [BATCH_TEXTS_MAX, BATCH_TEXTS_MAX, 3]  # type: ignore[arg-type]
    assert (await embedder.embed([], Purpose.QUERY)).shape == (0, DIMENSION)


def test_batches_are_bounded_in_characters_and_no_text_is_empty() -> None:
    made = list(batches(["x" * 60_000] * 9 + ["", "字"]))
    assert sum(map(len, made)) == 11
    assert all(sum(map(len, batch)) <= BATCH_CHARACTERS_MAX for batch in made)
    assert made[-1][-2:] == [" ", "字"]
    assert len(made[0][0]) == CUTS[0]


async def test_a_refused_key_names_the_variable_and_the_endpoint_and_never_the_key(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder
) -> None:
    served[1].key = "another"
    with pytest.raises(Unavailable) as caught:
        await embedder.embed(["a"], Purpose.QUERY)
    error = caught.value
    assert error.reason == "KEY_REFUSED"
    assert "FLEETBRAIN_EMBEDDER_KEY" in error.message
    assert served[0] in error.message
    assert dict(error.metadata) == {"variable": "FLEETBRAIN_EMBEDDER_KEY", "endpoint": served[0], "status": "401"}
    assert "sk-secret" not in f"{error.message}{error.next_step}{dict(error.metadata)}"


async def test_a_server_that_says_when_to_come_back_is_left_alone_until_then(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder, clock: Clock
) -> None:
    served[1].status, served[1].headers = 429, {"Retry-After": "20"}
    with pytest.raises(Unavailable) as caught:
        await embedder.embed(["a"], Purpose.PASSAGE)
    assert caught.value.retry_after_seconds == pytest.approx(20)
    served[1].status = 200
    clock.now += 19
    with pytest.raises(Unavailable) as caught:
        await embedder.embed(["a"], Purpose.PASSAGE)
    assert caught.value.retry_after_seconds == pytest.approx(1)
    assert len(served[1].requests) == 1
    clock.now += 1.1
    assert (await embedder.embed(["a"], Purpose.PASSAGE)).shape == (1, DIMENSION)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_server_in_trouble_is_asked_once_a_call_and_less_often_each_time(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder, clock: Clock, status: int
) -> None:
    served[1].status = status
    pauses = []
    for _ in range(4):
        with pytest.raises(Unavailable) as caught:
            await embedder.embed(["a"], Purpose.PASSAGE)
        assert caught.value.reason == "PEER_UNAVAILABLE"
        pauses.append(caught.value.retry_after_seconds or 0.0)
        clock.now += pauses[-1]
    assert pauses == sorted(set(pauses))
    assert len(served[1].requests) == 4


async def test_a_server_that_does_not_answer_is_given_up_at_the_deadline(served: tuple[str, Behaviour]) -> None:
    served[1].hold = threading.Event()
    slow = OpenAiEmbedder(Endpoint(model="m", dimension=8, base_url=served[0]), query_seconds=0.2)
    with pytest.raises(Unavailable, match="did not answer in time"):
        await slow.embed(["a"], Purpose.QUERY)
    await slow.close()


async def test_nobody_listening_is_unavailable() -> None:
    with embedding_server() as (url, _):
        pass
    nobody = OpenAiEmbedder(Endpoint(model="m", dimension=8, base_url=url))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await nobody.embed(["a"], Purpose.QUERY)
    await nobody.close()


async def test_another_size_is_refused_with_both_numbers(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder
) -> None:
    served[1].dimension = 48
    with pytest.raises(Unavailable, match=r"48 numbers.*dim=64") as caught:
        await embedder.embed(["a"], Purpose.QUERY)
    assert caught.value.field == "FLEETBRAIN_EMBEDDER_URL"
    assert "dim=48" in caught.value.next_step


async def test_a_model_that_takes_no_dimensions_is_asked_without_and_still_checked(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder, clock: Clock
) -> None:
    served[1].refuses_dimensions, served[1].dimension = True, DIMENSION
    assert (await embedder.embed(["a"], Purpose.QUERY)).shape == (1, DIMENSION)
    await embedder.embed(["b"], Purpose.QUERY)
    assert ["dimensions" in asked for asked in served[1].requests] == [True, False, False]
    served[1].dimension = 8
    with pytest.raises(Unavailable, match="8 numbers"):
        await embedder.embed(["c"], Purpose.QUERY)


@pytest.mark.parametrize("wrong", ["dropped", "misnumbered", "text", "html", "nothing"])
async def test_an_answer_that_is_not_one_vector_a_text_is_never_used(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder, wrong: str
) -> None:
    served[1].dropped, served[1].misnumbered = int(wrong == "dropped"), wrong == "misnumbered"
    bodies = {"text": '"hello"', "html": "<html>", "nothing": '{"data": []}'}
    served[1].body = bodies.get(wrong, "")
    with pytest.raises(Unavailable) as caught:
        await embedder.embed(["a", "b"], Purpose.PASSAGE)
    assert caught.value.reason == "PEER_UNAVAILABLE"


async def test_a_text_that_is_too_long_is_cut_and_its_neighbours_stay_whole(
    served: tuple[str, Behaviour], embedder: OpenAiEmbedder
) -> None:
    served[1].input_characters_max = CUTS[-1]
    made = await embedder.embed(["cat " * 1_000, "a dog"], Purpose.PASSAGE)
    wanted = embedded("a dog", DIMENSION)
    np.testing.assert_allclose(made[1], wanted / np.linalg.norm(wanted), atol=1e-6)
    served[1].requests.clear()
    served[1].input_characters_max = 3
    with pytest.raises(InvalidArgument, match="too long"):
        await embedder.embed(["cat " * 1_000], Purpose.PASSAGE)
    assert len(served[1].requests) == len(CUTS)


@pytest.mark.parametrize(
    "url", ["openai://", "openai://m", "openai://m?dim=0", "openai://m?dim=-1", "openai://m?dim=99999",
            "openai://m?dim=５", "openai://?dim=5", "openai://m?dim=5&x=1", "local:use?dim=5"]
)  # fmt: skip
def test_a_url_that_says_no_model_or_no_size_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match=r"openai://MODEL\?dim=N") as caught:
        parse_url(url)
    assert caught.value.field == "FLEETBRAIN_EMBEDDER_URL"


def test_a_model_may_have_slashes_and_colons() -> None:
    assert parse_url("openai://BAAI/bge-m3:latest?dim=1024") == ("BAAI/bge-m3:latest", 1024)


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("", None), ("Wed, 21 Oct", None), ("-1", None)]
)
def test_a_time_to_come_back_is_seconds_or_unknown(header: str, seconds: float | None) -> None:
    assert retry_after(header) == seconds


def test_no_key_is_needed_on_this_machine_and_one_is_needed_elsewhere(data: Path) -> None:
    check_engines(remote_settings(data, "http://127.0.0.1:1/v1"))
    check_engines(remote_settings(data, "http://[::1]:1/v1"))
    for base_url in ("", "https://embed.example/v1"):
        with pytest.raises(InvalidArgument, match="no key") as caught:
            check_engines(remote_settings(data, base_url))
        assert caught.value.field == "FLEETBRAIN_EMBEDDER_KEY"
    check_engines(
        Settings(data=data, embedder_url="openai://m?dim=8", embedder_key=Secret(value="k", origin="OPENAI_API_KEY"))
    )


async def test_an_embedder_of_another_dimension_stops_the_start(
    bus: Bus, data: Path, served: tuple[str, Behaviour]
) -> None:
    served[1].dimension = 48
    with pytest.raises(InvalidArgument, match="dim=64"):
        async with running(remote_settings(data, served[0]), bus):
            pytest.fail("it started")


async def test_text_is_found_while_the_embedder_is_away_and_by_meaning_once_it_is_back(
    bus: Bus, data: Path, served: tuple[str, Behaviour]
) -> None:
    served[1].status = 503
    async with running(remote_settings(data, served[0]), bus) as service:
        revision = await put(bus, "cats", "# Cats\n\nA kitten sleeps. 小猫睡觉。")
        request = pb.SearchPassagesRequest(query="kitten 小猫", min_revision=revision)
        async with asking():
            answer = await service.stub.SearchPassages(request)
        assert [pb.Retriever.Name(one.retriever) for one in answer.missing] == ["RETRIEVER_DENSE"]
        assert answer.lists[0].hits[0].page.slug == "cats"
        served[1].status = 200
        await embedded_to(service.stub, revision)
        async with asking():
            answer = await service.stub.SearchPassages(request)
            stats = await service.stub.GetStats(pb.GetSearchStatsRequest())
        assert not answer.missing
        assert (stats.embedder, stats.embedded) == ("openai:m/64", 1)


async def test_the_former_vectors_serve_until_those_of_the_new_model_are_complete(
    bus: Bus, data: Path, served: tuple[str, Behaviour]
) -> None:
    async with running(settings_for(data, "local:use"), bus) as service:
        revision = await put(bus, "cats", "# Cats\n\nA kitten sleeps.")
        await embedded_to(service.stub, revision)
    served[1].status = 503
    async with running(remote_settings(data, served[0]), bus) as service:
        request = pb.SearchPassagesRequest(query="kitten", min_revision=revision, retrievers=[pb.RETRIEVER_DENSE])
        await embedded_to(service.stub, revision)
        async with asking():
            stats = await service.stub.GetStats(pb.GetSearchStatsRequest())
            answer = await service.stub.SearchPassages(request)
        assert stats.embedder.startswith("local:use/")
        assert len(answer.lists[0].hits) == 1
        served[1].status = 200
        await served_by(service.stub, "openai:m/64")
    async with running(remote_settings(data, served[0], model="n"), bus) as service:
        await served_by(service.stub, "openai:n/64")


async def embedded_to(stub: object, revision: int) -> None:
    async with asking(seconds=30):
        seen = await stub.GetProgress(  # type: ignore[attr-defined]
            pb.GetSearchProgressRequest(min_revision=revision, embedded=True), timeout=30
        )
    assert seen.reached


async def served_by(stub: object, signature: str) -> None:
    import asyncio

    async with asyncio.timeout(30):
        while True:
            async with asking():
                stats = await stub.GetStats(pb.GetSearchStatsRequest())  # type: ignore[attr-defined]
            if stats.embedder == signature:
                return
            await asyncio.sleep(0.05)


async def test_a_refused_key_stops_neither_the_start_nor_text(
    bus: Bus, data: Path, served: tuple[str, Behaviour]
) -> None:
    served[1].key = "another"
    async with running(remote_settings(data, served[0]), bus) as service:
        revision = await put(bus, "cats", "# Cats\n\nA kitten sleeps.")
        request = pb.SearchPassagesRequest(query="kitten", min_revision=revision)
        async with asking():
            answer = await service.stub.SearchPassages(request)
        assert answer.lists[0].hits[0].page.slug == "cats"
        assert [pb.Retriever.Name(one.retriever) for one in answer.missing] == ["RETRIEVER_DENSE"]
