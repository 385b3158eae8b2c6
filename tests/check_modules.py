"""No hand-written module is longer than 500 lines unless its reason stands on the list below."""

import subprocess
import sys
from pathlib import Path

LINES_MAX = 500
REASONS: dict[str, str] = {}


def main() -> int:
    """Prints each module that is too long and returns 1, or returns 0."""
    root = Path(__file__).resolve().parent.parent
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=root, check=True, capture_output=True, text=True)
    status = 0
    for name in tracked.stdout.splitlines():
        path = root / name
        lines = len(path.read_text().splitlines()) if path.exists() else 0
        if lines > LINES_MAX and name not in REASONS:
            print(f"{name}: {lines} lines; split it by noun, or give its reason in tests/check_modules.py")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
