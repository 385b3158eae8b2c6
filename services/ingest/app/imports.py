"""The use case that takes a folder of files: slugs planned for all of them, then each put on its own merits."""

from __future__ import annotations

import asyncio
import hashlib
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from services.domain.context import OperationContext, Scope, source_denied
from services.domain.errors import BrainError, Conflict, DeadlineExceeded, InvalidArgument, Unavailable
from services.domain.frontmatter import Frontmatter, read_frontmatter
from services.domain.page import Finding
from services.domain.parser import decode_body
from services.domain.records import PageKey, PageRecord, Provenance, RecordKind
from services.domain.slugs import PlannedSlug, plan_slugs, slug_from_path, wanted_slugs
from services.ingest.app.writes import WritePages
from services.ingest.requests import (
    WriteRequest,
    WriteStatus,
    field_invalid,
    field_required,
    put_request,
)

IMPORT_ID_CHARACTERS_MAX = 24
"""With a hyphen and 11 hex digits of the path's hash it makes a request id."""
PATHS_MAX = 1_000_000
PATH_CHARACTERS_MAX = 1_024
FILES_PER_BATCH_MAX = 1_000
IN_FLIGHT_MAX = 64
"""Puts of one import under way: enough to keep the disk busy, little enough for the memory that large pages take."""
FILES_AT_A_STRETCH = 8
"""Files looked at before others get their turn: 2 to 3 ms."""
LOOKUP_WINDOW = 64
"""Records read at a time while slugs are planned: each may have 5 MB, of which only the path is kept."""
SUFFIX_DIGITS = 8
"""Hex digits at the end of a slug that was kept apart from another."""
SOURCE_KIND = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFile:
    """One file as the caller read it."""

    path: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What became of one file: a slug and a status, or an error."""

    path: str
    slug: str = ""
    revision: int = 0
    status: WriteStatus | None = None
    error: BrainError | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True, kw_only=True)
class ImportRun:
    """One import under way. Batches come one after the other; the files of a batch go in side by side."""

    writes: WritePages
    ctx: OperationContext
    source: str
    import_id: str
    plan: dict[str, PlannedSlug]
    """By path as announced."""
    used: set[str] = field(default_factory=set)
    """Slugs that the plan gives to a file of this import."""
    came: set[str] = field(default_factory=set)
    """Paths that have come."""

    async def add(self, files: Sequence[ImportFile]) -> list[ImportResult]:
        """Puts the files and returns what became of each, in their order.

        Raises:
            Unavailable: The log does not answer; the whole import, sent again with its id, goes on where it stopped.
        """
        if len(files) > FILES_PER_BATCH_MAX:
            raise field_invalid(
                "batch.files", len(files), f"has more than {FILES_PER_BATCH_MAX} files", "Send smaller batches."
            )
        requests: list[_Ready | ImportResult] = []
        for number, file in enumerate(files):
            if number % FILES_AT_A_STRETCH == 0:
                await asyncio.sleep(0)  # other callers' turn
            requests.append(await self._request(file))
        outcomes: list[ImportResult] = []
        for start in range(0, len(requests), IN_FLIGHT_MAX):
            outcomes += await self._put_all(requests[start : start + IN_FLIGHT_MAX])
        return outcomes

    async def _put_all(self, requests: Sequence[_Ready | ImportResult]) -> list[ImportResult]:
        """Reads what is at the slugs in one go, and puts the files side by side."""
        keys = [request.request.key for request in requests if isinstance(request, _Ready)]
        current = dict(zip(keys, await self.writes.pages.log.newest_of(keys), strict=True))
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._put(request, current[request.request.key]))
                if isinstance(request, _Ready)
                else request
                for request in requests
            ]
        outcomes = [task.result() if isinstance(task, asyncio.Task) else task for task in running]
        for outcome in outcomes:
            if isinstance(outcome, BrainError):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, ImportResult)]

    async def _request(self, file: ImportFile) -> _Ready | ImportResult:
        """The put that a file asks for, or why it cannot be one."""
        try:
            problem = path_problem(file.path)
            if problem is not None:
                raise file_invalid(file.path, problem, "Send paths relative to the imported folder.")
            planned = self.plan.get(file.path)
            if planned is None or file.path in self.came:
                why = "came twice" if planned is not None else "was not announced in the header"
                raise file_invalid(file.path, why, "Announce each path once, and send its file once.")
            self.came.add(file.path)
            path = unicodedata.normalize("NFC", file.path)
            request = put_request(
                source=self.source,
                slug=planned.slug,
                body=file.body,
                request_id=f"{self.import_id}-{hashlib.sha256(file.path.encode()).hexdigest()[:11]}",
            )
            # The whole page is read when it is indexed; what its author has to know at once stands on its top.
            text = decode_body(file.body).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
            front = read_frontmatter(text)
            if planned.finding is not None and planned.finding.code == "SLUG_GENERATED":
                planned = await self._declared(planned, front)
                request = replace(request, key=PageKey(self.source, planned.slug))
            request = replace(request, provenance=Provenance(source_kind=SOURCE_KIND, path=path))
            findings = front.findings if planned.finding is None else (planned.finding, *front.findings)
            return _Ready(path=file.path, request=request, findings=findings)
        except BrainError as error:
            return ImportResult(path=file.path, error=error)

    async def _declared(self, planned: PlannedSlug, front: Frontmatter) -> PlannedSlug:
        """The slug that the file declares, when its path makes none and nobody else has it."""
        declared = front.get("slug")
        if not isinstance(declared, str):
            return planned
        wish = plan_slugs([(planned.path, declared)], {})[0]
        if wish.slug == planned.slug or wish.slug in self.used:
            return planned
        there = await self.writes.pages.log.newest(PageKey(self.source, wish.slug))
        if there is not None and there.live and there.provenance.path not in ("", planned.path):
            return planned
        self.used.add(wish.slug)
        return wish

    async def _put(self, ready: _Ready, current: PageRecord | None) -> ImportResult | BrainError:
        """Puts one file: over a revision that came from the same path, never over what somebody else wrote.

        An error that is not the file's is returned, so that the files beside it are through before it is raised.
        """
        try:
            request = ready.request
            same = await self._same_page(ready)
            if same is not None:
                return same
            if current is not None and current.live and current.provenance.path == request.provenance.path:
                request = replace(request, if_revision=current.revision)
            reply = await self.writes.write_known(self.ctx, request, current)
        except (Unavailable, DeadlineExceeded) as error:
            return error
        except BrainError as error:
            return ImportResult(path=ready.path, error=told(error, current), findings=ready.findings)
        return ImportResult(
            path=ready.path,
            slug=reply.slug,
            revision=reply.revision,
            status=reply.status,
            findings=ready.findings,
        )

    async def _same_page(self, ready: _Ready) -> ImportResult | None:
        """The page that has the slug this file wished for, when it says the same and its own file is not here too.

        So an exported folder comes back as the pages it was made from, whatever their files were called.
        """
        clashes = [finding for finding in ready.findings if finding.code == "SLUG_CLASH"]
        if not clashes:
            return None
        there = await self.writes.pages.log.newest(PageKey(self.source, slug_from_path(ready.path)))
        if there is None or there.body != ready.request.body or there.provenance.path in self.plan:
            return None
        if not await self.writes.pages.visible(self.ctx, there):
            return None
        return ImportResult(
            path=ready.path,
            slug=there.slug,
            revision=there.revision,
            status=WriteStatus.UNCHANGED,
            findings=tuple(finding for finding in ready.findings if finding not in clashes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    path: str
    request: WriteRequest
    findings: tuple[Finding, ...]


async def begin_import(
    ctx: OperationContext, writes: WritePages, *, source: str, import_id: str, paths: Sequence[str]
) -> ImportRun:
    """Plans the slugs of all files, whatever the order they come in, and is ready for them.

    A page that came from a path keeps its slug, also where it was moved to; of several that want one slug the plan of
    `services.domain.slugs.plan_slugs` decides.

    Raises:
        PermissionDenied: The caller may not write the source.
        InvalidArgument: The import id is none, or there are too many paths.
    """
    ctx.require(Scope.WRITE)
    if ctx.write_sources is not None and source not in ctx.write_sources:
        raise source_denied(source)
    if not import_id:
        raise field_required("header.import_id", "Give a name of 1 to 24 ASCII characters, new for each import.")
    if len(import_id) > IMPORT_ID_CHARACTERS_MAX or not import_id.isascii() or not import_id.isprintable():
        raise field_invalid(
            "header.import_id",
            import_id,
            f"is not 1 to {IMPORT_ID_CHARACTERS_MAX} printable ASCII characters",
            "Give a random name.",
        )
    if len(paths) > PATHS_MAX:
        raise field_invalid("header.paths", len(paths), f"has more than {PATHS_MAX} paths", "Import folder by folder.")
    valid = [path for path in dict.fromkeys(paths) if path_problem(path) is None]
    held = await _held(writes, source, valid)
    announced = [(path, None) for path in valid if path not in held.moved]
    # In a thread: for a million paths it takes a minute, in which others want their replies.
    plan = {planned.path: planned for planned in await asyncio.to_thread(plan_slugs, announced, held.taken)}
    plan |= {path: PlannedSlug(path, slug, None) for path, slug in held.moved.items()}
    used = {planned.slug for planned in plan.values()}
    return ImportRun(writes=writes, ctx=ctx, source=source, import_id=import_id, plan=plan, used=used)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    taken: dict[str, str]
    """Slugs of live pages, with the path each came from."""
    moved: dict[str, str]
    """Paths whose page was moved away from the slug it got, with its slug now."""


async def _held(writes: WritePages, source: str, paths: Sequence[str]) -> _Held:
    """What the log already has at the slugs that the paths may get."""
    log = writes.pages.log
    there = {key.slug for key in await log.keys(source)}
    wanted = await asyncio.to_thread(wanted_by, paths, there) if there else {}
    held = _Held(taken={}, moved={})
    slugs = list(wanted)
    for start in range(0, len(slugs), LOOKUP_WINDOW):
        window = slugs[start : start + LOOKUP_WINDOW]
        records = await log.newest_of([PageKey(source, slug) for slug in window])
        redirects = [r for r in records if r is not None and r.kind is RecordKind.REDIRECT]
        targets = await log.newest_of([PageKey(source, r.moved_to) for r in redirects])
        for record in records:
            if record is not None and record.live:
                held.taken[record.slug] = record.provenance.path
        for redirect, target in zip(redirects, targets, strict=True):
            path = wanted[redirect.slug]
            if target is not None and target.live and target.page_id == redirect.page_id:
                held.taken[target.slug] = target.provenance.path
                if target.provenance.path == unicodedata.normalize("NFC", path):
                    held.moved[path] = target.slug
    return held


def wanted_by(paths: Sequence[str], there: Collection[str]) -> dict[str, str]:
    """Of the slugs there are, those that a file of one of the paths may have got, with that path."""
    suffixes = {slug[-SUFFIX_DIGITS:] for slug in there}
    return {slug: path for path in paths for slug in candidates(path, there, suffixes)}


def candidates(path: str, there: Collection[str], suffixes: Collection[str]) -> list[str]:
    """The slugs there are that a file of this path may have got; `suffixes` are the last characters of all of them."""
    normal = unicodedata.normalize("NFC", path)
    hashes = (hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest() for spelled in {path, normal})
    # Most paths have never clashed; to make the slugs they would have got then costs more than all the rest.
    suffixed = any(digest[:SUFFIX_DIGITS] in suffixes for digest in hashes)
    return [slug for slug in (wanted_slugs(path) if suffixed else (slug_from_path(path),)) if slug in there]


def path_problem(path: str) -> str | None:
    """Why a path cannot be one of a file below the imported folder; None when it can."""
    if not path or len(path) > PATH_CHARACTERS_MAX:
        return f"is not 1 to {PATH_CHARACTERS_MAX} characters"
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return "is not a relative path below the folder"
    return None


def file_invalid(path: str, why: str, next_step: str) -> InvalidArgument:
    """The refusal of a file for its path."""
    return InvalidArgument("FILE_INVALID", f"the path {why}", field="path", value=path, next_step=next_step)


def told(error: BrainError, current: PageRecord | None) -> BrainError:
    """A conflict in the words of an import: whose page it would have replaced."""
    if error.reason != "REVISION_CONFLICT" or current is None or not current.live:
        return error
    path = current.provenance.path
    origin = f"{current.actor!r} from the file {path!r}" if path else f"{current.actor!r}, not from a file"
    return Conflict(
        error.reason,
        f"the page {current.slug!r} has other text, written by {origin} in revision {current.revision}",
        field="path",
        value=current.slug,
        next_step="Merge the two by hand: put the text you want with if_revision, or rename the file to keep both.",
        metadata=error.metadata,
    )
