"""`python -m tests.e2e.acknowledging_import ADDRESS FOLDER`: imports, and prints each result when it comes."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import brain.v1.ingest_service_pb2 as pb
from brain.v1.ingest_service_pb2_grpc import IngestServiceStub
from gateway.folder import walk
from services.domain.context import local_context
from services.domain.errors import BrainError
from services.runtime.calls import operation
from services.runtime.channels import open_channel

FILES_PER_BATCH = 20
"""Small batches, so that a kill falls between the results of one import."""


async def main(address: str, root: Path) -> None:
    """Ends quietly when the brain is gone: that is what it is for."""
    paths = walk(root).paths

    async def requests() -> AsyncIterator[pb.ImportPagesRequest]:
        yield pb.ImportPagesRequest(header=pb.ImportHeader(import_id=uuid.uuid4().hex[:16], paths=paths))
        for start in range(0, len(paths), FILES_PER_BATCH):
            files = [
                pb.ImportFile(path=path, body=(root / path).read_bytes())
                for path in paths[start : start + FILES_PER_BATCH]
            ]
            yield pb.ImportPagesRequest(batch=pb.ImportBatch(files=files))

    async with open_channel(address, service="brain.v1.IngestService") as channel:
        with operation(local_context("test"), timeout_seconds=60):
            try:
                async for response in IngestServiceStub(channel).ImportPages(requests()):
                    for result in response.results:
                        print(json.dumps({"slug": result.slug, "revision": result.revision}), flush=True)
            except BrainError:
                return


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
