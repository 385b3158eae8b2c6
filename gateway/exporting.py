"""Writes every current page of a source as a file."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import brain.v1.ingest_service_pb2 as pb
from brain.v1.ingest_service_pb2_grpc import IngestServiceStub
from brain.v1.page_pb2 import Page
from gateway.export_names import FOLDER, file_of, write_list
from services.domain.context import OperationContext
from services.domain.errors import InvalidArgument, NotFound
from services.runtime.calls import operation
from services.runtime.channels import open_channel

if TYPE_CHECKING:
    # The asynchronous stub is a type only: the generated code has one class for both.
    from brain.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub

KEYS_PER_CALL = 1_000
KEY_PAGES_MAX = 10_000
READS_AT_ONCE = 32
"""Enough to hide the way to the log and back; more only wait there."""
EXPORT_SECONDS_MAX = 6 * 3600.0


@dataclass(slots=True, kw_only=True)
class ExportSummary:
    """What was written."""

    pages: int = 0
    bytes: int = 0


async def export_source(
    address: str, *, caller: OperationContext, source: str, target: Path, on_progress: Callable[[ExportSummary], None]
) -> ExportSummary:
    """Writes the pages below a folder that is empty or not there yet, named by their slugs where those are names."""
    _check_target(target)
    summary = ExportSummary()
    renamed: dict[str, str] = {}
    gate = asyncio.Semaphore(READS_AT_ONCE)
    async with open_channel(address, service="brain.v1.IngestService") as channel:
        stub: IngestServiceAsyncStub = IngestServiceStub(channel)

        async def export(slug: str) -> None:
            async with gate:
                page = await _read(stub, source, slug)
            if page is not None:
                path = file_of(page.slug)
                if path.startswith(f"{FOLDER}/"):
                    renamed[path] = page.slug
                await asyncio.to_thread(_write, target.joinpath(*PurePosixPath(path).parts), page.body)
                summary.pages += 1
                summary.bytes += len(page.body)

        with operation(caller, timeout_seconds=EXPORT_SECONDS_MAX):
            token = ""
            for _ in range(KEY_PAGES_MAX):
                keys = await stub.ListKeys(pb.ListKeysRequest(source=source, page_size=KEYS_PER_CALL, page_token=token))
                async with asyncio.TaskGroup() as tasks:
                    for slug in keys.slugs:
                        tasks.create_task(export(slug))
                on_progress(summary)
                token = keys.next_page_token
                if not token:
                    break
    write_list(target, renamed)
    return summary


async def _read(stub: IngestServiceAsyncStub, source: str, slug: str) -> Page | None:
    """The page that is live under exactly this slug; None for deleted and moved ones."""
    try:
        response = await stub.GetPage(pb.GetPageRequest(source=source, slug=slug, include_body=True))
    except NotFound:
        return None
    return None if response.moved_to else response.page


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{hashlib.sha256(path.name.encode()).hexdigest()[:16]}.part")
    temporary.write_bytes(body)
    temporary.replace(path)


def _check_target(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(os.scandir(target))):
        raise InvalidArgument(
            "FILE_INVALID",
            f"{target} is there and not an empty folder",
            field="folder",
            value=str(target),
            next_step="Name a folder that is empty or not there yet.",
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(
            "FILE_INVALID",
            f"{target} cannot be made: {error.strerror}",
            field="folder",
            value=str(target),
            next_step="Name a folder that this user can write.",
        ) from error
