"""`Embedder` by an HTTP endpoint that speaks OpenAI's `/embeddings`: the vendor's own, or any server like it.

A refused key, an endpoint that is away or one that answers another size is `Unavailable`: the projection then waits
with every page in hand, and text is searched without vectors. Only a text that the endpoint refuses is the text's own
fault. After a failure nothing is asked for a while, so that a query learns at once that there is no vector.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

import numpy as np

from services.domain.errors import BrainError, InvalidArgument, Unavailable, shortened
from services.search.ports import Purpose, Vectors

if TYPE_CHECKING:
    import openai

SETTING = "FLEETBRAIN_EMBEDDER_URL"
SCHEME = "openai://"
VENDOR_URL = "https://api.openai.com/v1"
DIMENSION_MAX = 16_384
"""Above every model there is; a larger number is a slip of the pen that would fill the disk."""

BATCH_TEXTS_MAX = 32
"""Inputs a call. Source: the default of `--max-client-batch-size` of Hugging Face's text-embeddings-inference, the
smallest among the usual servers; the vendor's API reference allows 2,048."""
BATCH_CHARACTERS_MAX = 100_000
"""Characters a call. Source: the vendor's API reference, 300,000 tokens a request; a character is three at most."""
CUTS = (24_000, 2_700, 400)
"""Characters kept of a text: at first, and when the endpoint says it is too long. Source: the vendor's 8,192 tokens an
input, at three characters a token for prose and three tokens a character for the worst; then models of 512 tokens."""
PASSAGE_CALLS_MAX = 4
"""Calls for passages at the same time; those for queries do not wait for them."""
QUERY_CALLS_MAX = 16
QUERY_SECONDS = 10.0
"""As long as a retriever may take at most."""
PASSAGE_SECONDS = 60.0
"""A full batch on a server without a GPU; what takes longer is taken for dead."""
PAUSE_SECONDS = 0.5
"""After the first failure; doubles with each further one."""
PAUSE_SECONDS_MAX = 15.0
"""So long may it take to notice that the endpoint is back."""
RETRY_AFTER_SECONDS_MAX = 300.0
"""More is not believed: a quota of a day would otherwise outlive its being raised."""

_TOO_LONG = re.compile(
    r"too (long|large|many)|context.length|max\w* (input|context|batch)|less than \d+ tokens|batch size|exceed",
    re.IGNORECASE,
)
"""How servers say it: there is no code for it that all share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to ask, for what, and who asks."""

    model: str
    dimension: int
    base_url: str = VENDOR_URL
    key: str = field(default="", repr=False)
    key_origin: str = ""
    """The variable or the file that the key was read from."""

    @property
    def signature(self) -> str:
        """Model and dimension; not the host, because the same model gives the same vectors behind another name."""
        return f"openai:{self.model}/{self.dimension}"


def parse_url(url: str) -> tuple[str, int]:
    """The model and the dimension of `openai://MODEL?dim=N`.

    Raises:
        InvalidArgument: It is not of that form.
    """
    model, _, query = url.removeprefix(SCHEME).partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    number = options.get("dim", "")
    model = unquote(model).strip("/")
    # `isdecimal` alone takes digits of any script.
    fits = number.isascii() and number.isdecimal() and len(number) <= 5 and 1 <= int(number) <= DIMENSION_MAX
    if not url.startswith(SCHEME) or not model or not model.isprintable() or options.keys() != {"dim"} or not fits:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"{SETTING}={shortened(url)} is not openai://MODEL?dim=N with N from 1 to {DIMENSION_MAX}",
            field=SETTING,
            value=url,
            next_step="Use for example openai://text-embedding-3-small?dim=512.",
        )
    return model, int(number)


class OpenAiEmbedder:
    """One model behind one endpoint. The client is made at the first text."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        query_seconds: float = QUERY_SECONDS,
        passage_seconds: float = PASSAGE_SECONDS,
    ) -> None:
        """Describes it.

        Args:
            endpoint: Whom to ask.
            clock: Seconds that only grow.
            jitter: A number from 0 to 1, so that many brains do not come back in the same moment.
            query_seconds: The deadline of a call for a query.
            passage_seconds: The deadline of a call for passages.
        """
        self.signature = endpoint.signature
        self.dimension = endpoint.dimension
        self._endpoint = endpoint
        self._clock = clock
        self._jitter = jitter
        self._seconds = {Purpose.QUERY: query_seconds, Purpose.PASSAGE: passage_seconds}
        self._calls = {
            Purpose.QUERY: asyncio.Semaphore(QUERY_CALLS_MAX),
            Purpose.PASSAGE: asyncio.Semaphore(PASSAGE_CALLS_MAX),
        }
        self._client: openai.AsyncOpenAI | None = None
        self._says_dimension = True
        self._failures = 0
        self._paused_until = 0.0
        self._paused_for: Unavailable | None = None

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """See `Embedder.embed`.

        Raises:
            Unavailable: The endpoint is away, refuses the key or does not have this model in this size.
            InvalidArgument: The endpoint refuses a text, however short it is cut.
        """
        parts = [await self._fitting(batch, purpose, 0) for batch in batches(texts)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _fitting(self, texts: Sequence[str], purpose: Purpose, cut: int) -> Vectors:
        """The vectors of some texts; what is too long together is asked one by one, what is so alone is cut."""
        try:
            return await self._ask(texts, purpose)
        except _TooLong as refused:
            if len(texts) > 1:
                return np.concatenate([await self._fitting([text], purpose, cut) for text in texts])
            if cut + 1 >= len(CUTS):
                raise self._refused(f"says that a text of {len(texts[0])} characters is too long") from refused
            return await self._fitting([texts[0][: CUTS[cut + 1]]], purpose, cut + 1)

    async def _ask(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import openai  # half a second and 40 MB that nobody pays who embeds locally

        if self._paused_for is not None and (rest := self._paused_until - self._clock()) > 0:
            raise self._away(self._paused_for.message, self._paused_for, rest)
        try:
            async with asyncio.timeout(self._seconds[purpose]), self._calls[purpose]:
                answered = await self._request(texts)
            vectors = self._checked(answered, len(texts))
        except openai.APIStatusError as error:
            raise self._status(error) from error
        except (openai.APIConnectionError, TimeoutError) as error:
            what = "did not answer in time" if isinstance(error, TimeoutError) else "cannot be reached"
            what = "did not answer in time" if isinstance(error, openai.APITimeoutError) else what
            raise self._pause(self._unavailable(what)) from error
        except (openai.APIError, ValueError, TypeError, AttributeError) as error:
            # The client reads the body by hope: what is not embeddings ends in any of these.
            raise self._pause(self._unavailable("answers with what are no embeddings")) from error
        self._failures, self._paused_for = 0, None
        return vectors

    async def _request(self, texts: Sequence[str]) -> list[tuple[int, list[float]]]:
        import openai

        if self._client is None:
            self._client = openai.AsyncOpenAI(
                # The client insists on a key; a server on this machine may want none.
                api_key=self._endpoint.key or "none",
                base_url=self._endpoint.base_url,
                max_retries=0,
                timeout=max(self._seconds.values()),
            )
        says_dimension = self._says_dimension
        try:
            answer = await self._client.embeddings.create(
                model=self._endpoint.model,
                input=list(texts),
                dimensions=self.dimension if says_dimension else openai.omit,
            )
        except openai.APIStatusError as error:
            if not says_dimension or error.status_code not in (400, 422) or "dimension" not in _said(error).lower():
                raise
            # Older models have one size and refuse to be told it; what they answer is checked all the same.
            self._says_dimension = False
            return await self._request(texts)
        return [(row.index, row.embedding) for row in answer.data]

    def _checked(self, answered: Sequence[tuple[int, list[float]]], count: int) -> Vectors:
        """The vectors in the order of the texts, of length one."""
        rows = dict(answered)
        if len(answered) != count or rows.keys() != set(range(count)):
            raise self._pause(self._unavailable(f"answered {len(answered)} vectors for {count} texts, or misnumbered"))
        sizes = sorted({len(row) for row in rows.values()} - {self.dimension})
        if sizes:
            error = Unavailable(
                "FIELD_INVALID",
                f"{self._where()} answers vectors of {sizes[0]} numbers, and {SETTING} says dim={self.dimension}",
                field=SETTING,
                value=f"openai://{self._endpoint.model}?dim={self.dimension}",
                next_step=f"Set dim={sizes[0]}, or use a model that has {self.dimension}.",
                metadata={"endpoint": self._endpoint.base_url, "dimension": str(sizes[0])},
            )
            raise self._pause(error)
        vectors = np.array([rows[place] for place in range(count)], np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise self._pause(self._unavailable("answers vectors with numbers that are none"))
        unit: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        return unit

    def _status(self, error: openai.APIStatusError) -> Exception:
        """What a refusal means, and whether to ask again."""
        status, said = error.status_code, _said(error)
        if status in (401, 403):
            return self._pause(self._key_refused(status))
        if status == 413 or (status in (400, 422) and _TOO_LONG.search(said)):
            return _TooLong(said)
        if status in (400, 422):
            return self._refused(f"refuses the text with {status}: {shortened(said)}")
        if status in (404, 405):
            return self._pause(
                Unavailable(
                    "FIELD_INVALID",
                    f"{self._where()} does not exist: it answers {status}: {shortened(said)}",
                    field=SETTING,
                    value=f"openai://{self._endpoint.model}?dim={self.dimension}",
                    next_step=f"Check the model in {SETTING} and the address in OPENAI_BASE_URL.",
                    metadata={"endpoint": self._endpoint.base_url},
                )
            )
        after = retry_after(error.response.headers.get("retry-after", ""))
        return self._pause(self._unavailable(f"answers {status}"), after)

    def _key_refused(self, status: int) -> Unavailable:
        # What the server says is left out: some quote the key.
        origin = self._endpoint.key_origin
        from_where = f"the key from {origin}" if origin else "a call without a key"
        return Unavailable(
            "KEY_REFUSED",
            f"{self._endpoint.base_url} refused {from_where} with {status}",
            field=origin or "FLEETBRAIN_EMBEDDER_KEY",
            next_step=f"Put a key that {self._endpoint.base_url} accepts for {self._endpoint.model} into "
            f"{origin or 'FLEETBRAIN_EMBEDDER_KEY'} and start again.",
            metadata={"variable": origin, "endpoint": self._endpoint.base_url, "status": str(status)},
        )

    def _pause(self, error: Unavailable, after: float | None = None) -> Unavailable:
        """The error, with nothing asked for a while: as long as the endpoint says, else longer each time."""
        if after is None:
            after = min(PAUSE_SECONDS * 2.0 ** min(self._failures, 16), PAUSE_SECONDS_MAX) * (0.5 + self._jitter() / 2)
        else:
            after = min(after, RETRY_AFTER_SECONDS_MAX) * (1 + self._jitter() / 10)
        self._failures += 1
        self._paused_until, self._paused_for = self._clock() + after, error
        error.retry_after_seconds = after
        return error

    def _away(self, message: str, like: Unavailable, rest: float) -> Unavailable:
        return Unavailable(
            like.reason,
            message,
            field=like.field,
            value=like.value,
            next_step=like.next_step,
            metadata=like.metadata,
            retry_after_seconds=rest,
        )

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(
            "PEER_UNAVAILABLE",
            f"{self._where()} {what}",
            next_step="Words are searched meanwhile; vectors come when it answers.",
            metadata={"peer": self._endpoint.base_url},
        )

    def _refused(self, what: str) -> BrainError:
        return InvalidArgument(
            "FIELD_INVALID",
            f"{self._where()} {what}",
            field="texts",
            next_step="The page is found by its words; shorten the passage, or use another model.",
            metadata={"endpoint": self._endpoint.base_url},
        )

    def _where(self) -> str:
        return f"the embedder {self._endpoint.model} at {self._endpoint.base_url}"


class _TooLong(Exception):
    """The endpoint wants fewer or shorter texts."""


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, each cut to what any model reads, in calls of bounded size."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        # Servers refuse an empty input; a blank stands for it.
        cut = text[: CUTS[0]] or " "
        if batch and (len(batch) == BATCH_TEXTS_MAX or characters + len(cut) > BATCH_CHARACTERS_MAX):
            yield batch
            batch, characters = [], 0
        batch.append(cut)
        characters += len(cut)
    if batch:
        yield batch


def retry_after(header: str) -> float | None:
    """The seconds that a `Retry-After` says; None where it says none. A date is left to our own pauses."""
    return float(header) if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", header.strip(), re.ASCII) else None


def _said(error: openai.APIStatusError) -> str:
    """What the server said, whatever form it chose."""
    return error.message or str(error.body)
