"""What a caller asks of ingest and what it gets back, as values: checked once, so that no later code doubts them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from services.domain.context import DEFAULT_SOURCE
from services.domain.errors import InvalidArgument
from services.domain.page import Finding
from services.domain.records import Operation, PageId, PageKey, Provenance
from services.domain.slugs import canonical_slug, check_source

PAGE_BYTES_MAX = 5_000_000
"""Of one page. A message of the log, 8 MB, holds it with everything its record carries."""
REQUEST_ID_CHARACTERS_MAX = 36
"""A UUID as text; every record of a slug remembers the ids of 63 earlier ones."""
LABEL_CHARACTERS_MAX = 64
URI_CHARACTERS_MAX = 2048
REVISION_MAX = 2**63 - 1
NO_PROVENANCE = Provenance()


class WriteStatus(StrEnum):
    """What a write did; the names are those of `brain.v1.WriteStatus`."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    RESTORED = "restored"
    MOVED = "moved"
    REVERTED = "reverted"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """One write as its client sends it, and sends again, unchanged, when the reply got lost. Canonical and valid."""

    operation: Operation
    key: PageKey
    request_id: str
    body: bytes | None = None
    if_revision: int | None = None
    overwrite: bool = False
    new_slug: str = ""
    revision: int = 0
    provenance: Provenance = NO_PROVENANCE

    def digest(self) -> bytes:
        """SHA-256 over what makes two requests the same one: operation, slug, bytes, target; not the expectation."""
        told = (self.operation, self.key.slug, self.new_slug, str(self.revision), "-" if self.body is None else "+")
        digest = hashlib.sha256("\0".join(told).encode())  # a slug has no NUL, so the parts cannot run together
        digest.update(b"\0")
        digest.update(self.body or b"")
        return digest.digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReply:
    """What a write did, and to what. A repeated request gets the first reply's slug, revision and status again."""

    source: str
    slug: str
    page_id: PageId
    revision: int
    status: WriteStatus
    replaced_revision: int = 0
    content_hash: bytes = b""
    body_bytes: int = 0
    findings: tuple[Finding, ...] = ()
    title: str = ""
    type: str = ""
    recoverable_until: datetime | None = None
    time: datetime | None = None


def put_request(
    *,
    source: str,
    slug: str,
    body: bytes,
    request_id: str,
    if_revision: int | None = None,
    overwrite: bool = False,
    allow_empty: bool = False,
    provenance: Provenance = NO_PROVENANCE,
) -> WriteRequest:
    """The put of a page. Whether the bytes are text is for the parser to say.

    Raises:
        InvalidArgument: A field has a value that can never succeed.
    """
    key = page_key(source, slug)
    check_size(body, allow_empty=allow_empty)
    for name, text, limit in (
        ("provenance.source_kind", provenance.source_kind, LABEL_CHARACTERS_MAX),
        ("provenance.source_uri", provenance.source_uri, URI_CHARACTERS_MAX),
        ("provenance.ingested_via", provenance.ingested_via, LABEL_CHARACTERS_MAX),
    ):
        if len(text) > limit:
            raise field_invalid(name, text, f"has {len(text)} characters, at most {limit} are allowed", "Shorten it.")
    return WriteRequest(
        operation=Operation.PUT,
        key=key,
        request_id=check_request_id(request_id),
        body=body,
        if_revision=check_if_revision(if_revision),
        overwrite=overwrite,
        # The path ties a page to an imported file, which may then replace it: only an import may claim that.
        provenance=replace(provenance, path=""),
    )


def change_request(
    operation: Operation,
    *,
    source: str,
    slug: str,
    request_id: str,
    if_revision: int | None = None,
    new_slug: str = "",
    revision: int = 0,
    body: bytes | None = None,
) -> WriteRequest:
    """A delete, restore, move, revert or erase.

    Raises:
        InvalidArgument: A field has a value that can never succeed.
    """
    assert operation is not Operation.PUT
    key = page_key(source, slug)
    if operation is Operation.MOVE:
        if not new_slug:
            raise field_required("new_slug", "Give the slug the page shall have.")
        new_slug = canonical_slug(new_slug, field="new_slug")
    if operation is Operation.REVERT and not 0 < revision <= REVISION_MAX:
        if revision == 0:
            raise field_required("revision", "Give one of the revisions that the page's versions list.")
        raise field_invalid("revision", revision, "is not a revision", "Give one that the page's versions list.")
    return WriteRequest(
        operation=operation,
        key=key,
        request_id=check_request_id(request_id),
        body=body,
        if_revision=check_if_revision(if_revision),
        new_slug=new_slug,
        revision=revision,
    )


def page_key(source: str, slug: str) -> PageKey:
    """The address in its canonical spelling; no source means the default one."""
    if not slug:
        raise field_required("slug", "Give the slug of a page, such as `notes/plan`.")
    return PageKey(check_source(source or DEFAULT_SOURCE), canonical_slug(slug))


def check_request_id(request_id: str) -> str:
    """The idempotency key, when it is one."""
    if not request_id:
        raise field_required("request_id", "Give a new random UUID for each write, and the same one when you retry it.")
    if len(request_id) > REQUEST_ID_CHARACTERS_MAX or not request_id.isascii() or not request_id.isprintable():
        raise field_invalid(
            "request_id",
            request_id,
            f"is not 1 to {REQUEST_ID_CHARACTERS_MAX} printable ASCII characters",
            "Give a random UUID.",
        )
    return request_id


def check_if_revision(if_revision: int | None) -> int | None:
    """The expectation, when it can be one."""
    if if_revision is not None and not 0 <= if_revision <= REVISION_MAX:
        raise field_invalid(
            "if_revision", if_revision, "is not a revision", "Give the revision you read, or 0 for no page yet."
        )
    return if_revision


def check_size(body: bytes, *, allow_empty: bool = False) -> None:
    """Refuses a body that is too large, or has nothing in it unless that was allowed."""
    if len(body) > PAGE_BYTES_MAX:
        raise InvalidArgument(
            "PAGE_TOO_LARGE",
            f"the page has {len(body)} bytes, at most {PAGE_BYTES_MAX} are allowed",
            field="body",
            value=f"{len(body)} bytes",
            next_step="Split it into several pages that link to each other.",
            metadata={"limit": str(PAGE_BYTES_MAX), "size": str(len(body))},
        )
    if not allow_empty and not body.removeprefix(b"\xef\xbb\xbf").strip():
        raise InvalidArgument(
            "PAGE_EMPTY",
            "the page has no text",
            field="body",
            value=f"{len(body)} bytes",
            next_step="Send text, delete the page instead, or set allow_empty.",
        )


def field_invalid(field: str, value: object, why: str, next_step: str) -> InvalidArgument:
    """The refusal of a value that a field may never have."""
    return InvalidArgument("FIELD_INVALID", f"{field} {why}", field=field, value=value, next_step=next_step)


def field_required(field: str, next_step: str) -> InvalidArgument:
    """The refusal of a request that leaves out what it needs."""
    return InvalidArgument("FIELD_REQUIRED", f"{field} is required", field=field, next_step=next_step)
