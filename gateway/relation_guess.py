"""Reads relational questions that no rule reads: by likeness of the masked question to prototypes of each relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from brain.v1.search_service_pb2 import EMBED_PURPOSE_QUERY, EmbedTextsRequest
from gateway.peers import Peers
from gateway.retrieval.intent import Intent, IntentKind
from gateway.retrieval.model import NameMatch
from gateway.retrieval.plan import QUESTION_CHARACTERS_MAX, RelationalPlan
from gateway.retrieval.prototypes import PROTOTYPES, masked_question, name_candidates, prototype_match

EMBED_SECONDS = 1.0
"""One sentence takes milliseconds; a busy embedder must not hold the answer up for a guess."""


def candidate_names(text: str, intent: Intent) -> tuple[str, ...]:
    """Parts of a question that may be names, when it is one that a prototype could read; else none."""
    if intent.kind is not IntentKind.GENERAL or len(text) > QUESTION_CHARACTERS_MAX:
        return ()
    return name_candidates(text)


@dataclass(slots=True, kw_only=True)
class RelationGuess:
    """Compares questions with the prototypes. Holds their vectors as long as the embedder stays the same."""

    peers: Peers
    _signature: str = field(default="", init=False)
    _vectors: list[Sequence[float]] = field(default_factory=list, init=False)

    async def plan(
        self, text: str, intent: Intent, names: Sequence[str], resolved: Sequence[NameMatch]
    ) -> RelationalPlan | None:
        """The plan for a question in which one of the names is a page; None rather than a guess without one.

        Raises:
            BrainError: The embedder is off or does not answer.
        """
        pages = {match.name for match in resolved}
        # The longest part that is a name: "Loomwick Energy" is asked about, not "Loomwick".
        name = next((candidate for candidate in names if candidate in pages), None)
        if name is None:
            return None
        question = await self._embed(masked_question(text, name))
        return prototype_match(question, self._vectors, name=name, language=intent.language)

    async def _embed(self, sentence: str) -> Sequence[float]:
        texts = [sentence] if self._vectors else [sentence, *(prototype.sentence for prototype in PROTOTYPES)]
        response = await self._embedded(texts)
        if response[0] != self._signature and len(texts) == 1:
            # Another model than the one that the prototypes were embedded with: all anew.
            self._vectors = []
            return await self._embed(sentence)
        if len(texts) > 1:
            self._signature, self._vectors = response[0], response[1][1:]
        return response[1][0]

    async def _embedded(self, texts: Sequence[str]) -> tuple[str, list[Sequence[float]]]:
        request = EmbedTextsRequest(texts=texts, purpose=EMBED_PURPOSE_QUERY)
        response = await self.peers.search.EmbedTexts(request, timeout=EMBED_SECONDS)
        return response.signature, [list(embedding.values) for embedding in response.embeddings]
