"""Which store of a projection serves: a small file beside the stores' folders, replaced as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from services.runtime.data_folder import write_atomic
from services.runtime.projection_store import RebuildResult

FILE = "current.json"
RESULTS_MAX = 16
"""Results of finished rebuilds that are remembered, so that a job asked for again is answered and not done twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """The store that serves, and the log's last revision when it was begun."""

    store_id: str
    ready_from: int
    results: Mapping[str, RebuildResult] = field(default_factory=dict)

    def with_result(self, result: RebuildResult) -> Mapping[str, RebuildResult]:
        """The results, the newest last, without the oldest beyond RESULTS_MAX."""
        results = {**self.results, result.job_id: result}
        return dict(list(results.items())[-RESULTS_MAX:])


def read_pointer(folder: Path) -> Pointer | None:
    """The pointer; None when there is none yet, or one that cannot be read: then the store is built anew."""
    try:
        body = orjson.loads((folder / FILE).read_bytes())
        results = {r["job_id"]: RebuildResult(**r) for r in body["results"]}
        return Pointer(store_id=str(body["store_id"]), ready_from=int(body["ready_from"]), results=results)
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None


def write_pointer(folder: Path, pointer: Pointer) -> None:
    """Makes another store the one that serves."""
    results = [{"job_id": r.job_id, "store_id": r.store_id, "pages": r.pages} for r in pointer.results.values()]
    body = {"store_id": pointer.store_id, "ready_from": pointer.ready_from, "results": results}
    write_atomic(folder / FILE, orjson.dumps(body, option=orjson.OPT_INDENT_2))


def other_stores(folder: Path, store_id: str) -> list[str]:
    """Stores that nobody points to: of rebuilds that a death cut short."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != store_id)


def remove_store(folder: Path, store_id: str) -> None:
    """Removes a store's files."""
    shutil.rmtree(folder / store_id, ignore_errors=True)
