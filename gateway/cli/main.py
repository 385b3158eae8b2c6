"""The command `fleetbrain`: reads the command line and runs one command.

Exit status 0 is done, 1 failed, 2 wrong usage. Command modules are imported when their command is used, so that a
short command does not wait for what others need.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from gateway.cli import output
from gateway.cli.options import MixedParser
from services.domain.errors import BrainError, InvalidArgument

FAMILIES = ("lifecycle", "pages", "recall", "graph", "jobs", "rebuild", "insight", "transfer", "agents", "aliases")
"""Modules with an `add(commands)` that declares their commands; they import what they need when it runs."""

WRONG_USAGE = frozenset(
    {
        "ARGUMENT_UNKNOWN",
        "FIELD_INVALID",
        "FIELD_REQUIRED",
        "OPERATION_UNKNOWN",
        "PAGE_TOKEN_INVALID",
        "QUERY_EMPTY",
        "SLUG_INVALID",
        "SOURCE_INVALID",
    }
)
"""Refusals of what was typed; every other failure is one of the work."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status; every byte of output is delivered by then."""
    output.prepare()
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as done:
        return int(done.code or 0)
    as_json = bool(getattr(options, "json", False))
    try:
        return _run(options, as_json=as_json)
    except BrainError as error:
        output.failure(error, as_json=as_json)
        return 2 if error.reason in WRONG_USAGE else 1
    except KeyboardInterrupt:
        output.message("Interrupted.")
        return 1
    except BrokenPipeError:
        # The reader has left: nothing more can be said, and the interpreter must not try at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as error:
        # Of a file or folder that this user named, or of the data folder: a disk that is full or read-only, a mode.
        place = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "a file"
        output.failure(
            InvalidArgument(
                "FILE_INVALID",
                f"{place}: {error.strerror or error}",
                field="file",
                value=place,
                next_step="Make it writable for this user, or name another one.",
            ),
            as_json=as_json,
        )
        return 1


def _run(options: argparse.Namespace, *, as_json: bool) -> int:
    from gateway.cli.session import open_session

    session = open_session(os.environ, data=options.data, http=getattr(options, "http", None), as_json=as_json)
    status = options.run(session, options)
    sys.stdout.flush()
    return int(status or 0)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="fleetbrain",
        description="Long-term memory for fleets of AI agents: Markdown pages, typed links, hybrid retrieval.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=MixedParser)
    for family in FAMILIES:
        importlib.import_module(f"gateway.cli.{family}").add(commands)
    return parser


class _Version(argparse.Action):
    """Prints the version; asked for lazily, because finding it reads the distribution's metadata."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        output.line(f"fleetbrain {version('fleetbrain')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
