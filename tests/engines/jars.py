"""The jars of an engine in the user's cache: fetched once by Maven from a pinned pom, and never half."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

COMPLETE = "complete"
"""Made last: a folder without it is what an interrupted fetch left, and the next one goes on from there."""

FETCH_SECONDS_MAX = 900.0
"""Of 150 MB on a slow line; Maven itself tries a lost connection again."""


def cache() -> Path:
    """Where engines lie: the user's cache, so that `make clean` does not fetch them again."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "fleetbrain" / "engines"


def folder_of(engine: str, pom: Path) -> Path:
    """The folder of an engine's jars: another pom has another folder."""
    return cache() / f"{engine}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"


def fetch_jars(engine: str, pom: Path) -> Path:
    """Fetches the jars that a pom lists, unless they are there; returns their folder.

    Raises:
        RuntimeError: Java or Maven is missing, or Maven failed; the message says what to do.
    """
    folder = folder_of(engine, pom)
    jars = folder / "lib"
    if (folder / COMPLETE).exists():
        return jars
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is needed to run a real {engine}; on Debian: apt-get install {package}")
    jars.mkdir(parents=True, exist_ok=True)
    print(f"Fetching {engine} into {folder} (once, 100 to 200 MB)", file=sys.stderr, flush=True)
    # Maven's own lines are the progress; files that are there already are not fetched again.
    command = ["mvn", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    done = subprocess.run(command, stdout=sys.stderr, timeout=FETCH_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Maven could not fetch {engine} (exit code {done.returncode}); run `make engines` again")
    (folder / COMPLETE).touch()
    return jars
