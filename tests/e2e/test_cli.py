"""The command line, as people and scripts use it: one brain of its own for all of these tests."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from gateway.brain import find, stop
from tests.e2e.agent import agent
from tests.e2e.deployments import clean_environ, until
from tests.e2e.test_kill import kill

COMMAND = (sys.executable, "-m", "gateway.cli.main")
SECONDS_MAX = 90


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands on the brain of one data folder."""

    data: Path
    environ: dict[str, str]

    def run(self, *arguments: str, stdin: bytes = b"", status: int | None = 0) -> subprocess.CompletedProcess[bytes]:
        """A command that has ended; checks its exit status unless that is None."""
        done = subprocess.run(
            [*COMMAND, *arguments], input=stdin, capture_output=True, env=self.environ, timeout=SECONDS_MAX
        )
        assert status is None or done.returncode == status, done
        return done

    def text(self, *arguments: str, stdin: bytes = b"") -> str:
        """What a command prints."""
        return self.run(*arguments, stdin=stdin).stdout.decode()

    def json(self, *arguments: str, stdin: bytes = b"", status: int | None = 0) -> Any:
        """The one document that a command prints."""
        return json.loads(self.run(*arguments, "--json", stdin=stdin, status=status).stdout)


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A data folder whose brain the first command starts."""
    # Longer than a socket's path may be: the sockets then live in a short folder of their own.
    data = tmp_path_factory.mktemp("a-folder-with-a-name-that-is-much-too-long-for-the-path-of-a-unix-socket") / "数据"
    yield Shell(data, clean_environ(FLEETBRAIN_DATA=str(data)))
    stop(data)


@pytest.fixture(scope="session")
def vault(tmp_path_factory: pytest.TempPathFactory, shell: Shell) -> Path:
    """A small folder that is imported."""
    folder = tmp_path_factory.mktemp("vault")
    files = {
        "people/ada.md": "# Ada Example\n\nAda founded [[companies/lumen]] in 2021.\n",
        "companies/lumen.md": "---\ntype: company\n---\n# Lumen\n\nLumen builds lamps. See [[nowhere]].\n",
        "公司/青石.md": "---\ntype: company\n---\n# 青石科技\n\n[[people/ada]] 投资了青石科技。\n",
        "src/lamp.py": "def glow() -> int:\n    return 7\n",
        "broken.md": "---\ntitle: [\n---\n# Broken\n",
        ".gitignore": "drafts/\n",
        "drafts/secret.md": "# Not for import\n",
        "data.json": "{}",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "latin.md").write_bytes(b"# Caf\xe9\n\nline two\n")
    (folder / "link.md").symlink_to("/etc/passwd")
    shell.run("import", str(folder))
    shell.run("status", "--wait", "text", "--timeout", "30")
    shell.run("status", "--wait", "links", "--timeout", "30")
    return folder


def test_ten_commands_at_once_make_one_brain(tmp_path: Path) -> None:
    environ = clean_environ(FLEETBRAIN_DATA=str(tmp_path / "brain"))
    try:
        starting = [
            subprocess.Popen([*COMMAND, "up", "--json"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(10)
        ]
        replies = [json.loads(process.communicate(timeout=SECONDS_MAX)[0]) for process in starting]

        assert len({reply["pid"] for reply in replies}) == 1
        assert sum(reply["started"] for reply in replies) == 1
    finally:
        stop(tmp_path / "brain")
    assert find(tmp_path / "brain") is None


def test_an_import_reports_every_file(shell: Shell, vault: Path) -> None:
    again = shell.json("import", str(vault))

    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 5)
    refused = {entry["path"]: entry for entry in again["refused"]}
    assert set(refused) == {"latin.md", "link.md"}
    assert refused["latin.md"]["reason"] == "ENCODING_INVALID"
    assert refused["latin.md"]["line"] == 1
    assert all(entry["next_step"] for entry in refused.values())
    assert again["passed_over"] == {".json": 1}


def test_an_import_says_what_broken_frontmatter_means(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "odd.md").write_text("---\ntitle: [\n---\n# Odd\n")

    report = shell.json("import", str(tmp_path))

    assert report["findings"][0]["path"] == "odd.md"
    assert report["findings"][0]["line"] >= 1


def test_what_was_imported_is_found_in_both_languages(shell: Shell, vault: Path) -> None:
    english = shell.json("query", "who", "founded", "Lumen?")
    chinese = shell.json("query", "谁投资了青石科技？")

    assert english["hits"][0]["slug"] == "people/ada"
    assert chinese["hits"][0]["slug"] == "people/ada"
    assert chinese["hits"][0]["evidence"] == "relational"


def test_the_trace_is_a_table(shell: Shell, vault: Path) -> None:
    shown = shell.text("query", "lamps", "--explain")

    assert re.search(r"^STAGE +MS +IN +OUT +CHANGED$", shown, re.MULTILINE)
    assert re.search(r"^fusion +\d+\.\d{3} ", shown, re.MULTILINE)


def test_the_graph_is_a_tree_and_gbrains_verb_prints_edges(shell: Shell, vault: Path) -> None:
    tree = shell.text("graph", "companies/lumen", "--direction", "in")
    edges = shell.text("graph-query", "people/ada", "--direction", "out", "--depth", "1", "--type", "founded")
    inward = shell.text("graph-query", "companies/lumen", "--direction", "in", "--depth", "1", "--type", "founded")

    assert tree.splitlines()[:2] == ["companies/lumen  Lumen", "  <-founded-- people/ada"]
    assert edges == "--founded-> companies/lumen (depth 1)\n"
    assert inward == "<-founded-- people/ada (depth 1)\n"


def test_extract_counts_links_and_lists_what_leads_nowhere(shell: Shell, vault: Path) -> None:
    reply = shell.json("extract", "all")

    assert reply["links"] >= 3
    assert [(link["from_slug"], link["name"], link["reason"]) for link in reply["unresolved"]] == [
        ("companies/lumen", "nowhere", "no such page")
    ]
    assert "Unresolved: 1" in shell.text("extract", "links")


def test_stats_count_by_type(shell: Shell, vault: Path) -> None:
    stats = shell.json("stats")

    assert stats["pages"] >= 5
    assert stats["by_type"]["company"] == 2
    assert re.search(r"^Pages: +\d+$", shell.text("stats"), re.MULTILINE)


def test_a_page_is_written_read_moved_removed_and_brought_back(shell: Shell) -> None:
    text = "# Round trip\r\n\r\n想法 with\ttabs and no newline at the end"
    shell.run("put", "cli/one", stdin=text.encode())
    assert shell.run("get", "cli/one").stdout == text.encode()

    first = shell.json("get", "cli/one")["revision"]
    shell.run("put", "cli/one", "--if-revision", str(first), stdin=b"# Two\n")
    shell.run("mv", "cli/one", "cli/two")
    assert shell.text("get", "cli/one") == "# Two\n"
    assert str(first) in shell.text("history", "cli/two")
    shell.run("revert", "cli/two", str(first))
    assert shell.run("get", "cli/two").stdout == text.encode()
    shell.run("rm", "cli/two")
    shell.run("get", "cli/two", status=1)
    shell.run("restore", "cli/two")
    assert [page["slug"] for page in shell.json("ls", "cli/")["pages"]] == ["cli/two"]


def test_every_byte_of_a_page_gets_through_a_slow_pipe(shell: Shell) -> None:
    """BC-077."""
    text = "".join(f"line {number} 字\n" for number in range(22_000))
    shell.run("put", "cli/long", stdin=text.encode())

    with subprocess.Popen([*COMMAND, "get", "cli/long"], env=shell.environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        received = b""
        while part := os.read(process.stdout.fileno(), 1_000):
            received += part

    assert process.returncode == 0
    assert received == text.encode()


def test_a_reader_that_leaves_early_is_no_crash(shell: Shell) -> None:
    # More than any pipe holds, so that the writer is still writing when the reader leaves.
    shell.run("put", "cli/left", stdin=b"x\n" * 2_000_000)

    with subprocess.Popen(
        [*COMMAND, "get", "cli/left"], env=shell.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        errors = process.stderr.read()

    assert process.returncode == 1
    assert b"Traceback" not in errors


def test_names_cannot_control_the_terminal(shell: Shell) -> None:
    """BC-166."""
    shell.run("put", "cli/escape", stdin=b'---\ntitle: "\\e[2Jcleared"\n---\nbody \x1b[31mred\n')

    assert "\x1b" not in shell.text("ls", "cli/escape")
    assert "\x1b" not in shell.text("query", "cleared")
    on_terminal = run_on_terminal(shell, "get", "cli/escape")
    assert b"\x1b[31m" not in on_terminal
    assert b"\\x1b[31mred" in on_terminal


def run_on_terminal(shell: Shell, *arguments: str) -> bytes:
    """What a command prints on a terminal."""
    controller, terminal = pty.openpty()
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                part = os.read(controller, 1024)
            except OSError:
                return
            if not part:
                return
            shown.extend(part)

    reading = threading.Thread(target=read)
    reading.start()
    subprocess.run([*COMMAND, *arguments], env=shell.environ, stdout=terminal, stderr=terminal, timeout=SECONDS_MAX)
    os.close(terminal)
    reading.join(timeout=5)
    os.close(controller)
    return bytes(shown)


def test_an_import_shows_a_progress_bar_on_a_terminal_and_a_summary(shell: Shell, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.md").write_text(f"# Bar {number}\n")

    shown = run_on_terminal(shell, "import", str(tmp_path)).decode()

    assert "Importing" in shown
    assert "20 created, 0 updated, 0 unchanged, 0 refused" in shown


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["get", "no/such/page"], 1),
        (["get", "a/../b"], 2),
        (["call", "get_pages"], 2),
        (["call", "get_page", "{"], 2),
        (["call", "get_page", '{"slugs": "x"}'], 2),
        (["ls", "--limit", "-1"], 2),
        (["frobnicate"], 2),
        (["status", "--timeout", "soon"], 2),
        (["jobs", "get"], 2),
        (["import", "/no/such/folder"], 1),
        ([], 2),
        (["--version"], 0),
        (["--help"], 0),
    ],
)
def test_exit_status_tells_failure_from_wrong_usage(shell: Shell, arguments: list[str], status: int) -> None:
    done = shell.run(*arguments, status=status)

    assert b"Traceback" not in done.stderr
    assert status != 1 or done.stderr


def test_json_is_one_document_also_for_errors(shell: Shell) -> None:
    error = shell.json("get", "no/such/page", status=1)["error"]

    assert error["reason"] == "PAGE_NOT_FOUND"
    assert error["next_step"]
    assert shell.json("status")["reached"] is True
    assert json.loads(shell.text("call", "list_pages", '{"limit": 1}'))["pages"]


def test_status_says_when_a_wait_is_too_short_or_in_vain(shell: Shell) -> None:
    done = shell.run("call", "get_status", '{"wait": "text", "timeout_seconds": 0, "min_revision": 1000000000}')
    late = shell.run("status", "--wait", "vectors", "--timeout", "1", status=1)

    assert json.loads(done.stdout)["reached"] is False
    assert b"FEATURE_OFF" in late.stderr


def test_an_export_holds_every_page_and_imports_as_unchanged(shell: Shell, vault: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    report = shell.json("export", str(target))
    again = shell.json("import", str(target))

    assert (target / "公司" / "青石.md").read_bytes() == (vault / "公司" / "青石.md").read_bytes()
    assert (target / "src" / "lamp.py").read_bytes() == (vault / "src" / "lamp.py").read_bytes()
    assert (again["created"], again["updated"]) == (0, 0)
    assert again["unchanged"] == report["pages"]
    shell.run("export", str(target), status=1)


def test_doctor_finds_nothing_wrong_with_a_healthy_brain(shell: Shell) -> None:
    reply = shell.json("doctor")

    assert reply["ok"] is True
    assert {"data folder", "brain", "embedder", "jobs"} <= {check["name"] for check in reply["checks"]}


def test_a_rebuild_is_waited_for_and_a_move_needs_an_engine_that_there_is(shell: Shell, vault: Path) -> None:
    done = shell.run("rebuild", "graph")
    refused = shell.run("rebuild", "graph", "--to", "bolt://user:password@host", status=1)

    assert done.stdout.decode().strip() == "graph is built anew."
    assert "password" in refused.stderr.decode()


def test_doctor_says_what_is_wrong(tmp_path: Path) -> None:
    """BC-169: a brain that cannot come up is not reported as healthy."""
    file = tmp_path / "file"
    file.write_text("in the way")
    broken = Shell(file / "data", clean_environ(FLEETBRAIN_DATA=str(file / "data")))

    done = broken.run("doctor", "--json", status=1)

    assert json.loads(done.stdout)["ok"] is False


def test_a_wrong_setting_is_wrong_usage_with_a_next_step(shell: Shell) -> None:
    for name, value in (("FLEETBRAIN_HTPP", "x"), ("FLEETBRAIN_HTTP", "0.0.0.0:8620"), ("FLEETBRAIN_HTTP", "nowhere")):
        done = Shell(shell.data, shell.environ | {name: value}).run("stats", status=2)
        assert name in done.stderr.decode()


async def test_agents_over_stdio_share_the_brain_and_nothing_but_the_protocol_is_on_standard_output(
    shell: Shell,
) -> None:
    """BC-145."""
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=shell.environ)
    async with agent(server) as one, agent(server) as other:
        await one.call("put_page", slug="stdio/one", content="# Said by one\n")

        assert (await other.call("get_page", slug="stdio/one"))["content"] == "# Said by one\n"

    lines = await asyncio.to_thread(conversation, shell)
    assert [line["jsonrpc"] for line in lines] == ["2.0"] * len(lines)
    assert [line["id"] for line in lines] == [1, 2]


async def test_an_agent_does_not_notice_that_the_brain_was_killed_between_two_calls(tmp_path: Path) -> None:
    data = tmp_path / "brain"
    environ = clean_environ(FLEETBRAIN_DATA=str(data))
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=environ)
    try:
        async with agent(server) as one:
            await one.call("put_page", slug="kept", content="# Kept\n")
            running = find(data)
            assert running is not None
            kill(running)

            assert (await one.call("get_page", slug="kept"))["content"] == "# Kept\n"
            assert (await one.call("put_page", slug="more", content="# More\n"))["status"] == "created"
    finally:
        stop(data)


def test_in_the_foreground_a_brain_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    environ = clean_environ(FLEETBRAIN_DATA=str(tmp_path / "brain"))
    with subprocess.Popen([*COMMAND, "up", "--foreground"], env=environ, stderr=subprocess.PIPE) as process:
        until(lambda: find(tmp_path / "brain") is not None, "brain in the foreground")
        running = find(tmp_path / "brain")
        assert running is not None
        assert running.pid == process.pid
        assert (tmp_path / "brain" / "http.sock").stat().st_mode & 0o077 == 0
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=SECONDS_MAX)

    assert process.returncode == 0
    assert b"Traceback" not in log
    assert find(tmp_path / "brain") is None


def conversation(shell: Shell) -> list[dict[str, Any]]:
    """Every line that an MCP process writes in a short conversation."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_stats", "arguments": {}}},
    ]
    with subprocess.Popen([*COMMAND, "serve"], env=shell.environ, stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.stdin.close()
        lines += process.stdout.readlines()
        assert process.wait(timeout=SECONDS_MAX) == 0
    return [json.loads(line) for line in lines]


def test_down_stops_and_the_next_command_starts_anew_with_everything_there(tmp_path: Path) -> None:
    own = Shell(tmp_path / "brain", clean_environ(FLEETBRAIN_DATA=str(tmp_path / "brain")))
    try:
        own.run("put", "kept", stdin=b"# Kept\n")
        assert "Stopped" in own.text("down")
        assert find(own.data) is None
        assert "No brain" in own.text("down")
        assert own.text("get", "kept") == "# Kept\n"
    finally:
        stop(own.data)
