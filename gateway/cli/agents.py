"""The commands for agents and scripts: mcp, and call for any operation."""

from __future__ import annotations

import json
from argparse import Namespace

from gateway.cli import output
from gateway.cli.options import Commands, command
from gateway.cli.session import Session
from gateway.local_client import LocalClient
from services.domain.errors import InvalidArgument


def add(commands: Commands) -> None:
    """Declares the commands."""
    command(commands, "mcp", "serve an agent over standard input and output", serve)
    parser = command(commands, "call", "call any operation", call)
    parser.add_argument("operation")
    parser.add_argument("arguments", nargs="?", metavar="JSON", help="the arguments as a JSON object")
    # What it prints is JSON in any case; the flag is there because every reading command has it.
    parser.add_argument("--json", action="store_true", default=True, help="as it does anyway")


def serve(session: Session, options: Namespace) -> None:
    """Serves MCP over stdio until the agent closes it."""
    import asyncio
    from collections.abc import Mapping
    from importlib.metadata import version

    from gateway.brain import join_or_start
    from gateway.mcp.stdio import serve_stdio
    from gateway.operations.registry import all_operations

    def open_brain(headers: Mapping[str, str]) -> LocalClient:
        return join_or_start(session.settings.data, session.environ).client(headers)

    asyncio.run(serve_stdio(all_operations(), open_brain, version=version("fleetbrain")))


def call(session: Session, options: Namespace) -> None:
    """Calls an operation and prints its result."""
    try:
        arguments = json.loads(options.arguments) if options.arguments else {}
    except ValueError as error:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"the arguments are not JSON: {error}",
            field="arguments",
            value=options.arguments,
            next_step='Write them as a JSON object, such as \'{"slug": "people/ada-example"}\'.',
        ) from error
    output.document(session.client.call(options.operation, arguments))
