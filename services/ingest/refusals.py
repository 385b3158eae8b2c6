"""The errors of a write that was decided against: each says what is there now and what to do next."""

from __future__ import annotations

from services.domain.errors import AlreadyExists, Conflict, InvalidArgument, NotFound, PermissionDenied
from services.domain.records import PageKey, PageRecord, RecordKind


def revision_conflict(current: PageRecord | None, key: PageKey, if_revision: int | None) -> Conflict:
    """Something else is there than the caller decided on."""
    if current is None:
        return Conflict(
            "REVISION_CONFLICT",
            f"{key.slug!r} has no page, so revision {if_revision} is not its current one",
            field="if_revision",
            value=if_revision,
            next_step="Check the slug; to begin a page there leave if_revision out or send 0.",
            metadata={"revision": "0", "slug": key.slug},
        )
    n = current.revision
    metadata = {"revision": str(n), "slug": key.slug, "actor": current.actor, "time": current.time.isoformat()}
    if current.kind is RecordKind.DELETE:
        what = f"{key.slug!r} was deleted by {current.actor!r} in revision {n}"
        next_step = f"Restore it with if_revision={n}, or put a new page with if_revision=0."
    else:
        metadata["content_hash"] = current.content_hash.hex()
        what = f"{key.slug!r} is at revision {n}, written by {current.actor!r}"
        next_step = f"Read revision {n}, merge, and send again with if_revision={n}; a put may set overwrite instead."
    decided = "no revision was given" if if_revision is None else f"not at {if_revision}"
    return Conflict(
        "REVISION_CONFLICT",
        f"{what}; {decided}",
        field="if_revision",
        value="" if if_revision is None else if_revision,
        next_step=next_step,
        metadata=metadata,
    )


def page_moved(redirect: PageRecord) -> Conflict:
    """The slug is a former one of a page."""
    return Conflict(
        "PAGE_MOVED",
        f"{redirect.slug!r} moved to {redirect.moved_to!r} in revision {redirect.revision}",
        field="slug",
        value=redirect.slug,
        next_step=(
            f"Send it to {redirect.moved_to!r}; to begin a new page at {redirect.slug!r} "
            f"put it with if_revision={redirect.revision}."
        ),
        metadata={"moved_to": redirect.moved_to, "revision": str(redirect.revision), "slug": redirect.slug},
    )


def page_not_found(key: PageKey, deleted: PageRecord | None = None) -> NotFound:
    """No live page has the slug, as far as the caller may see."""
    if deleted is None:
        return NotFound(
            "PAGE_NOT_FOUND",
            f"there is no page {key.slug!r} in the source {key.source!r}",
            field="slug",
            value=key.slug,
            next_step="Check the spelling and the source, or look for it with search or resolve_slugs.",
            metadata={"slug": key.slug, "source": key.source},
        )
    return NotFound(
        "PAGE_NOT_FOUND",
        f"the page {key.slug!r} was deleted in revision {deleted.revision}",
        field="slug",
        value=key.slug,
        next_step="Restore it first.",
        metadata={"slug": key.slug, "source": key.source, "revision": str(deleted.revision)},
    )


def revision_not_found(key: PageKey, revision: int) -> NotFound:
    """The page has no kept revision of that number."""
    return NotFound(
        "REVISION_NOT_FOUND",
        f"the page {key.slug!r} has no kept revision {revision}",
        field="revision",
        value=revision,
        next_step="List the page's versions and use one of them.",
        metadata={"slug": key.slug, "revision": str(revision)},
    )


def restore_window_over(tombstone: PageRecord, why: str) -> NotFound:
    """The deleted page can no longer come back."""
    return NotFound(
        "RESTORE_WINDOW_OVER",
        f"the page {tombstone.slug!r}, deleted at {tombstone.time.isoformat()}, cannot be restored: {why}",
        field="slug",
        value=tombstone.slug,
        next_step="Put it anew.",
        metadata={"slug": tombstone.slug, "revision": str(tombstone.revision)},
    )


def slug_taken(target: PageRecord) -> AlreadyExists:
    """A live page has the slug that a page should move to."""
    return AlreadyExists(
        "SLUG_TAKEN",
        f"{target.slug!r} has a live page at revision {target.revision}",
        field="new_slug",
        value=target.slug,
        next_step="Choose another slug, or move or delete the page there first.",
        metadata={"slug": target.slug, "revision": str(target.revision)},
    )


def former_slugs_limit(current: PageRecord, limit: int) -> Conflict:
    """The page has moved too often."""
    return Conflict(
        "FORMER_SLUGS_LIMIT",
        f"the page {current.slug!r} has {len(current.former_slugs)} former slugs, at most {limit} are allowed",
        field="new_slug",
        value=len(current.former_slugs),
        next_step="Move it to one of its former slugs, or put its text as a new page.",
        metadata={"limit": str(limit), "slug": current.slug},
    )


def request_id_reused(request_id: str, revision: int) -> InvalidArgument:
    """Two different requests bear one id."""
    return InvalidArgument(
        "REQUEST_ID_REUSED",
        f"the request_id {request_id!r} was used for another request, stored as revision {revision}",
        field="request_id",
        value=request_id,
        next_step="Use a new random UUID for each write, and the same one only to retry it unchanged.",
        metadata={"revision": str(revision)},
    )


def request_erased(request_id: str, revision: int) -> Conflict:
    """What the request wrote was erased on purpose."""
    return Conflict(
        "ERASED",
        f"what the request {request_id!r} wrote was erased in revision {revision}",
        field="request_id",
        value=request_id,
        next_step="Do not retry it. To write the text again on purpose use a new request_id.",
        metadata={"revision": str(revision)},
    )


def write_contended(key: PageKey, tries: int) -> Conflict:
    """Others were faster every time."""
    return Conflict(
        "WRITE_CONTENDED",
        f"{key.slug!r} was changed by others {tries} times while this write was decided; nothing was written",
        field="slug",
        value=key.slug,
        next_step="Send the same request again, a little later.",
        metadata={"slug": key.slug, "tries": str(tries)},
        retry_after_seconds=0.1,
    )


def slug_denied(slug: str, field: str = "slug") -> PermissionDenied:
    """The slug is not this caller's to write; what is there is not told."""
    return PermissionDenied(
        "SLUG_DENIED",
        f"this caller may not write {slug!r}",
        field=field,
        value=slug,
        next_step="Use another slug.",
    )
