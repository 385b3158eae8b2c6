"""The same random histories for the model and for ingest's decisions over a log: every outcome must be the same.

Writes decide and append in two steps, so that others come between; replies get lost and requests are sent again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from services.domain.errors import BrainError
from services.domain.parser import PageParser
from services.domain.records import KEPT_PER_SLUG, Operation, PageId, PageKey, PageRecord
from services.ingest.app.pages import Pages
from services.ingest.app.writes import WritePages
from services.ingest.decide import Append, Repeated, Stamp, Unchanged, decide
from services.ingest.ports import PageLog, WrongLastSequence
from services.ingest.requests import WriteRequest
from tests import page_log_model as model
from tests.unit.ingest.memory_log import MemoryLog

SLUGS = ["a", "b", "c"]
BODIES = ["A", "B\n[[a]]", "C\n[[A]]\nsee [[b]]", "A\n[[c]]\n[[B]]"]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

OperationName = Literal["put", "delete", "restore", "move", "revert", "erase"]
OPERATIONS: list[OperationName] = ["put", "put", "put", "delete", "restore", "move", "move", "revert", "erase"]


@dataclass(slots=True)
class Pending:
    """A write that both sides have decided and neither has appended."""

    asked: model.Request
    theirs: list[model.Record]
    request: WriteRequest
    ours: Append


class LogMachine(RuleBasedStateMachine):
    """Drives the model and ingest side by side over the log that `open_log` gives."""

    def open_log(self, kept: int) -> tuple[PageLog, str, int]:
        """A log, the slug prefix that this example has for itself, and the log's last revision."""
        return MemoryLog(kept), "", 0

    def open_runner(self) -> asyncio.Runner:
        """The event loop that the example runs on."""
        return asyncio.Runner()

    kept_choices: tuple[int, ...] = (2, 3, 64)

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.runner = self.open_runner()
        self.kept = data.draw(st.sampled_from(self.kept_choices), label="kept")
        self.log, self.prefix, self.offset = self.open_log(self.kept)
        self.writes = WritePages(
            pages=Pages(log=self.log, parser=PageParser()), clock=lambda: NOW, new_page_id=lambda: PageId("unused")
        )
        self.model = model.PageLog(kept_per_slug=self.kept)
        self.requests: list[model.Request] = []
        self.pending: list[Pending] = []
        self.erased: set[str] = set()
        self.minted = 0

    @rule(
        operation=st.sampled_from(OPERATIONS),
        slug=st.sampled_from(SLUGS),
        new_slug=st.sampled_from(SLUGS),
        body=st.sampled_from(BODIES),
        expectation=st.sampled_from(["none", "current", "stale", "zero", "overwrite"]),
        pick=st.integers(0, 5),
        at_once=st.booleans(),
    )
    def write(
        self,
        operation: OperationName,
        slug: str,
        new_slug: str,
        body: str,
        expectation: str,
        pick: int,
        at_once: bool,
    ) -> None:
        if operation == "move" and new_slug == slug:
            return
        if operation == "erase" and self.kept < KEPT_PER_SLUG:
            # An erasure under a former slug makes room that the slug's newest record, which counts what was written,
            # does not know of: it forgets a little earlier than the log. So erasing and pushing out are tried apart.
            return
        current = self.model.newest(slug)
        revision = current.revision if current else 0
        revisions = [r.revision for r in self.model.kept.get(slug, ())]
        request = model.Request(
            operation=operation,
            slug=slug,
            request_id=f"r{len(self.requests)}",
            if_revision={"current": revision, "stale": max(revision - 1, 1), "zero": 0}.get(expectation),
            body=body if operation in ("put", "erase") else None,
            overwrite=expectation == "overwrite" and operation == "put",
            new_slug=new_slug if operation == "move" else "",
            revision=0 if operation != "revert" else revisions[pick % len(revisions)] if revisions else 1,
        )
        self.requests.append(request)
        self.begin(request)
        if at_once and self.pending and self.pending[-1].asked is request:
            self.finish(len(self.pending) - 1)

    @rule(slug=st.sampled_from(SLUGS), new_slug=st.sampled_from(SLUGS), delete=st.booleans())
    def change(self, slug: str, new_slug: str, delete: bool) -> None:
        """A write that fits the slug: a new page where none is, else a move or a delete."""
        current = self.model.newest(slug)
        live = current is not None and current.body is not None
        operation: OperationName = "put" if not live else "delete" if delete or new_slug == slug else "move"
        self.write(operation, slug, new_slug, BODIES[0], "current", 0, True)

    @precondition(lambda self: self.requests)
    @rule(pick=st.integers(0, 50))
    def retry(self, pick: int) -> None:
        self.begin(self.requests[pick % len(self.requests)])

    @precondition(lambda self: self.pending)
    @rule(pick=st.integers(0, 5))
    def finish_write(self, pick: int) -> None:
        self.finish(pick % len(self.pending))

    def begin(self, asked: model.Request) -> None:
        self.minted += 1
        page_id = f"p{self.minted}"
        theirs = self.model.decide(asked, page_id)
        request = self.translated(asked)
        ours = self.decided(request, page_id)
        if not isinstance(ours, Append) and ours[0] == "ERASED" and asked.request_id in self.erased:
            # The model forgets a request that was erased under a slug its page had left; ingest still refuses it.
            assert not isinstance(theirs, model.Reply) or theirs.outcome != "stored"
            return
        if isinstance(theirs, model.Reply):
            assert not isinstance(ours, Append), f"{asked} is to be refused: {theirs}"
            assert ours == expected_outcome(asked, theirs, self.model.newest(asked.slug)), asked
        else:
            assert isinstance(ours, Append), f"{asked} is to be stored, not {ours}"
            self.pending.append(Pending(asked, theirs, request, ours))

    def decided(self, request: WriteRequest, page_id: str) -> Append | tuple[str, int, str]:
        async def decided() -> Append | tuple[str, int, str]:
            view = await self.writes.view(request)
            stamp = Stamp(actor="a", remote=False, time=NOW, new_page_id=PageId(page_id), kept_per_slug=self.kept)
            try:
                decision = decide(request, view, stamp)
            except BrainError as error:
                return self.refusal(error, request)
            match decision:
                case Unchanged(record=record):
                    return "unchanged", record.revision - self.offset, self.bare(record.slug)
                case Repeated(revision=revision, slug=slug) as repeated:
                    try:
                        await self.writes.first_record(request, repeated)
                    except BrainError as error:
                        return self.refusal(error, request)
                    return "stored", revision - self.offset, self.bare(slug)
                case Append():
                    return decision

        return self.runner.run(decided())

    def refusal(self, error: BrainError, request: WriteRequest) -> tuple[str, int, str]:
        revision = max(int(error.metadata.get("revision", "0")) - self.offset, 0)
        slug = self.bare(error.metadata.get("moved_to", error.metadata.get("slug", request.key.slug)))
        match error.reason:
            case "REVISION_CONFLICT" | "SLUG_TAKEN":
                return "CONFLICT", revision, slug
            case "PAGE_NOT_FOUND" | "REVISION_NOT_FOUND" | "RESTORE_WINDOW_OVER":
                return "NOT_FOUND", 0, ""
            case reason:
                return reason, revision, slug

    def finish(self, index: int) -> None:
        pending = self.pending.pop(index)

        async def append() -> PageRecord | None:
            try:
                return (await self.log.append(pending.ours.batch))[-1]
            except WrongLastSequence:
                return None

        stored = self.runner.run(append())
        try:
            theirs = self.model.append(pending.theirs)
        except model.WrongLastSequence:
            assert stored is None, f"{pending.asked} was stored on a stale read"
            self.begin(pending.asked)
            return
        assert stored is not None, f"{pending.asked} was refused on a fresh read"
        assert self.told(stored) == shown(theirs)
        if theirs.erased_request_ids:
            self.erased |= theirs.erased_request_ids
            self.model.remove_erased(theirs)
            self.runner.run(self.writes.remove_erased(stored))
        self.compare()

    def compare(self) -> None:
        async def kept() -> dict[str, list[PageRecord]]:
            return {slug: await self.log.kept(self.key(slug)) for slug in SLUGS}

        for slug, records in self.runner.run(kept()).items():
            assert [self.told(r) for r in records] == [shown(r) for r in self.model.kept.get(slug, [])], slug

    def translated(self, asked: model.Request) -> WriteRequest:
        shifted = None if asked.if_revision is None else asked.if_revision + self.offset * (asked.if_revision > 0)
        return WriteRequest(
            operation=Operation(asked.operation),
            key=self.key(asked.slug),
            request_id=asked.request_id,
            body=None if asked.body is None else asked.body.encode(),
            if_revision=shifted,
            overwrite=asked.overwrite,
            new_slug=self.prefix + asked.new_slug if asked.new_slug else "",
            revision=asked.revision + self.offset if asked.revision else 0,
        )

    def told(self, record: PageRecord) -> tuple[object, ...]:
        """Our record in the model's terms."""
        return (
            self.bare(record.slug),
            str(record.kind),
            record.page_id,
            None if record.body is None else record.body.decode(),
            record.revision - self.offset,
            self.bare(record.moved_to),
            frozenset(self.bare(slug) for slug in record.former_slugs),
            record.erased_request_ids,
            record.request_id,
        )

    def key(self, slug: str) -> PageKey:
        return PageKey("default", self.prefix + slug)

    def bare(self, slug: str) -> str:
        return slug.removeprefix(self.prefix)

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return  # the example ended before it began
        try:
            if hasattr(self, "model"):
                self.compare()
        finally:
            self.close_runner()

    def close_runner(self) -> None:
        """Ends the event loop of the example."""
        self.runner.close()


def shown(record: model.Record) -> tuple[object, ...]:
    """The model's record as a comparable value."""
    return (
        record.slug,
        record.kind,
        record.page_id,
        record.body,
        record.revision,
        record.moved_to,
        record.former_slugs,
        record.erased_request_ids,
        record.request.request_id if record.request else "",
    )


def expected_outcome(asked: model.Request, theirs: model.Reply, current: model.Record | None) -> tuple[str, int, str]:
    """The model's reply in ours: what is deleted or live already is no error, but nothing is written either."""
    if theirs.outcome == "NOT_FOUND":
        live = current is not None and current.body is not None
        already = current is not None and asked.operation == ("restore" if live else "delete")
        return ("unchanged", theirs.revision, asked.slug) if already else ("NOT_FOUND", 0, "")
    return theirs.outcome, theirs.revision, theirs.slug or asked.slug
