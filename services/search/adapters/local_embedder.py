"""`Embedder` by the models that come in packages: queries in the process that owns the vectors, passages in another.

Passages are embedded at idle priority and in small calls; a query never waits behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.domain.errors import InvalidArgument
from services.search.adapters.child import Child
from services.search.adapters.local_models import DIMENSIONS, signature
from services.search.ports import Purpose, Vectors

CALL_TEXTS_MAX = 16
"""Passages a call: about a second of work at idle priority, so that a stop or a cancel is never far."""


class LocalEmbedder:
    """One of the local models."""

    def __init__(self, model: str, *, queries: Child, passages: Child) -> None:
        """Describes it; the model is loaded at the first text.

        Args:
            model: `use` or `e5`.
            queries: The child that embeds queries.
            passages: The child that embeds passages.
        """
        if model not in DIMENSIONS:
            raise InvalidArgument(
                "FIELD_INVALID",
                f"there is no local model {model!r}",
                field="FLEETBRAIN_EMBEDDER_URL",
                value=f"local:{model}",
                next_step=f"Use one of: {', '.join(f'local:{name}' for name in sorted(DIMENSIONS))}, or none.",
            )
        self._model = model
        self._queries = queries
        self._passages = passages
        self.signature = signature(model)
        self.dimension = DIMENSIONS[model]

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """See `Embedder.embed`."""
        child = self._queries if purpose is Purpose.QUERY else self._passages
        parts = [
            await child.call("embed", self._model, list(texts[start : start + CALL_TEXTS_MAX]), purpose)
            for start in range(0, len(texts), CALL_TEXTS_MAX)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    async def close(self) -> None:
        """Nothing of its own: the children are closed by who opened them."""
