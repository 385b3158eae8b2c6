"""The composition root: `python -m services --target all|ingest|search|graph|jobs|gateway [--data DIR]`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, assert_never, get_args

from services.domain.errors import BrainError, InvalidArgument
from services.domain.parser import PageParser
from services.runtime.bus import Bus, open_bus
from services.runtime.data_folder import (
    claim,
    read_brain_file,
    remove_brain_file,
    remove_socket_folder,
    socket_path,
    write_brain_file,
)
from services.runtime.local_calls import LocalCalls
from services.runtime.nats_child import nats_child
from services.runtime.process import OpenModule, serve
from services.runtime.settings import Settings, load_settings
from services.runtime.telemetry import configure_logging
from services.runtime.tls import check_files
from services.runtime.version import version

log = logging.getLogger(__name__)

Service = Literal["ingest", "search", "graph", "jobs", "gateway"]
SERVICES: Sequence[Service] = get_args(Service)
"""In the order they start; the gateway last, so that nobody is let in before there is somebody to ask."""
GRACE_SECONDS = 10.0
PATIENCE_SECONDS = 240.0
"""How long one service of several waits for NATS when it starts. All of them start together, and NATS may be the last;
a process that ended instead would be started again later and later. Whoever starts a whole brain is told at once."""
GC_THRESHOLD = 50_000
"""Objects made before the youngest are looked through for cycles. A parsed page is hundreds of objects and no cycle:
at the interpreter's 700 the collector runs for every page or two, which is a twentieth of what an import costs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. Status 0 is an orderly end, 1 a failure, 2 settings that cannot work."""
    parser = argparse.ArgumentParser(prog="python -m services", description="Run the brain or one of its services.")
    parser.add_argument("--target", choices=("all", *SERVICES), default="all")
    parser.add_argument("--data", type=Path, help="data folder; FLEETBRAIN_DATA otherwise")
    options = parser.parse_args(arguments)
    configure_logging("info")
    try:
        settings = load_settings(os.environ)
        if options.data is not None:
            settings = replace(settings, data=options.data.expanduser().absolute())
        configure_logging(settings.log_level)
        asyncio.run(run(options.target, settings))
    except asyncio.CancelledError:
        return 0  # told to stop while it started
    except InvalidArgument as error:
        print(f"{error.message}\n{error.next_step}", file=sys.stderr)  # noqa: T201 - for who started it by hand
        return 2
    except BrainError as error:
        print(f"{error.message}\n{error.next_step}", file=sys.stderr)  # noqa: T201
        return 1
    except OSError as error:
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        log.exception("the process failed")
        print(f"{place}{error.strerror or error}", file=sys.stderr)  # noqa: T201
        return 1
    except Exception:  # the last edge: whatever it is, it is logged once and the status says so
        log.exception("the process failed")
        return 1
    return 0


async def run(target: Literal["all"] | Service, settings: Settings) -> None:
    """Hosts one service, or all of them with a NATS server of their own."""
    starting = asyncio.current_task()
    assert starting is not None
    # Until `serve` takes the signal over, it ends the start in order: a NATS server is not left behind.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, starting.cancel)
    async with AsyncExitStack() as stack:
        stack.enter_context(claim(settings.data, target))
        stack.callback(remove_socket_folder, settings.data)
        grpc_socket = f"unix:{socket_path(settings.data, 'brain.sock')}"
        known = {"data": str(settings.data)}
        storage = None
        if target == "all":
            if not settings.nats_url:
                child = nats_child(settings.data / "nats", on_pid=partial(publish_nats, settings.data, known))
                address = await stack.enter_async_context(child)
                settings = replace(settings, nats_url=address.url)
                storage = address.storage
            stack.callback(remove_brain_file, settings.data)
        if settings.tls is not None:
            check_files(settings.tls, datetime.now(UTC))
        settings = with_addresses(settings, grpc_socket)
        targets = SERVICES if target == "all" else (target,)
        bus = None
        if needs_bus(targets):
            patience = 0.0 if target == "all" else PATIENCE_SECONDS
            opened = open_bus(
                nats_url(settings), name=target, patience_seconds=patience, storage=storage, options=settings.nats
            )
            bus = await stack.enter_async_context(opened)
        parser = PageParser()
        local = LocalCalls()
        gc.set_threshold(GC_THRESHOLD)
        await serve(
            [opener(name, settings, bus, parser, local) for name in targets],
            listen_addresses(target, settings, grpc_socket),
            grace_seconds=GRACE_SECONDS,
            token=settings.token,
            tls=settings.tls,
            health_address=settings.health_listen,
            metrics_address=settings.metrics_listen,
            local=local,
            on_serving=partial(publish_addresses, settings.data, known) if target == "all" else None,
        )


def opener(name: Service, settings: Settings, bus: Bus | None, parser: PageParser, local: LocalCalls) -> OpenModule:
    """Imports one service's wiring. Imports are local so that a process loads only its own engines' clients."""
    match name:
        case "ingest":
            from services.ingest import wiring as ingest

            return partial(ingest.open_module, settings, needed(bus), parser)
        case "search":
            from services.search import wiring as search

            return partial(search.open_module, settings, needed(bus), parser)
        case "graph":
            from services.graph import wiring as graph

            return partial(graph.open_module, settings, needed(bus), parser)
        case "jobs":
            from services.jobs import wiring as jobs

            return partial(jobs.open_module, settings, needed(bus))
        case "gateway":
            from gateway import wiring as gateway

            return partial(gateway.open_module, settings, local)
        case _:
            assert_never(name)


def needs_bus(targets: Sequence[Service]) -> bool:
    """Whether any of them speaks to NATS; the gateway alone does not."""
    return any(name != "gateway" for name in targets)


def nats_url(settings: Settings) -> str:
    """Where NATS answers; only `--target all` starts one, so everybody else must be told."""
    if not settings.nats_url:
        raise InvalidArgument(
            "FIELD_REQUIRED",
            "a single service needs FLEETBRAIN_NATS_URL",
            field="FLEETBRAIN_NATS_URL",
            next_step="Set it to nats://HOST:4222, or run --target all, which starts a NATS server of its own.",
        )
    return settings.nats_url


def needed(bus: Bus | None) -> Bus:
    """The bus of a service that has one."""
    assert bus is not None
    return bus


def with_addresses(settings: Settings, grpc_socket: str) -> Settings:
    """The settings with the services' addresses filled in: where nothing is set, the socket of `--target all`."""
    return replace(
        settings,
        ingest_address=settings.ingest_address or grpc_socket,
        search_address=settings.search_address or grpc_socket,
        graph_address=settings.graph_address or grpc_socket,
        jobs_address=settings.jobs_address or grpc_socket,
    )


def listen_addresses(target: Literal["all"] | Service, settings: Settings, grpc_socket: str) -> list[str]:
    """Where gRPC answers: the folder's socket for `all`, and FLEETBRAIN_LISTEN where it is set."""
    if target != "all" and target != "gateway" and not settings.listen:
        raise InvalidArgument(
            "FIELD_REQUIRED",
            f"--target {target} needs FLEETBRAIN_LISTEN",
            field="FLEETBRAIN_LISTEN",
            next_step="Set it to the HOST:PORT where the other services reach this one.",
        )
    return [*([grpc_socket] if target == "all" else []), *([settings.listen] if settings.listen else [])]


def publish_nats(data: Path, known: dict[str, str], pid: int) -> None:
    """Names the NATS server that runs now, in brain.json too once that is written."""
    known["nats_pid"] = str(pid)
    found = read_brain_file(data)
    if found is not None and found.pid == os.getpid():
        write_brain_file(data, found.version, {**found.addresses, "nats_pid": str(pid)})


def publish_addresses(data: Path, known: Mapping[str, str], addresses: Mapping[str, str]) -> None:
    """Writes brain.json: from now on the brain can be found."""
    write_brain_file(data, version(), {**known, **addresses})


if __name__ == "__main__":
    sys.exit(main())
