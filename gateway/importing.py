"""Streams a folder into a brain: batches of files out, one result per file in, both at once."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import brain.v1.ingest_service_pb2 as pb
from brain.v1.error_reason_pb2 import ErrorReason
from brain.v1.ingest_service_pb2_grpc import IngestServiceStub
from gateway.folder import Refused, read
from services.domain.context import OperationContext
from services.domain.errors import Conflict, InvalidArgument, PermissionDenied
from services.runtime.calls import operation
from services.runtime.channels import open_channel

if TYPE_CHECKING:
    # The asynchronous stub is a type only: the generated code has one class for both.
    from brain.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub

BATCH_BYTES_MAX = 2_000_000
"""Half of what a message may hold: enough for the log's window, and progress that moves."""
BATCH_FILES_MAX = 500
HEADER_BYTES_MAX = 2_000_000
IMPORT_SECONDS_MAX = 6 * 3600.0
"""A million files take an hour; whatever takes longer is stuck."""


@dataclass(slots=True, kw_only=True)
class ImportSummary:
    """What became of the files."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    last_revision: int = 0
    """The highest revision that the import wrote or found."""
    refused: list[Refused] = field(default_factory=list)
    findings: list[tuple[str, str, int, str, str]] = field(default_factory=list)
    """Path, code, line, message and next step of what the parser noticed."""

    @property
    def done(self) -> int:
        """Files of which it is known what became of them."""
        return self.created + self.updated + self.unchanged + len(self.refused)


async def import_folder(
    address: str,
    *,
    caller: OperationContext,
    source: str,
    import_id: str,
    root: Path,
    paths: Sequence[str],
    slugs: Mapping[str, str],
    summary: ImportSummary,
    on_progress: Callable[[], None],
) -> None:
    """Imports the files and fills the summary as results come; what was acknowledged stays when the stream breaks.

    Args:
        address: Where ingest answers.
        caller: On whose behalf.
        source: The source; empty means `default`.
        import_id: Names this import.
        root: The folder.
        paths: Files below it.
        slugs: Of the files that an export could not name by their slug; the others get theirs by their paths.
        summary: Is filled.
        on_progress: Called after some files.

    Raises:
        BrainError: The stream broke, or the brain refused the import as a whole.
    """
    async with open_channel(address, service="brain.v1.IngestService") as channel:
        stub: IngestServiceAsyncStub = IngestServiceStub(channel)
        with operation(caller, timeout_seconds=IMPORT_SECONDS_MAX):
            requests = _requests(source, import_id, root, [path for path in paths if path not in slugs], summary)
            async for response in stub.ImportPages(requests):
                for result in response.results:
                    _count(summary, result)
                on_progress()
            for path in paths:
                if path in slugs:
                    await _put(stub, source, import_id, root, path, slugs[path], summary)
                    on_progress()


async def _put(
    stub: IngestServiceAsyncStub,
    source: str,
    import_id: str,
    root: Path,
    path: str,
    slug: str,
    summary: ImportSummary,
) -> None:
    """Writes one page under a slug that its file's path does not tell."""
    body = read(root, path)
    if isinstance(body, Refused):
        summary.refused.append(body)
        return
    request_id = f"{import_id}-{hashlib.sha256(path.encode()).hexdigest()[:11]}"
    try:
        reply = await stub.PutPage(pb.PutPageRequest(source=source, slug=slug, body=body, request_id=request_id))
    except (Conflict, InvalidArgument, PermissionDenied) as error:
        refused = Refused(path=path, reason=error.reason, message=error.message, next_step=error.next_step)
        summary.refused.append(refused)
        return
    _count_status(summary, reply.result.status, reply.result.revision)


async def _requests(
    source: str, import_id: str, root: Path, paths: Sequence[str], summary: ImportSummary
) -> AsyncIterator[pb.ImportPagesRequest]:
    for announced in _parts(paths):
        header = pb.ImportHeader(source=source, import_id=import_id, paths=announced)
        yield pb.ImportPagesRequest(header=header)
    batch, size = pb.ImportBatch(), 0
    for path in paths:
        body = read(root, path)
        if isinstance(body, Refused):
            summary.refused.append(body)
            continue
        if batch.files and (size + len(body) > BATCH_BYTES_MAX or len(batch.files) >= BATCH_FILES_MAX):
            yield pb.ImportPagesRequest(batch=batch)
            batch, size = pb.ImportBatch(), 0
        batch.files.add(path=path, body=body)
        size += len(body)
    if batch.files:
        yield pb.ImportPagesRequest(batch=batch)


def _parts(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths in parts that fit into a message; one part when there are none, because a header must come."""
    part: list[str] = []
    size = 0
    for path in paths:
        part.append(path)
        size += 3 * len(path) + 8
        if size > HEADER_BYTES_MAX:
            yield part
            part, size = [], 0
    yield part


def _count(summary: ImportSummary, result: pb.ImportResult) -> None:
    if result.HasField("error"):
        error = result.error
        summary.refused.append(
            Refused(
                path=result.path,
                reason=ErrorReason.Name(error.reason).removeprefix("ERROR_REASON_"),
                message=error.message,
                next_step=error.next_step,
                line=error.line,
            )
        )
    else:
        _count_status(summary, result.status, result.revision)
    for f in result.findings:
        summary.findings.append((result.path, f.code, f.line, f.message, f.next_step))


def _count_status(summary: ImportSummary, status: pb.WriteStatus.ValueType, revision: int) -> None:
    if status == pb.WRITE_STATUS_UNCHANGED:
        summary.unchanged += 1
    elif status == pb.WRITE_STATUS_CREATED:
        summary.created += 1
    else:
        summary.updated += 1
    summary.last_revision = max(summary.last_revision, revision)
