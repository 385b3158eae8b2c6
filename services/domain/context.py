"""Who asks, from where, and what they may touch: handed to every operation, on both sides of every wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.domain.errors import PermissionDenied

DEFAULT_SOURCE = "default"


class Scope(StrEnum):
    """What kinds of operations a principal may call."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationContext:
    """The caller of one operation. Anything that is not provably local is remote.

    The deadline and the trace of an operation travel beside it, as gRPC does them: see `services.runtime.calls`.
    """

    principal: str
    """Who is asking, for provenance and logs: `local`, a token's name, or `service:<name>`."""
    remote: bool = True
    """Remote callers see no private page, set no reserved key and submit no protected job."""
    scopes: frozenset[Scope] = frozenset()
    read_sources: frozenset[str] | None = frozenset()
    """Sources it may read; None means every source."""
    write_sources: frozenset[str] | None = frozenset()
    """Sources it may write; None means every source."""
    write_prefixes: tuple[str, ...] = ()
    """Slug prefixes it may write; empty means every slug of its sources."""

    def require(self, scope: Scope) -> None:
        """Raises PermissionDenied unless the caller has the scope."""
        if scope not in self.scopes:
            raise PermissionDenied(
                "SCOPE_MISSING",
                f"this operation needs the scope {scope.value!r}",
                field="scope",
                value=scope.value,
                next_step="Use a token that has this scope.",
            )

    def require_read(self, source: str) -> None:
        """Raises PermissionDenied unless the caller may read the source; whether it exists is not told."""
        if self.read_sources is not None and source not in self.read_sources:
            raise source_denied(source)

    def require_write(self, source: str, slug: str) -> None:
        """Raises PermissionDenied unless the caller may write this slug of this source."""
        if self.write_sources is not None and source not in self.write_sources:
            raise source_denied(source)
        if self.write_prefixes and not slug.startswith(self.write_prefixes):
            raise PermissionDenied(
                "SLUG_DENIED",
                f"{slug!r} is outside the slug prefixes this caller may write",
                field="slug",
                value=slug,
                next_step=f"Write below one of: {', '.join(self.write_prefixes)}.",
            )

    def readable(self, wanted: str | None) -> frozenset[str] | None:
        """The sources a read covers: the one asked for, else all that the caller may read (None means every source)."""
        if wanted is None:
            return self.read_sources
        self.require_read(wanted)
        return frozenset({wanted})

    @property
    def sees_private(self) -> bool:
        """Whether pages with visibility `private` exist for this caller."""
        return not self.remote


def source_denied(source: str) -> PermissionDenied:
    """The refusal for a source that this caller may not touch."""
    return PermissionDenied(
        "SOURCE_DENIED",
        f"this caller may not use the source {source!r}",
        field="source",
        value=source,
        next_step="Use a source this caller may use, or leave the field out for the default.",
    )


def local_context(principal: str = "local") -> OperationContext:
    """The context of a caller that is provably on this machine and of this user: everything is allowed."""
    return OperationContext(
        principal=principal, remote=False, scopes=frozenset(Scope), read_sources=None, write_sources=None
    )
