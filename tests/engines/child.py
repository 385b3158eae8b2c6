"""A server that never outlives the tests that started it, however they end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# The kernel kills the server when its parent dies (PR_SET_PDEATHSIG, SIGKILL); exec keeps the setting. A shim and no
# `preexec_fn`, which may deadlock in a process with threads. Elsewhere than on Linux there is no such setting.
_SHIM = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def start(
    command: Sequence[str], console: Path, *, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts a server whose output goes to a file; to be called from the main thread, whose end is the server's."""
    with console.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", _SHIM, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=cwd,
            env=None if environment is None else dict(environment),
        )


def stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Asks the server to end and, when it takes too long, ends it."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
