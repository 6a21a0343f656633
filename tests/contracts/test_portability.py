"""Nothing needs what only POSIX has, but for the sandbox of Linux.

`without_posix` takes such modules and names away, and an event loop that watches descriptors and signals; what is run
here runs there. The SDK for servers of tools is not: it needs some of it itself, where the system is not Windows.
"""

import ast
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reasonry.system.processes import split_words
from tests.forked import forking_python
from tests.servers import ModelServer, Player

from ..surfaces.mcp.raw import Raw
from .sources import FILES, SOURCE, tree_of
from .without_posix import MODULES, NAMES, without_posix

ROOT = Path(__file__).parents[2]
PUZZLE = "Use 4, 9, 10 and 13 to make 24"
ANSWER = "(9 - (13 - 10)) * 4 = 24"
LINUX_ONLY = {"sandbox_bubblewrap.py", "sandbox_runner.py"}


def test_no_module_imports_what_only_posix_has() -> None:
    for path in FILES:
        tree = tree_of(path)
        imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not imported & MODULES, path.name


def test_names_that_only_posix_has_are_looked_for_before_they_are_used() -> None:
    names = {(module.__name__, name) for module, listed in NAMES.items() for name in (*listed, "getuid")}
    for path in FILES:
        used = {
            (node.value.id, node.attr)
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        if used & names and path.name not in LINUX_ONLY:
            text = path.read_text("utf-8")
            assert re.search(r"hasattr\((os|select|signal), ", text), f"{path.name}: {used & names}"


MODE = re.compile(r"[rwxa][+bt]{0,2}")
ENCODING_AT = {"read_text": 0, "write_text": 1}
"""Methods of paths, and the place of their encoding among what is given without a name."""


def wants_an_encoding(call: ast.Call, name: str) -> bool:
    """Whether a call is one for text that names no encoding."""
    named = {one.arg for one in call.keywords}
    if "encoding" in named:
        return False
    if name in ("run", "Popen", "check_output"):
        return not {"text", "universal_newlines"}.isdisjoint(named)
    given = [one.value for one in call.args if isinstance(one, ast.Constant)]
    if name in ("open", "fdopen"):
        modes = [one for one in given if isinstance(one, str) and MODE.fullmatch(one)]
        return (name == "fdopen" or bool(modes)) and "b" not in "".join(modes)
    return isinstance(call.func, ast.Attribute) and len(call.args) <= ENCODING_AT.get(name, -1)


def test_text_is_read_and_written_in_an_encoding_and_with_line_ends_that_are_named() -> None:
    wrong: list[str] = []
    for path in FILES:
        for call in (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            newline = any(one.arg == "newline" for one in call.keywords)
            if wants_an_encoding(call, name) or (
                name == "write_text" and len(call.args) == 1 and not newline
            ):
                wrong.append(f"{path.name}:{call.lineno}: {name}")
    # A distribution's metadata, which the standard library reads as UTF-8.
    assert [one for one in wrong if not one.startswith("launch.py")] == []


def test_what_is_linux_only_says_so() -> None:
    for file in LINUX_ONLY:
        assert "Linux" in (SOURCE / "tools" / file).read_text("utf-8")


def test_the_names_are_really_gone() -> None:
    code = (
        "from tests.contracts.without_posix import hide; hide()\n"
        "import os; print(hasattr(os, 'killpg')); import fcntl"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n"
    assert "No module named 'fcntl'" in done.stderr


COMMANDS = """
import contextlib, io, json, sys
from tests.contracts.without_posix import hide
hide()
from reasonry.surfaces.cli import run
def call(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([*words, "--json"])
    assert code == 0, (words, code, out.getvalue())
    return json.loads(out.getvalue())
solved = call("solve", sys.argv[1], "--model", "offline")
call("runs", "cancel", call("coach", "start", "P", "--strategy", "linear")["run_id"])
call("think", "First", "--number", "1", "--total", "2", "--next")
told = {
    "solved": solved,
    "shown": call("runs", "show", solved["run_id"]),
    "replayed": call("runs", "replay", solved["run_id"])["replay"],
    "runs": call("runs", "list")["runs"],
    "sessions": call("sessions", "list")["sessions"],
    "strategies": call("strategies"),
    "doctor": call("doctor"),
    "verified": call("store", "verify"),
}
print(json.dumps(told))
"""


def test_the_command_line_works_over_a_sqlite_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONRY_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    command = [sys.executable, "-c", COMMANDS, PUZZLE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["solved"]["answer"] == told["shown"]["answer"] == ANSWER
    assert told["replayed"]["identical"] is True
    assert [row["status"] for row in told["runs"]] == ["cancelled", "done"]
    assert len(told["sessions"]) == 3
    sandboxes = {one["name"]: one["usable"] for one in told["doctor"]["sandboxes"]}
    assert sandboxes == {"monty": True, "bubblewrap": False}


def test_the_mcp_server_thinks_coaches_and_solves(tmp_path: Path) -> None:
    command = without_posix("reasonry.surfaces.mcp.serve")
    with Raw(tmp_path / "store.db", command=command, REASONRY_MODEL="offline") as raw:
        tools = [one["name"] for one in raw.ask("tools/list")["result"]["tools"]]
        assert tools == ["sequentialthinking", "sessions", "coach", "solve", "show"]
        assert raw.think(1)["thoughtNumber"] == 1
        shown = raw.call("coach", action="start", problem="What is 6 * 7?", strategy="step_back")
        question = shown["questions"][0]["id"]
        shown = raw.call(
            "coach", action="answer", run_id=shown["run_id"], answers=[{"id": question, "answer": "?"}]
        )
        assert shown["status"] == "active"
        assert raw.call("solve", problem=PUZZLE)["answer"] == ANSWER
        assert len(raw.call("sessions", action="list")["sessions"]) == 3


def test_ctrl_c_cancels_a_driven_run_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONRY_STORE", str(tmp_path / "store.db"))
    with ModelServer(reply=Player(), latency_ms=60_000) as server:
        words = without_posix("reasonry", "solve", PUZZLE, "--model", server.model, "--json")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            until = time.monotonic() + 20
            while not server.stats()["requests"] and time.monotonic() < until:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=10)
        assert (process.returncode, err) == (130, "")
        document = json.loads(out)
        assert (document["status"], document["termination"]["reason"]) == ("cancelled", "cancelled")
        server.reset(latency_ms=0)
        words = without_posix("reasonry", "runs", "resume", document["run_id"], "--json")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["answer"] == ANSWER


def test_what_an_output_cannot_write_is_escaped(tmp_path: Path) -> None:
    words = "reasonry think 日本 --number 1 --total 2 --next --strategy linear"
    done = subprocess.run(
        [sys.executable, "-m", *words.split()],
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "REASONRY_STORE": str(tmp_path / "store.db")},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"thought 1/2 \xb7 linear" in done.stdout


HELP = """
import sys
from reasonry.surfaces.cli import main
sys.stdout.reconfigure(encoding=sys.argv[1], errors="strict")
for words in ("--help", "solve --help", "setup --help", "coach answer --help", "strategies react"):
    try:
        main(words.split())
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-8"])
def test_help_is_shown_on_a_console_of_any_code_page(encoding: str) -> None:
    done = subprocess.run([forking_python(), "-c", HELP, encoding], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "solve" in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("line", "windows", "words"),
    [
        ("npx -y server --root 'a b'", False, ["npx", "-y", "server", "--root", "a b"]),
        (r"C:\tools\server.exe --root C:\data", True, [r"C:\tools\server.exe", "--root", r"C:\data"]),
        (r'"C:\Program Files\server.exe" -q', True, [r"C:\Program Files\server.exe", "-q"]),
        ('server ""', True, ["server", ""]),
    ],
)
def test_a_command_line_keeps_the_paths_of_its_system(line: str, windows: bool, words: list[Any]) -> None:
    assert split_words(line, "mcp", windows=windows) == words
