"""Options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gateway.cli.session import Session

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name
Run: TypeAlias = Callable[[Session, argparse.Namespace], int | None]


class MixedParser(argparse.ArgumentParser):
    """A parser that takes options and arguments in any order: `put a/b --data DIR file.md`."""

    _mixing = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does, with arguments gathered from between the options."""
        # A parser with commands below it cannot; and argparse's own way of doing it comes back here.
        if self._mixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False


def command(commands: Commands, name: str, help_text: str, run: Run, *, json: bool = False) -> argparse.ArgumentParser:
    """Declares a command. Those that read take --json: one document on standard output, messages on standard error."""
    parser = commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
    parser.add_argument("--data", metavar="DIR", help="data folder of the brain; FLEETBRAIN_DATA otherwise")
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)
    return parser


def add_source(parser: argparse.ArgumentParser) -> None:
    """The source that a command is about."""
    parser.add_argument("--source", metavar="NAME", help="the source; `default` otherwise")


def add_write(parser: argparse.ArgumentParser) -> None:
    """What every write can be told."""
    add_source(parser)
    parser.add_argument("--if-revision", type=int, metavar="N", help="refuse when the page has another revision by now")
    parser.add_argument("--request-id", metavar="ID", help="idempotency key; send the same one to retry safely")
    parser.add_argument("--wait", choices=("none", "text"), help="what to wait for after the write; text otherwise")


def add_narrowing(parser: argparse.ArgumentParser) -> None:
    """What narrows a list of pages."""
    add_source(parser)
    parser.add_argument("--type", action="append", metavar="TYPE", help="only pages of this type; may be repeated")
    parser.add_argument("--tag", action="append", metavar="TAG", help="only pages with this tag; may be repeated")
    parser.add_argument("--limit", type=int, metavar="N", help="at most this many")
