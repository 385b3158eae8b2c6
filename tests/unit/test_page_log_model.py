"""The model keeps the design's promises under every interleaving that Hypothesis finds.

Writers decide and append in two steps; replies get lost and requests are sent again; two replicas of one store, a
second store and stores begun later take messages late, twice, in any order and in parallel, and die in mid apply.
"""

# The machine knows from its own bookkeeping that what it reads is there; a type checker cannot.
# mypy: disable-error-code="union-attr, arg-type, assignment"

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.page_log_model import PageLog, Record, Reply, Request, Store, WrongLastSequence, rebuild, watermark

SLUGS = ["a", "b", "c"]
BODIES = ["A", "B\n[[a]]", "C\n[[A]]\nsee [[b]]", "A\n[[c]]\n[[B]]"]


@dataclass
class Durable:
    """The consumer of one store: what it has delivered, what is not acknowledged, and what its store has applied."""

    skipped: frozenset[int] = frozenset()
    ready_from: int = 0
    delivered: int = 0
    unacknowledged: set[int] = field(default_factory=set)
    applied: dict[str, int] = field(default_factory=dict)

    def deliver(self, log: PageLog) -> Record | None:
        kept = [r for records in log.kept.values() for r in records]
        waiting = [r for r in kept if r.revision > self.delivered and r.revision not in self.skipped]
        message = min(waiting, key=lambda r: r.revision, default=None)
        if message is not None:
            self.delivered = message.revision
            self.unacknowledged.add(message.revision)
        return message


@dataclass
class Worker:
    """One replica of a service with one message in hand."""

    store: int
    message: Record
    steps: Iterator[None]


class PageLogMachine(RuleBasedStateMachine):
    @initialize(kept=st.sampled_from([2, 3, 64]))
    def start(self, kept: int) -> None:
        self.log = PageLog(kept_per_slug=kept)
        self.appended: list[Record] = []
        self.requests: list[Request] = []
        self.pending_writes: list[tuple[Request, list[Record]]] = []
        self.stored: dict[tuple[str, str], Reply] = {}
        self.pages: dict[str, tuple[str, str]] = {}
        self.names: dict[str, str] = {}
        self.erased: set[int] = set()
        self.unfinished_erases: list[Record] = []
        self.stores = [Store(), Store()]
        self.durables = [Durable(), Durable()]
        self.workers: list[Worker] = []
        self.orphans = False
        self.minted = 0

    def begin(self, request: Request) -> None:
        self.minted += 1
        decision = self.log.decide(request, new_page_id=f"p{self.minted}")
        if isinstance(decision, Reply):
            self.answered(request, decision)
        else:
            self.pending_writes.append((request, decision))

    @rule(
        operation=st.sampled_from(["put", "put", "put", "delete", "restore", "move", "move", "revert", "erase"]),
        slug=st.sampled_from(SLUGS),
        new_slug=st.sampled_from(SLUGS),
        body=st.sampled_from(BODIES),
        expectation=st.sampled_from(["none", "current", "stale", "zero", "overwrite"]),
        pick=st.integers(0, 5),
        at_once=st.booleans(),
    )
    def write(
        self, operation: str, slug: str, new_slug: str, body: str, expectation: str, pick: int, at_once: bool
    ) -> None:
        current = self.log.newest(slug)
        revision = current.revision if current else 0
        if_revision = {"current": revision, "stale": max(revision - 1, 1), "zero": 0}.get(expectation)
        revisions = [r.revision for r in self.log.kept.get(slug, ())]
        request = Request(
            operation=operation,
            slug=slug,
            request_id=f"r{len(self.requests)}",
            if_revision=if_revision,
            body=body if operation in ("put", "erase") else None,
            overwrite=expectation == "overwrite" and operation == "put",
            new_slug=new_slug if operation == "move" else "",
            revision=revisions[pick % len(revisions)] if operation == "revert" and revisions else 0,
        )
        if operation == "move" and new_slug == slug:
            return
        self.requests.append(request)
        self.begin(request)
        if at_once and self.pending_writes and self.pending_writes[-1][0] is request:
            self.finish(len(self.pending_writes) - 1)

    @rule(slug=st.sampled_from(SLUGS), new_slug=st.sampled_from(SLUGS), delete=st.booleans())
    def change(self, slug: str, new_slug: str, delete: bool) -> None:
        """A write that fits the slug: a new page where none is, else a move or a delete."""
        current = self.log.newest(slug)
        live = current is not None and current.body is not None
        operation = "put" if not live else "delete" if delete or new_slug == slug else "move"
        self.write(operation, slug, new_slug, BODIES[0], "current", 0, True)

    @rule(store=st.integers(0, 5))
    def deliver_whole(self, store: int) -> None:
        self.deliver(store, 99)

    @precondition(lambda self: self.requests)
    @rule(pick=st.integers(0, 50))
    def retry(self, pick: int) -> None:
        self.begin(self.requests[pick % len(self.requests)])

    @precondition(lambda self: self.pending_writes)
    @rule(pick=st.integers(0, 5))
    def finish_write(self, pick: int) -> None:
        self.finish(pick % len(self.pending_writes))

    def finish(self, index: int) -> None:
        request, batch = self.pending_writes.pop(index)
        key = (request.slug, request.request_id)
        known = key in self.stored and self.still_known(self.stored[key])
        before = self.log.last_revision
        current = self.log.newest(request.slug)
        try:
            stored = self.log.append(batch)
        except WrongLastSequence:
            self.begin(request)
            return
        if request.if_revision is not None and not request.overwrite:
            fresh = request.if_revision == (current.revision if current else 0)
            assert fresh or (request.if_revision == 0 and current.kind == "delete"), "a stale if_revision succeeded"
        for offset, record in enumerate(batch):
            self.appended.append(self.log.newest(record.slug))
            assert self.log.newest(record.slug).revision == before + 1 + offset
        self.happened(stored)
        reply = Reply("stored", stored.revision, stored.slug)
        assert not known, "a request was stored twice"
        self.stored[key] = reply
        if stored.erased_request_ids:
            self.unfinished_erases.append(stored)

    def still_known(self, reply: Reply) -> bool:
        record = next(r for r in self.appended if r.revision == reply.revision)
        same = [r for r in self.appended if r.request == record.request and r.slug == record.request.slug]
        return same[-1] in self.log.kept.get(record.request.slug, ())

    def answered(self, request: Request, reply: Reply) -> None:
        key = (request.slug, request.request_id)
        if reply.outcome == "stored":
            assert self.stored[key] == reply, "a retry got another reply"
        elif key in self.stored and self.still_known(self.stored[key]):
            assert reply.outcome == "ERASED", "a retry was refused"

    def happened(self, stored: Record) -> None:
        """The truth, told from what was asked and without looking at the log."""
        if stored.kind == "delete":
            self.pages.pop(stored.page_id, None)
            return
        if stored.kind == "move":
            self.names[self.pages[stored.page_id][0]] = stored.page_id
        self.names[stored.slug] = stored.page_id
        self.pages[stored.page_id] = (stored.slug, stored.body)

    @precondition(lambda self: self.unfinished_erases)
    @rule()
    def finish_erase(self) -> None:
        record = self.unfinished_erases.pop(0)
        self.log.remove_erased(record)
        self.erased |= {
            r.revision
            for r in self.appended
            if r.page_id == record.page_id and r.revision < record.revision and r.body is not None
        }
        left = [r for records in self.log.kept.values() for r in records if r.revision in self.erased]
        assert not left, "erased content is still in the log"

    @rule(store=st.integers(0, 5), steps=st.integers(0, 12))
    def deliver(self, store: int, steps: int) -> None:
        store %= len(self.stores)
        message = self.durables[store].deliver(self.log)
        if message is not None:
            self.start_worker(store, message, steps)

    @precondition(lambda self: self.appended)
    @rule(store=st.integers(0, 5), pick=st.integers(0, 50), steps=st.integers(0, 12))
    def deliver_again(self, store: int, pick: int, steps: int) -> None:
        """An acknowledgement was lost or came too late; any older message may come again, in any order."""
        store %= len(self.stores)
        message = self.appended[pick % len(self.appended)]
        if message.revision <= self.durables[store].delivered and message in self.log.kept[message.slug]:
            self.start_worker(store, message, steps)

    def start_worker(self, store: int, message: Record, steps: int) -> None:
        self.workers.append(Worker(store, message, self.stores[store].apply(self.log, message.slug)))
        for _ in range(steps):
            if not self.advance(self.workers[-1]):
                return

    def advance(self, worker: Worker) -> bool:
        for _ in worker.steps:
            return True
        self.workers.remove(worker)
        durable = self.durables[worker.store]
        durable.unacknowledged.discard(worker.message.revision)
        durable.applied[worker.message.slug] = self.log.newest(worker.message.slug).revision
        return False

    @precondition(lambda self: self.workers)
    @rule(pick=st.integers(0, 5), steps=st.integers(1, 8))
    def step(self, pick: int, steps: int) -> None:
        worker = self.workers[pick % len(self.workers)]
        for _ in range(steps):
            if not self.advance(worker):
                return

    @precondition(lambda self: self.workers)
    @rule(pick=st.integers(0, 5))
    def crash(self, pick: int) -> None:
        """A replica dies with a message in hand; it comes again unless acknowledged elsewhere or kept no more."""
        worker = self.workers.pop(pick % len(self.workers))
        self.redeliver(worker)

    def redeliver(self, worker: Worker) -> None:
        message, durable = worker.message, self.durables[worker.store]
        again = any(w.message.revision == message.revision and w.store == worker.store for w in self.workers)
        if message not in self.log.kept.get(message.slug, ()):
            durable.unacknowledged.discard(message.revision)
            self.orphans = True
        elif message.revision not in durable.unacknowledged:
            self.orphans = True
        elif not again:
            self.start_worker(worker.store, message, 0)

    @precondition(lambda self: len(self.stores) < 4)
    @rule()
    def start_rebuild(self) -> None:
        self.stores.append(Store())
        older = frozenset(r.revision for records in self.log.kept.values() for r in records[:-1])
        self.durables.append(Durable(skipped=older, ready_from=self.log.last_revision))

    @invariant()
    def every_page_has_one_slug(self) -> None:
        live = [r for s in self.log.kept for r in [self.log.newest(s)] if r.body is not None]
        assert {r.page_id: (r.slug, r.body) for r in live} == self.pages
        assert len(live) == len(self.pages)

    @invariant()
    def every_name_reaches_its_page(self) -> None:
        for slug, page_id in self.names.items():
            record = self.log.read(slug)
            assert (record and record.page_id) == (page_id if page_id in self.pages else None)

    @invariant()
    def every_acknowledged_revision_is_in_history(self) -> None:
        for page_id, (slug, _) in self.pages.items():
            known = {r.revision for r in self.log.history(self.log.read(slug))}
            for r in [r for r in self.appended if r.page_id == page_id and r.body is not None]:
                newer = sum(n.slug == r.slug and n.revision > r.revision for n in self.appended)
                erasing = [e for e in self.appended if e.erased_request_ids and e.page_id == page_id]
                erased = any(e.revision > r.revision for e in erasing)
                assert r.revision in known or newer >= self.log.kept_per_slug or erased

    @invariant()
    def no_watermark_claims_more_than_is_applied(self) -> None:
        for durable in self.durables:
            kept = {r.revision for records in self.log.kept.values() for r in records}  # a server forgets the others
            mark = watermark(durable.delivered, durable.unacknowledged & kept, durable.ready_from)
            for slug, records in self.log.kept.items():
                claimed = max((r.revision for r in records if r.revision <= mark), default=0)
                assert durable.applied.get(slug, 0) >= claimed

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        while self.unfinished_erases:
            self.finish_erase()
        for index, durable in enumerate(self.durables):
            while (message := durable.deliver(self.log)) is not None:
                self.start_worker(index, message, 1)
        while self.workers:
            self.advance(self.workers[-1])
        target = rebuild(self.log)
        if self.orphans:  # who died after a stale write of a message that comes no more is what the sweep is for
            for store in self.stores:
                rebuild(self.log, store)
        for store in self.stores:
            assert store.held == target.held
            assert store.links() == target.links()
            assert not {d.revision for d in store.held.values()} & self.erased
        shown = {key[1]: document.slug for key, document in target.held.items() if key[0] == "page"}
        assert shown == {page_id: slug for page_id, (slug, _) in self.pages.items()}
        for slug, page_id in self.names.items():
            assert target.resolve(slug) == (page_id if page_id in self.pages else None)
        for durable in self.durables:
            assert watermark(durable.delivered, durable.unacknowledged, durable.ready_from) == self.log.last_revision


TestPageLog = PageLogMachine.TestCase
TestPageLog.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
