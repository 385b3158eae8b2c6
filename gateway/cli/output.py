"""What the command line prints: JSON or lines, complete, and without letting a name control the terminal."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence

from gateway.operations.json_value import JsonObject, JsonValue
from services.domain.errors import BrainError


def prepare() -> None:
    """Makes the standard streams fit for everything: a pipe that somebody made non-blocking would lose the tail."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by who started us; the next file opened would take its place
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        os.set_blocking(stream.fileno(), True)
        if hasattr(stream, "reconfigure"):
            # Names of files may hold bytes that are no text, and a terminal may have an encoding without Chinese.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def safe(text: str) -> str:
    """One line of text in which nothing is a command to a terminal or hides what it says."""
    return "".join(c if _shown(c) else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def safe_lines(text: str) -> str:
    """Text of several lines, made safe line by line; tabs stay."""
    return "\n".join("\t".join(safe(cell) for cell in line.split("\t")) for line in text.split("\n"))


def _shown(character: str) -> bool:
    # Not printable are controls, formats (bidi overrides, zero widths), halves of pairs, and uncommon spaces.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def line(text: str = "") -> None:
    """Prints a line on standard output."""
    _deliver(safe(text) + "\n")


def message(text: str) -> None:
    """Prints a line for people on standard error."""
    sys.stdout.flush()
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()


def document(value: JsonValue) -> None:
    """Prints one JSON document."""
    _deliver(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def raw(body: bytes) -> None:
    """Prints bytes as they are, every one of them."""
    sys.stdout.flush()
    rest = memoryview(body)
    while rest:
        # Python without buffers (PYTHONUNBUFFERED) writes what fits into the pipe, says how much, and drops the rest.
        rest = rest[sys.stdout.buffer.write(rest) or 0 :]
    sys.stdout.buffer.flush()


def _deliver(text: str) -> None:
    raw(text.encode("utf-8", "backslashreplace"))


def table(rows: Iterable[Sequence[str]], *, header: Sequence[str]) -> None:
    """Prints aligned columns; the last one is as long as it is."""
    lines = [list(header), *(list(row) for row in rows)]
    shown = [[safe(cell) for cell in row] for row in lines]
    widths = [max(_width(row[i]) for row in shown) for i in range(len(header))]
    padded = (
        [cell + " " * (width - _width(cell)) for cell, width in zip(row[:-1], widths, strict=False)] for row in shown
    )
    text = ("  ".join([*cells, row[-1]]).rstrip() for cells, row in zip(padded, shown, strict=True))
    _deliver("\n".join(text) + "\n")


def _width(text: str) -> int:
    """Columns of a terminal: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in {"W", "F"} else 1 for c in text)


def failure(error: BrainError, *, as_json: bool) -> None:
    """Prints what failed and what to do about it."""
    if as_json:
        shown: JsonObject = {
            "reason": error.reason,
            "message": error.message,
            "field": error.field,
            "value": error.value,
            "next_step": error.next_step,
        }
        document({"error": shown})
    for part in f"{error.reason}: {error.message}".split("\n"):
        message(part)
    if error.next_step:
        message(error.next_step)


def notes(reply: JsonObject) -> None:
    """Prints what the brain understood differently from how it was written."""
    found = reply.get("notes")
    for note in found if isinstance(found, list) else []:
        message(f"note: {note}")


def text_of(value: JsonValue) -> str:
    """A value for a table; empty when there is none."""
    return "" if value is None else str(value)


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects of a JSON list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
