"""The commands on pages: put, get, rm, restore, mv, ls, history, revert."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from gateway.cli import output
from gateway.cli.options import Commands, add_narrowing, add_source, add_write, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject
from services.domain.errors import InvalidArgument


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "put", "write a page, from a file or from standard input", put, json=True)
    parser.add_argument("slug")
    parser.add_argument("file", nargs="?", default="-", help="a Markdown file; - is standard input")
    parser.add_argument("--overwrite", action="store_true", help="replace whatever is there")
    parser.add_argument("--allow-empty", action="store_true", help="accept an empty page")
    parser.add_argument(
        "--content-hash", metavar="SHA256", help="refuse the text when it is not the one with this hash"
    )
    add_write(parser)

    parser = command(commands, "get", "print a page", get, json=True)
    parser.add_argument("slug")
    parser.add_argument("--revision", type=int, metavar="N", help="an earlier revision, see history")
    parser.add_argument("--fuzzy", action="store_true", help="take a title or alias when there is no such slug")
    parser.add_argument("--include-deleted", action="store_true", help="show a deleted page's tombstone")
    add_source(parser)

    parser = command(commands, "rm", "delete a page; it can be restored for 72 hours", remove, json=True)
    parser.add_argument("slug")
    add_write(parser)

    parser = command(commands, "restore", "bring a deleted page back", restore, json=True)
    parser.add_argument("slug")
    add_write(parser)

    parser = command(commands, "mv", "give a page another slug", move, json=True)
    parser.add_argument("slug")
    parser.add_argument("new_slug")
    add_write(parser)

    parser = command(commands, "ls", "list pages", list_pages, json=True)
    parser.add_argument("prefix", nargs="?", help="only slugs that begin with this")
    parser.add_argument("--sort", choices=("updated_desc", "updated_asc", "created_desc", "slug"))
    parser.add_argument("--page-token", metavar="TOKEN", help="go on where the list before ended")
    add_narrowing(parser)

    parser = command(commands, "history", "list the versions of a page", history, json=True)
    parser.add_argument("slug")
    add_source(parser)

    parser = command(commands, "revert", "make an earlier version current again", revert, json=True)
    parser.add_argument("slug")
    parser.add_argument("revision", type=int)
    add_write(parser)


def put(session: Session, options: Namespace) -> None:
    """Writes a page."""
    reply = session.call(
        "put_page",
        slug=options.slug,
        content=_content(options.file),
        overwrite=options.overwrite or None,
        allow_empty=options.allow_empty or None,
        content_hash=options.content_hash,
        ingested_via="cli",
        **_write(options),
    )
    _show_write(session, reply)


def get(session: Session, options: Namespace) -> None:
    """Prints a page: its text exactly, or everything about it as JSON."""
    reply = session.call(
        "get_page",
        slug=options.slug,
        revision=options.revision,
        fuzzy=options.fuzzy or None,
        include_deleted=options.include_deleted or None,
        source=options.source,
    )
    if session.as_json:
        output.document(reply)
        return
    if reply.get("moved_to"):
        output.message(f"The page is now at {reply['moved_to']}.")
    text = str(reply.get("content", ""))
    if sys.stdout.isatty():
        # A terminal would obey what is written in the page; a pipe gets the bytes as they are.
        output.raw(output.safe_lines(text).encode("utf-8"))
    else:
        output.raw(text.encode("utf-8"))


def remove(session: Session, options: Namespace) -> None:
    """Deletes a page."""
    _show_write(session, session.call("delete_page", slug=options.slug, **_write(options)))


def restore(session: Session, options: Namespace) -> None:
    """Brings a deleted page back."""
    _show_write(session, session.call("restore_page", slug=options.slug, **_write(options)))


def move(session: Session, options: Namespace) -> None:
    """Gives a page another slug."""
    _show_write(session, session.call("move_page", slug=options.slug, new_slug=options.new_slug, **_write(options)))


def revert(session: Session, options: Namespace) -> None:
    """Makes an earlier version current again."""
    reply = session.call("revert_version", slug=options.slug, version_id=options.revision, **_write(options))
    _show_write(session, reply)


def list_pages(session: Session, options: Namespace) -> None:
    """Lists pages."""
    reply = session.call(
        "list_pages",
        slug_prefix=options.prefix,
        sort=options.sort,
        types=options.type,
        tags=options.tag,
        limit=options.limit,
        page_token=options.page_token,
        source=options.source,
    )
    if session.as_json:
        output.document(reply)
        return
    rows = [
        (str(page["slug"]), str(page["type"]), str(page["revision"]), str(page["updated_at"])[:19], str(page["title"]))
        for page in output.objects(reply["pages"])
    ]
    output.table(rows, header=("SLUG", "TYPE", "REVISION", "UPDATED", "TITLE"))
    if reply.get("next_page_token"):
        output.message(f"There are more: --page-token {reply['next_page_token']}")


def history(session: Session, options: Namespace) -> None:
    """Lists the versions of a page."""
    reply = session.call("get_versions", slug=options.slug, source=options.source)
    if session.as_json:
        output.document(reply)
        return
    rows = [
        (
            str(version["revision"]),
            str(version["kind"]),
            str(version.get("updated_at", ""))[:19],
            str(version["content_bytes"]),
            str(version["content_hash"])[:12],
            str(version["actor"]),
            str(version["slug"]),
        )
        for version in output.objects(reply["versions"])
    ]
    output.table(rows, header=("REVISION", "KIND", "WRITTEN", "BYTES", "HASH", "BY", "SLUG"))


def _content(file: str) -> str:
    """The text to write, as UTF-8 and unchanged: no newline is translated."""
    try:
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InvalidArgument(
            "FILE_INVALID",
            f"{file} cannot be read: {error.strerror}",
            field="file",
            value=file,
            next_step="Name a readable file, or leave it out to read standard input.",
        ) from error
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise InvalidArgument(
            "ENCODING_INVALID",
            f"the text is not UTF-8: line {line} has a byte that no character has",
            field="content",
            value=body[error.start : error.start + 4].hex(),
            next_step="Save it as UTF-8 and try again.",
        ) from error


def _write(options: Namespace) -> JsonObject:
    return {
        "source": options.source,
        "if_revision": options.if_revision,
        "request_id": options.request_id,
        "wait": options.wait,
    }


def _show_write(session: Session, reply: JsonObject) -> None:
    if session.as_json:
        output.document(reply)
        return
    output.line(f"{reply['status']} {reply['slug']} revision {reply['revision']}")
    for finding in output.objects(reply.get("findings")):
        where = f"line {finding['line']}: " if "line" in finding else ""
        output.message(f"{where}{finding['message']} {finding['next_step']}")
