"""The commands that move many pages: import and export."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli import output
from gateway.cli.options import Commands, add_source, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject
from services.domain.context import DEFAULT_SOURCE, local_context
from services.domain.errors import BrainError

if TYPE_CHECKING:
    from gateway.folder import Found
    from gateway.importing import ImportSummary

PRINCIPAL = "local"
"""Whose writes these are: the same person's as those that come through the socket."""
SHOWN_MAX = 20
"""Findings printed one by one; the rest is counted. Refused files are printed all: each of them is missing."""


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "import", "import a folder of Markdown and code", import_folder, json=True)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-embed", action="store_true", help="accepted; vectors are made in the background anyway")
    add_source(parser)

    parser = command(commands, "export", "write every current page as a file", export, json=True)
    parser.add_argument("folder", type=Path)
    add_source(parser)


def import_folder(session: Session, options: Namespace) -> int:
    """Imports a folder; exit status 1 when nothing of it could go in or the import broke off."""
    from gateway.export_names import read_list
    from gateway.folder import walk
    from gateway.importing import ImportSummary

    found = walk(options.folder)
    found.slugs = read_list(options.folder)
    summary = ImportSummary(refused=list(found.refused))
    began = time.monotonic()
    broken = None
    try:
        stream(session, found, summary, options.source or "")
    except BrainError as error:
        broken = error
    elapsed = time.monotonic() - began
    if session.as_json:
        output.document(_import_reply(options, found, summary, elapsed, broken))
    else:
        _show_import(found, summary, elapsed)
    if broken is not None:
        output.failure(broken, as_json=False)
        output.message("What is in stays. Import again to go on: files that are in are passed over as unchanged.")
        return 1
    return 1 if summary.refused and summary.done == len(summary.refused) else 0


def stream(session: Session, found: Found, summary: ImportSummary, source: str) -> None:
    """Streams what was found into the brain, with a progress bar on a terminal."""
    from gateway.importing import import_folder as run

    already = len(summary.refused)
    with progress("Importing", total=len(found.paths)) as moved_to:
        asyncio.run(
            run(
                session.running.addresses["grpc"],
                caller=local_context(PRINCIPAL),
                source=source,
                import_id=uuid.uuid4().hex[:16],
                root=found.root,
                paths=found.paths,
                slugs=found.slugs,
                summary=summary,
                on_progress=lambda: moved_to(summary.done - already),
            )
        )


@contextmanager
def progress(label: str, *, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error when that is a terminal; otherwise nothing. Yields what moves it."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


def _show_import(found: Found, summary: ImportSummary, elapsed: float) -> None:
    for refused in summary.refused:
        where = f"{refused.path}:{refused.line}" if refused.line else refused.path
        output.line(f"refused {where}: {refused.reason}: {refused.message}. {refused.next_step}")
    for path, code, number, text, _ in summary.findings[:SHOWN_MAX]:
        where = f"{path}:{number}" if number else path
        output.line(f"noticed {where}: {code}: {text}")
    if len(summary.findings) > SHOWN_MAX:
        output.line(f"noticed {len(summary.findings) - SHOWN_MAX} more; --json lists them")
    if found.passed_over:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.passed_over.most_common(8))
        output.line(f"passed over, neither Markdown nor code: {kinds}")
    rate = f", {summary.done / elapsed:.0f} files/s" if elapsed > 0 and summary.done else ""
    output.line(
        f"{summary.created} created, {summary.updated} updated, {summary.unchanged} unchanged, "
        f"{len(summary.refused)} refused in {elapsed:.1f} s{rate}."
    )


def _import_reply(
    options: Namespace, found: Found, summary: ImportSummary, elapsed: float, broken: BrainError | None
) -> JsonObject:
    reply: JsonObject = {
        "folder": str(options.folder),
        "source": options.source or DEFAULT_SOURCE,
        "files": len(found.paths) + len(found.refused),
        "created": summary.created,
        "updated": summary.updated,
        "unchanged": summary.unchanged,
        "refused": [
            {
                "path": refused.path,
                "line": refused.line,
                "reason": refused.reason,
                "message": refused.message,
                "next_step": refused.next_step,
            }
            for refused in summary.refused
        ],
        "findings": [
            {"path": path, "code": code, "line": number, "message": text, "next_step": step}
            for path, code, number, text, step in summary.findings
        ],
        "passed_over": dict(found.passed_over),
        "last_revision": summary.last_revision,
        "seconds": round(elapsed, 3),
    }
    if broken is not None:
        reply["error"] = {"reason": broken.reason, "message": broken.message, "next_step": broken.next_step}
    return reply


def export(session: Session, options: Namespace) -> None:
    """Writes every current page as a file."""
    from gateway.exporting import export_source

    with progress("Exporting", total=None) as moved_to:
        summary = asyncio.run(
            export_source(
                session.running.addresses["grpc"],
                caller=local_context(PRINCIPAL),
                source=options.source or "",
                target=options.folder,
                on_progress=lambda done: moved_to(done.pages),
            )
        )
    if session.as_json:
        output.document({"folder": str(options.folder), "pages": summary.pages, "bytes": summary.bytes})
    else:
        output.line(f"{summary.pages} pages, {summary.bytes} bytes in {options.folder}")
