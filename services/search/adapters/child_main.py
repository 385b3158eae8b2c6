"""The child's side of `child`: `python -m services.search.adapters.child_main ROLE FD name=value…`.

Roles:
    vectors: Owns the folders of Qdrant Edge, and embeds queries.
    passages: Embeds passages, at idle priority, apart from the queries so that these never wait.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from services.domain.errors import BrainError, Internal, Unavailable
from services.search.adapters.child import HEADER, error_values

Methods = Mapping[str, Callable[..., Any]]


def main(role: str, descriptor: int, options: Mapping[str, str]) -> None:
    """Answer calls until the parent closes the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's ^C is for the parent, which then ends us in order
    os.nice(int(options.get("nice", "0")))
    # One thread: on few busy cores the linear algebra's own threads only take each other's time.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    methods = _methods(role, options)
    with socket.socket(fileno=descriptor) as connection:
        while (call := _receive(connection)) is not None:
            method, arguments = call
            reply = _answer(methods[method], arguments)
            body = pickle.dumps(reply, protocol=5)
            connection.sendall(HEADER.pack(len(body)) + body)


def _methods(role: str, options: Mapping[str, str]) -> Methods:
    """What a role can do. Imports are local: a child loads only what its role needs."""
    from services.search.adapters.local_models import Models

    models = Models(cache=options["models"])
    if role == "passages":
        return {"embed": models.embed}
    assert role == "vectors", role
    from services.search.adapters.edge_store import EdgeStores

    stores = EdgeStores()
    return {
        "embed": models.embed,
        "open": stores.open,
        "missing": stores.missing,
        "apply": stores.apply,
        "search": stores.search,
        "count": stores.count,
        "held": stores.held,
        "close": stores.close,
    }


def _answer(method: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Any]:
    try:
        return None, method(*arguments)
    except BrainError as error:
        return error_values(error), None
    except OSError as error:
        return error_values(Unavailable("PEER_UNAVAILABLE", f"the vectors cannot be kept: {error}")), None
    except Exception as error:  # noqa: BLE001 - the edge of the process: a call must not end it
        return error_values(Internal("INTERNAL", f"{type(error).__name__}: {error}")), None


def _receive(connection: socket.socket) -> tuple[str, tuple[Any, ...]] | None:
    header = _exactly(connection, HEADER.size)
    if header is None:
        return None
    body = _exactly(connection, HEADER.unpack(header)[0])
    if body is None:
        return None
    method, arguments = pickle.loads(body)  # noqa: S301 - from our parent, over a socket nobody else has
    return method, arguments


def _exactly(connection: socket.socket, size: int) -> bytearray | None:
    """So many bytes, or None when the parent is gone."""
    received = bytearray(size)
    view = memoryview(received)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return received


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), dict(option.split("=", 1) for option in sys.argv[3:]))
