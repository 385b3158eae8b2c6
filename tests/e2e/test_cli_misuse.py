"""The command line where something is wrong around it: folders, streams, spellings. Never a stack trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.brain import stop
from services.runtime.data_folder import process_started
from tests.e2e.deployments import clean_environ
from tests.e2e.test_cli import COMMAND, SECONDS_MAX, Shell

LONG = "notes/" + "字" * 95
"""A slug whose last part is longer than a file name may be."""
AWKWARD = {
    LONG: "# Long\n\nA part of 285 bytes.\n",
    ".hidden": "# Hidden\n",
    ".git/config": "# Of git\n",
    "a:b": "# Colon\n",
    "both": "# Both\n",
    "both.md/below": "# Below a folder that is called like a file\n",
    "plain/页面": "# 页面\n",
}


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    data = tmp_path_factory.mktemp("misuse") / "brain"
    yield Shell(data, clean_environ(FLEETBRAIN_DATA=str(data)))
    stop(data)


def failed(shell: Shell, *arguments: str, status: int = 1) -> str:
    """What a command that must fail says on standard error."""
    said = shell.run(*arguments, status=status).stderr.decode()
    assert "Traceback" not in said
    return said


def test_options_may_stand_anywhere(brain: Shell, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Anywhere\n")
    brain.run("put", "any/where", "--data", str(brain.data), str(page))
    job = brain.json("jobs", "submit", "--job-data", '{"projection": "graph"}', "rebuild")

    assert "# Anywhere" in brain.text("get", "any/where")
    assert job["name"] == "rebuild"


def test_an_export_holds_pages_whose_slug_is_no_file_name_and_gives_them_back(brain: Shell, tmp_path: Path) -> None:
    for slug, text in AWKWARD.items():
        brain.run("put", slug, stdin=text.encode())
    folder, other = tmp_path / "out", tmp_path / "other"
    report = brain.json("export", str(folder))
    fresh = Shell(other, clean_environ(FLEETBRAIN_DATA=str(other)))
    try:
        taken = fresh.json("import", str(folder))
        again = fresh.json("import", str(folder))
        for slug, text in AWKWARD.items():
            assert fresh.text("get", slug) == text
    finally:
        stop(other)

    assert (taken["created"], taken["refused"]) == (report["pages"], [])
    assert again["unchanged"] == report["pages"]
    assert (folder / "plain" / "页面.md").read_text() == AWKWARD["plain/页面"]


def test_a_broken_list_of_an_export_stops_the_import(brain: Shell, tmp_path: Path) -> None:
    (tmp_path / ".fleetbrain-export.json").write_text("{")
    assert ".fleetbrain-export.json" in failed(brain, "import", str(tmp_path), status=1)


def test_an_export_to_where_no_folder_can_be_made_says_so(brain: Shell) -> None:
    assert "/proc/x cannot be made" in failed(brain, "export", "/proc/x")


def test_a_running_brain_does_not_take_another_address_in_silence(brain: Shell) -> None:
    brain.run("up")
    assert "runs already" in failed(brain, "up", "--http", "127.0.0.1:1")
    brain.run("up", "--http", "127.0.0.1:0")


def test_a_put_without_standard_input_is_an_empty_page_refused(brain: Shell) -> None:
    command = " ".join(f"'{part}'" for part in (*COMMAND, "put", "from/nowhere"))
    done = subprocess.run(
        ["sh", "-c", f"{command} <&-"], capture_output=True, env=brain.environ, timeout=SECONDS_MAX, check=False
    )
    assert done.returncode in (1, 2)
    assert b"Traceback" not in done.stderr
    assert b"PAGE_EMPTY" in done.stderr


def test_a_folder_of_notes_is_not_taken_for_the_place_of_a_brain(tmp_path: Path) -> None:
    (tmp_path / "diary.md").write_text("# Monday\n")
    shell = Shell(tmp_path, clean_environ(FLEETBRAIN_DATA=str(tmp_path)))
    said = failed(shell, "up", status=2)

    assert "diary.md" in said
    assert "import" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diary.md"]


def test_an_unreadable_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text("garbage")
    shell = Shell(tmp_path, clean_environ(FLEETBRAIN_DATA=str(tmp_path)))
    said = failed(shell, "up")

    assert "format.json" in said
    assert '"logger"' not in said


def test_a_data_folder_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    shell = Shell(tmp_path, clean_environ(FLEETBRAIN_DATA=str(tmp_path / "file" / "brain")))
    assert str(tmp_path / "file") in failed(shell, "get", "a")


def test_an_absent_nats_is_one_plain_message(tmp_path: Path) -> None:
    environ = clean_environ(FLEETBRAIN_DATA=str(tmp_path / "b"), FLEETBRAIN_NATS_URL="nats://127.0.0.1:9")
    said = failed(Shell(tmp_path / "b", environ), "up")

    assert "NATS" in said
    assert '"logger"' not in said
    assert "request_id" not in said
    assert len(said.splitlines()) <= 5


def test_json_stays_one_document_when_a_command_fails(brain: Shell) -> None:
    done = brain.run("export", "/proc/x", "--json", status=1)
    assert json.loads(done.stdout)["error"]["field"] == "folder"


def test_calls_piped_in_over_stdio_are_answered_before_the_end(brain: Shell) -> None:
    client = {"name": "pipe", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    put = {"name": "put_page", "arguments": {"slug": "from/pipe", "content": "# Piped\n"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": put},
    ]
    piped = "".join(json.dumps(message) + "\n" for message in messages).encode()
    answers = {a["id"]: a for a in map(json.loads, brain.run("mcp", stdin=piped).stdout.splitlines())}

    assert json.loads(answers[2]["result"]["content"][0]["text"])["slug"] == "from/pipe"
    assert brain.text("get", "from/pipe") == "# Piped\n"


def test_down_also_ends_the_nats_of_a_brain_that_was_killed(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "b", clean_environ(FLEETBRAIN_DATA=str(tmp_path / "b")))
    shell.run("up")
    known = json.loads((tmp_path / "b" / "brain.json").read_text())
    os.kill(known["pid"], signal.SIGKILL)
    nats = int(known["addresses"]["nats_pid"])

    assert process_started(nats)
    assert str(nats) in shell.text("down")
    assert not process_started(nats)


def test_nothing_stays_of_the_short_folder_for_sockets(tmp_path: Path) -> None:
    data = tmp_path / ("a-long-name-" * 8) / "brain"
    shell = Shell(data, clean_environ(FLEETBRAIN_DATA=str(data)))
    shell.run("up")
    short = Path(json.loads((data / "brain.json").read_text())["addresses"]["http_socket"]).parent

    assert short != data
    shell.run("down")
    assert not short.exists()
