"""Fetches every engine that tests start themselves; `make engines` runs it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> int:
    """Fetches engine after engine; each package beside this module that has a `pom.xml` is one."""
    for pom in sorted(Path(__file__).parent.glob("*/pom.xml")):
        engine = importlib.import_module(f"tests.engines.{pom.parent.name}")
        try:
            print(f"{pom.parent.name}: {engine.fetch()}")
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
