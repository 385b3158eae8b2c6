"""Builds ingest from what a process gives it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from brain.v1 import ingest_service_pb2_grpc
from services.domain.parser import PageParser
from services.domain.records import PageId
from services.ingest.app.pages import Pages
from services.ingest.app.reads import ReadPages
from services.ingest.app.writes import WritePages
from services.ingest.servicer import IngestServicer
from services.runtime.bus import Bus
from services.runtime.process import Module
from services.runtime.settings import Settings


@asynccontextmanager
async def open_module(settings: Settings, bus: Bus, parser: PageParser) -> AsyncIterator[Module]:
    """The service as a process hosts it. It keeps nothing of its own: any number of replicas may run."""
    servicer = build_servicer(bus, parser)
    yield Module(
        name="ingest",
        grpc_services=("brain.v1.IngestService",),
        register=lambda server: ingest_service_pb2_grpc.add_IngestServiceServicer_to_server(servicer, server),
        ready=lambda: bus.storing,
    )


def build_servicer(bus: Bus, parser: PageParser) -> IngestServicer:
    """The use cases over the page log, and their edge."""
    pages = Pages(log=bus.page_log, parser=parser)
    writes = WritePages(pages=pages, clock=lambda: datetime.now(UTC), new_page_id=lambda: PageId(str(uuid.uuid4())))
    return IngestServicer(writes, ReadPages(pages=pages))
