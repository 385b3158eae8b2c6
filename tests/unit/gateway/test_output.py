"""What the command line prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli import output
from gateway.cli.graph import _branch
from gateway.operations.json_value import JsonObject


@given(st.text())
def test_no_name_controls_a_terminal(name: str) -> None:
    """BC-166."""
    shown = output.safe(name)

    assert all(character.isprintable() or unicodedata.category(character) == "Zs" for character in shown)
    assert not any(control in shown for control in ("\x1b", "\n", "\r", "\x9b", "\u202e", "\u2028"))


def test_an_escape_sequence_is_shown_as_text() -> None:
    """BC-166."""
    assert output.safe("\x1b[2Jok 想法") == "\\x1b[2Jok 想法"


def test_a_table_is_aligned_with_chinese_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([("想法", "1"), ("idea", "2")], header=("NAME", "N"))

    assert capsys.readouterr().out == "NAME  N\n想法  1\nidea  2\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_every_byte_gets_through_a_slow_pipe_that_does_not_block(unbuffered: str) -> None:
    """BC-077."""
    code = "from gateway.cli import output; output.prepare(); output.document({'text': 'x' * 300_000})"
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-c", code], stdout=writing, env=environ) as process:
        os.close(writing)
        received = b""
        while part := os.read(reading, 4096):
            received += part
        assert process.wait(timeout=5) == 0
    os.close(reading)

    assert len(json.loads(received)["text"]) == 300_000


def test_a_cycle_in_the_graph_is_a_finite_tree(capsys: pytest.CaptureFixture[str]) -> None:
    there: JsonObject = {"from_slug": "a", "to_slug": "b", "link_type": "knows", "inward": False, "exists": True}
    children: dict[str, list[JsonObject]] = {
        "a": [there | {"depth": 1, "tree": True}],
        "b": [there | {"from_slug": "b", "to_slug": "a", "depth": 2, "tree": False}],
    }

    _branch(children, "a", depth=1)

    assert capsys.readouterr().out == "  --knows-> b\n    --knows-> a\n"
