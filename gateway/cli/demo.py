"""`make demo`: imports the demo vault into a throw-away brain, asks it a dozen questions, and leaves nothing running.

Everything happens in a temporary folder, with a copy of the vault; a brain of the user's own is neither used nor seen.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from gateway.cli import output
from gateway.cli.recall import show_hit
from gateway.cli.session import Session, open_session
from gateway.cli.transfer import progress, stream
from gateway.operations.json_value import JsonObject
from services.domain.errors import BrainError, Unavailable

VAULT = Path(__file__).parents[2] / "tests" / "corpora" / "demo" / "vault"
QUESTIONS = (
    "Who invested in Loomwick?",
    "谁投资了青禾机器人？",
    "Which companies has Copperfin invested in?",
    "北桐资本投资了哪些公司？",
    "Ana Ferro",
    "隼网能源",
    "that thing about watching the wind through the window instead of a screen",
    "那个看叉车不看报表的女投资人",
    "How much water does my sourdough use?",
    "采摘损伤率为什么要放四十八小时再数？",
    "When did I first think about slow dashboards?",
    "我什么时候开始关注留白日程？",
    "Who invested in Vellum Atlas?",
    "青禾机器人 B 轮估值多少？",
)
"""Relations both ways round, names, vague memories, facts, first times, and two that nothing in the vault answers."""
HITS_SHOWN = 3
READY_SECONDS = 240.0
"""The vault's vectors take about ten seconds on two cores; a loaded machine takes longer."""
STEP_SECONDS = 2


def main() -> int:
    """Runs the demo; exit status 1 when something went wrong."""
    output.prepare()
    signal.signal(signal.SIGTERM, _leave)
    with tempfile.TemporaryDirectory(prefix="fleetbrain-demo-") as folder:
        session = open_session(_environ(os.environ, Path(folder)), data=None, http=None, as_json=False)
        try:
            _run(session, Path(folder) / "vault")
        except BrainError as error:
            output.failure(error, as_json=False)
            return 1
        except KeyboardInterrupt:
            output.message("Interrupted.")
            return 1
        finally:
            _stop(session.settings.data)
    return 0


def _environ(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a brain of its own: none of the user's settings, and the model that is ready at once."""
    clean = {name: value for name, value in environ.items() if not name.startswith("FLEETBRAIN_")}
    return clean | {"FLEETBRAIN_DATA": str(folder / "brain"), "FLEETBRAIN_EMBEDDER_URL": "local:use"}


def _run(session: Session, vault: Path) -> None:
    shutil.copytree(VAULT, vault)
    began = time.monotonic()
    _import(session, vault)
    _wait(session, "text", "searchable by words")
    _wait(session, "links", "linked")
    _wait(session, "vectors", "searchable by meaning")
    counts = session.call("get_stats")
    output.line(
        f"{counts['pages']} pages, {counts['chunks']} passages, {counts['links']} links, "
        f"ready {time.monotonic() - began:.1f} s after the start of the import."
    )
    for number, question in enumerate(QUESTIONS, start=1):
        output.line()
        output.line(f"{number}. {question}")
        _show(session.call("query", query=question, limit=HITS_SHOWN))
    output.line()
    output.line("Nothing of the demo stays. To connect an agent to a brain of your own:")
    output.line(f"  claude mcp add fleetbrain -- {Path(sys.executable).parent / 'fleetbrain'} mcp")


def _import(session: Session, vault: Path) -> None:
    from gateway.folder import walk
    from gateway.importing import ImportSummary

    found = walk(vault)
    summary = ImportSummary(refused=list(found.refused))
    output.line(f"Importing {len(found.paths)} files of the demo vault into a throw-away brain.")
    stream(session, found, summary, "")
    for refused in summary.refused:
        output.line(f"refused {refused.path}: {refused.message}")
    output.line(f"{summary.created} pages are stored.")


def _wait(session: Session, what: str, words: str) -> None:
    """Waits for a projection, with a bar on a terminal for the one that takes a while."""
    deadline = time.monotonic() + READY_SECONDS
    total = int(str(session.call("get_stats")["chunks"])) if what == "vectors" else None
    with progress(f"Waiting until all is {words}", total=total) as moved_to:
        while time.monotonic() < deadline:
            status = session.call("get_status", wait=what, timeout_seconds=STEP_SECONDS)
            if total is not None:
                moved_to(total - int(str(status["unembedded"])))
            if status["reached"]:
                output.line(f"All is {words}.")
                return
    raise Unavailable(
        "DEADLINE_EXCEEDED",
        f"not everything was {words} within {READY_SECONDS:g} s",
        next_step="Try again on a machine that is less busy.",
    )


def _show(reply: JsonObject) -> None:
    if reply["abstained"]:
        output.line(f"    I don't know. {reply['abstained_because']}")
        return
    for hit in output.objects(reply["hits"]):
        show_hit(hit)


def _stop(data: Path) -> None:
    from gateway.brain import stop

    try:
        stop(data)
    except BrainError as error:
        output.failure(error, as_json=False)


def _leave(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
