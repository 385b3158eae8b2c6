"""The gRPC edge of ingest: messages in, use cases called, messages out."""

from __future__ import annotations

from collections.abc import AsyncIterator

from grpc import aio

from brain.v1 import ingest_service_pb2 as pb
from brain.v1 import ingest_service_pb2_grpc
from services.domain.context import DEFAULT_SOURCE
from services.domain.records import Operation
from services.domain.slugs import canonical_slug, check_source
from services.ingest import messages
from services.ingest.app.imports import PATHS_MAX, ImportFile, ImportRun, begin_import
from services.ingest.app.reads import KEYS_DEFAULT, KEYS_MAX, VERSIONS_MAX, ReadPages
from services.ingest.app.writes import WritePages
from services.ingest.requests import change_request, field_invalid, field_required, page_key, put_request
from services.runtime.calls import current_context
from services.runtime.pages import decode_page_token, encode_page_token


class IngestServicer(ingest_service_pb2_grpc.IngestServiceServicer):
    """`brain.v1.IngestService`. Errors are raised as they are; the interceptor gives them their status."""

    def __init__(self, writes: WritePages, reads: ReadPages) -> None:
        self._writes = writes
        self._reads = reads

    async def PutPage(  # noqa: N802
        self, request: pb.PutPageRequest, context: aio.ServicerContext[pb.PutPageRequest, pb.PutPageResponse]
    ) -> pb.PutPageResponse:
        """Writes a page."""
        put = put_request(
            source=request.source,
            slug=request.slug,
            body=request.body,
            request_id=request.request_id,
            if_revision=request.if_revision if request.HasField("if_revision") else None,
            overwrite=request.overwrite,
            allow_empty=request.allow_empty,
            provenance=messages.provenance_from(request.provenance),
        )
        reply = await self._writes.write(current_context(), put)
        return pb.PutPageResponse(result=messages.write_result(reply))

    async def GetPage(  # noqa: N802
        self, request: pb.GetPageRequest, context: aio.ServicerContext[pb.GetPageRequest, pb.GetPageResponse]
    ) -> pb.GetPageResponse:
        """Returns a page."""
        if request.revision < 0:
            raise field_invalid("revision", request.revision, "is negative", "Give a revision, or 0 for the current.")
        read = await self._reads.get(
            current_context(),
            page_key(request.source, request.slug),
            revision=request.revision,
            include_deleted=request.include_deleted,
        )
        page = messages.page(read, include_body=request.include_body)
        return pb.GetPageResponse(page=page, moved_to=read.moved_to)

    async def DeletePage(  # noqa: N802
        self, request: pb.DeletePageRequest, context: aio.ServicerContext[pb.DeletePageRequest, pb.DeletePageResponse]
    ) -> pb.DeletePageResponse:
        """Deletes a page."""
        return pb.DeletePageResponse(result=await self._change(Operation.DELETE, request))

    async def RestorePage(  # noqa: N802
        self,
        request: pb.RestorePageRequest,
        context: aio.ServicerContext[pb.RestorePageRequest, pb.RestorePageResponse],
    ) -> pb.RestorePageResponse:
        """Brings a deleted page back."""
        return pb.RestorePageResponse(result=await self._change(Operation.RESTORE, request))

    async def MovePage(  # noqa: N802
        self, request: pb.MovePageRequest, context: aio.ServicerContext[pb.MovePageRequest, pb.MovePageResponse]
    ) -> pb.MovePageResponse:
        """Gives a page another slug."""
        result = await self._change(Operation.MOVE, request, new_slug=request.new_slug)
        return pb.MovePageResponse(result=result)

    async def RevertVersion(  # noqa: N802
        self,
        request: pb.RevertVersionRequest,
        context: aio.ServicerContext[pb.RevertVersionRequest, pb.RevertVersionResponse],
    ) -> pb.RevertVersionResponse:
        """Writes an earlier revision again."""
        result = await self._change(Operation.REVERT, request, revision=request.revision)
        return pb.RevertVersionResponse(result=result)

    async def ListVersions(  # noqa: N802
        self,
        request: pb.ListVersionsRequest,
        context: aio.ServicerContext[pb.ListVersionsRequest, pb.ListVersionsResponse],
    ) -> pb.ListVersionsResponse:
        """Lists the kept revisions of a page."""
        key = page_key(request.source, request.slug)
        limit = page_size(request.page_size, default=VERSIONS_MAX, maximum=VERSIONS_MAX)
        arguments = {"list": "versions", "source": key.source, "slug": key.slug}
        before = int(decode_page_token(request.page_token, arguments)) if request.page_token else 0
        found, rest = await self._reads.versions(current_context(), key, limit=limit, before=before)
        return pb.ListVersionsResponse(
            versions=[messages.page(read, include_body=False) for read in found],
            next_page_token=encode_page_token(str(rest), arguments) if rest else "",
        )

    async def ListKeys(  # noqa: N802
        self, request: pb.ListKeysRequest, context: aio.ServicerContext[pb.ListKeysRequest, pb.ListKeysResponse]
    ) -> pb.ListKeysResponse:
        """Lists the addresses below a folder."""
        source = check_source(request.source or DEFAULT_SOURCE)
        folder = canonical_slug(request.folder.strip("/"), field="folder") if request.folder.strip("/") else ""
        limit = page_size(request.page_size, default=KEYS_DEFAULT, maximum=KEYS_MAX)
        arguments = {"list": "keys", "source": source, "folder": folder}
        after = decode_page_token(request.page_token, arguments) if request.page_token else ""
        slugs, rest, last = await self._reads.keys(current_context(), source, folder, limit=limit, after=after)
        token = encode_page_token(rest, arguments) if rest else ""
        return pb.ListKeysResponse(slugs=slugs, next_page_token=token, last_revision=last)

    async def ImportPages(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.ImportPagesRequest],
        context: aio.ServicerContext[pb.ImportPagesRequest, pb.ImportPagesResponse],
    ) -> AsyncIterator[pb.ImportPagesResponse]:
        """Takes files in batches and answers each batch with its results."""
        header: pb.ImportHeader | None = None
        paths: list[str] = []
        run: ImportRun | None = None
        async for message in request_iterator:
            if message.HasField("header"):
                if run is not None:
                    raise field_invalid("header", "", "came after a batch", "Send all headers before the first batch.")
                header = joined(header, message.header)
                paths.extend(message.header.paths)
                if len(paths) > PATHS_MAX:
                    raise field_invalid("header.paths", len(paths), f"has more than {PATHS_MAX} paths", "Send fewer.")
                continue
            if header is None:
                raise field_required("header", "Send the header before the first batch.")
            if run is None:
                source = check_source(header.source or DEFAULT_SOURCE)
                run = await begin_import(
                    current_context(), self._writes, source=source, import_id=header.import_id, paths=paths
                )
            files = [ImportFile(path=file.path, body=file.body) for file in message.batch.files]
            results = await run.add(files)
            yield pb.ImportPagesResponse(results=[messages.import_result(result) for result in results])

    async def _change(
        self,
        operation: Operation,
        request: pb.DeletePageRequest | pb.RestorePageRequest | pb.MovePageRequest | pb.RevertVersionRequest,
        *,
        new_slug: str = "",
        revision: int = 0,
    ) -> pb.WriteResult:
        """A write that is not a put."""
        change = change_request(
            operation,
            source=request.source,
            slug=request.slug,
            request_id=request.request_id,
            if_revision=request.if_revision if request.HasField("if_revision") else None,
            new_slug=new_slug,
            revision=revision,
        )
        return messages.write_result(await self._writes.write(current_context(), change))


def page_size(asked: int, *, default: int, maximum: int) -> int:
    """How many items a list may have: the default for 0, at most the maximum."""
    if asked < 0:
        raise field_invalid("page_size", asked, "is negative", f"Give 1 to {maximum}, or 0 for {default}.")
    return min(asked, maximum) if asked else default


def joined(first: pb.ImportHeader | None, header: pb.ImportHeader) -> pb.ImportHeader:
    """The header of an import whose paths come in several messages: they must speak of one import."""
    if first is None:
        return pb.ImportHeader(source=header.source, import_id=header.import_id)
    for field in ("source", "import_id"):
        if getattr(first, field) != getattr(header, field):
            raise field_invalid(
                f"header.{field}", getattr(header, field), "differs between headers", "Send one import a stream."
            )
    return first
