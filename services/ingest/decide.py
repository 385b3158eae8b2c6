"""The decision of every write, pure: from what was asked and what was read to a reply, a refusal or a batch to append.

The rules are DESIGN section 3; `tests/page_log_model.py` is the same as an executable model, the oracle of the tests.
Nothing here trusts that the reads are still true: every record of a batch names the revision it was decided on, and the
log refuses the batch when one of them is no longer the newest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from services.domain.parser import content_hash
from services.domain.records import (
    KEPT_PER_SLUG,
    Operation,
    PageId,
    PageKey,
    PageRecord,
    Predecessor,
    Provenance,
    RecordKind,
)
from services.ingest import refusals
from services.ingest.requests import WriteRequest, WriteStatus

RESTORE_WINDOW: Final = timedelta(hours=72)
FORMER_SLUGS_MAX: Final = 100
"""Each is renewed by one record of the batch that moves the page, and read by every history."""
TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What was read for a decision. Reads that the operation does not need are left empty."""

    current: PageRecord | None
    """The newest record of the slug."""
    target: PageRecord | None = None
    """Of a move: the newest record of the new slug."""
    former: tuple[PageRecord, ...] = ()
    """Of a move: the newest records of the page's former slugs."""
    content: PageRecord | None = None
    """Of a revert: the kept record of that page with that revision; of a restore: the newest one with content."""
    history: tuple[PageRecord, ...] = ()
    """Of an erase: all kept records of the page with content, old to new, under every slug it had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a decision would otherwise take from the world around it."""

    actor: str
    remote: bool
    time: datetime
    new_page_id: PageId
    kept_per_slug: int = KEPT_PER_SLUG


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Store these records, all or none; the last one's revision is the page's."""

    batch: tuple[PageRecord, ...]
    status: WriteStatus
    replaced_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """The bytes, or the state, are there already: nothing is written."""

    record: PageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The request was stored before: as this revision, with the page at this slug."""

    revision: int
    slug: str


Decision = Append | Unchanged | Repeated


def decide(request: WriteRequest, view: View, stamp: Stamp) -> Decision:
    """Answers the request, says what to append, or raises the refusal. The request id is looked up before all else.

    Raises:
        Conflict: `REVISION_CONFLICT`, `PAGE_MOVED`, `ERASED` or `FORMER_SLUGS_LIMIT`.
        AlreadyExists: `SLUG_TAKEN`.
        NotFound: `PAGE_NOT_FOUND`, `REVISION_NOT_FOUND` or `RESTORE_WINDOW_OVER`.
        InvalidArgument: `REQUEST_ID_REUSED`.
    """
    current = view.current
    repeated = find_repeated(request, current)
    if repeated is not None:
        return repeated
    if request.operation is Operation.PUT:
        return _decide_put(request, current, stamp)
    if current is None:
        raise refusals.page_not_found(request.key)
    if current.kind is RecordKind.REDIRECT:
        raise refusals.page_moved(current)
    if request.if_revision not in (None, current.revision):
        raise refusals.revision_conflict(current, request.key, request.if_revision)
    if request.operation is Operation.ERASE:
        return _decide_erase(request, current, view.history, stamp)
    if current.live:
        match request.operation:
            case Operation.DELETE:
                record = _successor(request, current, stamp, kind=RecordKind.DELETE, body=None)
                return _append(record, WriteStatus.DELETED, current)
            case Operation.MOVE:
                return _decide_move(request, current, view, stamp)
            case Operation.REVERT:
                return _decide_revert(request, current, view.content, stamp)
            case _:  # a restore: the page is there
                return Unchanged(record=current)
    match request.operation:
        case Operation.DELETE:
            return Unchanged(record=current)
        case Operation.RESTORE:
            return _decide_restore(request, current, view.content, stamp)
        case _:
            raise refusals.page_not_found(request.key, current)


def find_repeated(request: WriteRequest, current: PageRecord | None) -> Repeated | None:
    """What a request of the same id was stored as, as long as the newest record of the slug still knows it.

    Raises:
        Conflict: `ERASED`.
        InvalidArgument: `REQUEST_ID_REUSED`.
    """
    if current is None:
        return None
    for earlier in (*current.predecessors, remembered(current)):
        if request.request_id in earlier.erased_request_ids:
            raise refusals.request_erased(request.request_id, earlier.revision)
        if earlier.request_id == request.request_id:
            if earlier.digest != request.digest():
                raise refusals.request_id_reused(request.request_id, earlier.revision)
            # The move record follows the redirect of the slug that was left at once.
            moved = earlier.moved_to != ""
            return Repeated(revision=earlier.revision + moved, slug=earlier.moved_to or request.key.slug)
    return None


def remembered(record: PageRecord) -> Predecessor:
    """What later records of the slug remember of this one."""
    return Predecessor(
        revision=record.revision,
        request_id=record.request_id,
        digest=record.request_digest,
        moved_to=record.moved_to,
        erased_request_ids=record.erased_request_ids,
    )


def was_erased(predecessor: Predecessor) -> bool:
    """Whether its content was erased by the record that remembers it: only the revision is left, for the removal."""
    return not predecessor.request_id and not predecessor.moved_to


def predecessors(previous: PageRecord | None, kept_per_slug: int) -> tuple[Predecessor, ...]:
    """What the record after `previous` remembers, old to new."""
    if previous is None:
        return ()
    assert kept_per_slug > 1
    known = [p for p in previous.predecessors if not was_erased(p)]
    return (*known, remembered(previous))[-(kept_per_slug - 1) :]


def _decide_put(request: WriteRequest, current: PageRecord | None, stamp: Stamp) -> Decision:
    """A put of a live page, or a new page on a slug that has none; over a redirect only by its revision."""
    if current is None:
        if request.if_revision not in (None, 0):
            raise refusals.revision_conflict(None, request.key, request.if_revision)
    elif current.kind is RecordKind.DELETE:
        if request.if_revision not in (None, 0, current.revision):
            raise refusals.revision_conflict(current, request.key, request.if_revision)
    elif current.kind is RecordKind.REDIRECT:
        if request.if_revision != current.revision:
            raise refusals.page_moved(current)
    elif request.body == current.body:
        return Unchanged(record=current)
    elif not request.overwrite and request.if_revision != current.revision:
        raise refusals.revision_conflict(current, request.key, request.if_revision)
    else:
        record = _successor(request, current, stamp, kind=RecordKind.PUT, body=request.body)
        return _append(replace(record, provenance=request.provenance), WriteStatus.UPDATED, current)
    return _append(_new_page(request, current, stamp), WriteStatus.CREATED, current)


def _decide_revert(request: WriteRequest, current: PageRecord, wanted: PageRecord | None, stamp: Stamp) -> Decision:
    if wanted is None or wanted.page_id != current.page_id or not wanted.live:
        raise refusals.revision_not_found(request.key, request.revision)
    if wanted.body == current.body:
        return Unchanged(record=current)
    record = _successor(request, current, stamp, kind=RecordKind.PUT, body=wanted.body)
    # Whoever reverts chose this text: the file the page once came from does not speak for it any more.
    return _append(replace(record, provenance=replace(wanted.provenance, path="")), WriteStatus.REVERTED, current)


def _decide_restore(request: WriteRequest, current: PageRecord, wanted: PageRecord | None, stamp: Stamp) -> Decision:
    if stamp.time - current.time > RESTORE_WINDOW:
        raise refusals.restore_window_over(current, f"{RESTORE_WINDOW.total_seconds() / 3600:.0f} hours are over")
    if wanted is None or wanted.page_id != current.page_id or not wanted.live:
        raise refusals.restore_window_over(current, "no content of it is kept")
    record = _successor(request, current, stamp, kind=RecordKind.RESTORE, body=wanted.body)
    return _append(replace(record, provenance=wanted.provenance), WriteStatus.RESTORED, current)


def _decide_erase(
    request: WriteRequest, current: PageRecord, history: tuple[PageRecord, ...], stamp: Stamp
) -> Decision:
    """A new revision, or a new tombstone, that refuses the older requests; removing what they wrote comes after it."""
    body = (current.body if request.body is None else request.body) if current.live else None
    record = _successor(request, current, stamp, kind=RecordKind.PUT if current.live else RecordKind.DELETE, body=body)
    revisions = {r.revision for r in history}
    return _append(
        replace(
            record,
            erased_request_ids=frozenset(r.request_id for r in history if r.request_id),
            # A digest would still tell whether a guess at the erased text is right.
            predecessors=tuple(
                Predecessor(revision=p.revision, request_id="", digest=b"") if p.revision in revisions else p
                for p in record.predecessors
            ),
            provenance=current.provenance if body == current.body else Provenance(),
        ),
        WriteStatus.UPDATED if current.live else WriteStatus.DELETED,
        current,
    )


def _decide_move(request: WriteRequest, current: PageRecord, view: View, stamp: Stamp) -> Decision:
    """Redirects on every slug that still leads to the page, the one left now as the last of them, then the move."""
    new_key = PageKey(request.key.source, request.new_slug)
    if new_key == current.key:
        return Unchanged(record=current)
    if view.target is not None and view.target.live:
        raise refusals.slug_taken(view.target)
    former_slugs = (current.former_slugs | {current.slug}) - {new_key.slug}
    if len(former_slugs) > FORMER_SLUGS_MAX:
        raise refusals.former_slugs_limit(current, FORMER_SLUGS_MAX)
    led_here = [
        r
        for r in sorted(view.former, key=lambda r: r.slug)
        if r.kind is RecordKind.REDIRECT and r.page_id == current.page_id and r.slug != new_key.slug
    ]
    renewed = [_redirect(r, current, new_key.slug, stamp) for r in led_here]
    left = replace(
        _redirect(current, current, new_key.slug, stamp),
        request_id=request.request_id,
        request_digest=request.digest(),
        operation=Operation.MOVE,
    )
    move = replace(
        _successor(request, current, stamp, kind=RecordKind.MOVE, body=current.body),
        slug=new_key.slug,
        expected=view.target.revision if view.target is not None else 0,
        former_slugs=former_slugs,
        predecessors=predecessors(view.target, stamp.kept_per_slug),
    )
    return Append(batch=(*renewed, left, move), status=WriteStatus.MOVED, replaced_revision=current.revision)


def _new_page(request: WriteRequest, current: PageRecord | None, stamp: Stamp) -> PageRecord:
    """A page with an identity of its own, whatever was at its slug before."""
    assert request.body is not None
    time = stamp.time if current is None else max(stamp.time, current.time + TICK)
    return PageRecord(
        source=request.key.source,
        slug=request.key.slug,
        kind=RecordKind.PUT,
        page_id=stamp.new_page_id,
        time=time,
        actor=stamp.actor,
        remote=stamp.remote,
        request_id=request.request_id,
        request_digest=request.digest(),
        operation=request.operation,
        body=request.body,
        content_hash=content_hash(request.body),
        expected=current.revision if current is not None else 0,
        predecessors=predecessors(current, stamp.kept_per_slug),
        provenance=request.provenance,
        create_time=time,
    )


def _successor(
    request: WriteRequest, current: PageRecord, stamp: Stamp, *, kind: RecordKind, body: bytes | None
) -> PageRecord:
    """The page's next record on its slug: the same identity, former slugs, birthday and origin."""
    return replace(
        current,
        kind=kind,
        # Times of one page never stand still or go back, so that its creation is the one record of that time.
        time=max(stamp.time, current.time + TICK),
        actor=stamp.actor,
        remote=stamp.remote,
        request_id=request.request_id,
        request_digest=request.digest(),
        operation=request.operation,
        body=body,
        content_hash=b"" if body is None else content_hash(body),
        revision=0,
        expected=current.revision,
        erased_request_ids=frozenset(),
        predecessors=predecessors(current, stamp.kept_per_slug),
    )


def _redirect(newest: PageRecord, page: PageRecord, new_slug: str, stamp: Stamp) -> PageRecord:
    """The record that makes a slug lead to the page's new one."""
    return PageRecord(
        source=newest.source,
        slug=newest.slug,
        kind=RecordKind.REDIRECT,
        page_id=page.page_id,
        time=max(stamp.time, newest.time + TICK),
        actor=stamp.actor,
        remote=stamp.remote,
        operation=Operation.MOVE,
        expected=newest.revision,
        moved_to=new_slug,
        predecessors=predecessors(newest, stamp.kept_per_slug),
    )


def _append(record: PageRecord, status: WriteStatus, current: PageRecord | None) -> Append:
    replaced = current.revision if current is not None else 0
    return Append(batch=(record,), status=status, replaced_revision=replaced)


def stored_status(record: PageRecord) -> WriteStatus:
    """What the write did that a record comes from, for the reply to its repetition."""
    match record.operation:
        case Operation.PUT:
            return WriteStatus.CREATED if record.time == record.create_time else WriteStatus.UPDATED
        case Operation.DELETE:
            return WriteStatus.DELETED
        case Operation.RESTORE:
            return WriteStatus.RESTORED
        case Operation.MOVE:
            return WriteStatus.MOVED
        case Operation.REVERT:
            return WriteStatus.REVERTED
        case Operation.ERASE:
            return WriteStatus.UPDATED if record.live else WriteStatus.DELETED


def replaced_revision(record: PageRecord) -> int:
    """The revision that a stored record replaced on its slug; 0 when it was the first."""
    return record.predecessors[-1].revision if record.predecessors else 0
