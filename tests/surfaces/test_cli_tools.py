"""`reasonry tools`: as a user's shell meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonry.surfaces import cli

DOCUMENT = ["status", "value", "stdout", "error", "truncated", "sandbox", "duration_ms"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["tools", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("print('hello')\n6 * 7\n", "utf-8")
    return path


def test_list_names_the_tools_and_the_sandboxes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "--json")
    document: dict[str, Any] = json.loads(out)
    assert code == 0
    assert "py_executor" in [row["name"] for row in document["tools"]]
    assert [row["name"] for row in document["sandboxes"]] == ["monty", "bubblewrap"]
    code, out, _ = run(capsys, "list")
    assert (code, "py_executor" in out, "bubblewrap" in out) == (0, True, True)


def test_run_prints_one_document(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    code, out, err = run(capsys, "run", "py_executor", "--code", str(program), "--json")
    document = json.loads(out)
    assert (code, err, list(document)) == (0, "", DOCUMENT)
    assert (document["status"], document["value"], document["stdout"]) == ("ok", 42, "hello\n")
    assert document["sandbox"] == "monty"


def test_for_people_the_value_is_the_last_line(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    code, out, err = run(capsys, "run", "py_executor", "--code", str(program))
    assert (code, out.splitlines(), "monty" in err) == (0, ["hello", "42"], True)


@pytest.mark.parametrize(
    ("source", "options", "status"),
    [
        ("1 / 0", [], "error"),
        ("while True: pass", ["--max-seconds", "0.3"], "timeout"),
        ("x = 'a' * 10 ** 9", ["--max-memory-mb", "64"], "memory"),
        ("open('/etc/passwd').read()", [], "denied"),
    ],
)
def test_what_did_not_end_well_exits_with_9(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str, options: list[str], status: str
) -> None:
    path = tmp_path / "program.py"
    path.write_text(source, "utf-8")
    code, out, _ = run(capsys, "run", "py_executor", "--code", str(path), *options, "--json")
    assert (code, json.loads(out)["status"]) == (9, status)
    code, out, err = run(capsys, "run", "py_executor", "--code", str(path), *options)
    assert (code, out, err.startswith(f"{status}: ")) == (9, "", True)


def test_code_comes_from_standard_input_too() -> None:
    main = "from reasonry.surfaces.cli import main; main()"
    command = [sys.executable, "-c", main, "tools", "run", "py_executor", "--code", "-", "--json"]
    done = subprocess.run(command, input="40 + 2", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, json.loads(done.stdout)["value"], done.stderr) == (0, 42, "")


def test_what_is_printed_does_nothing_to_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text("print(chr(27) + ']0;owned' + chr(7))\nchr(27)", "utf-8")
    code, out, err = run(capsys, "run", "py_executor", "--code", str(path))
    assert code == 0
    assert "\x1b" not in out + err
    code, out, _ = run(capsys, "run", "py_executor", "--code", str(path), "--json")
    assert "\x1b" not in out
    assert json.loads(out)["value"] == "\x1b"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run"], 2),
        (["run", "py_executor"], 2),
        (["run", "py_executor", "--code", "/nowhere.py"], 2),
        (["run", "py_executor", "--code", "."], 2),
        (["run", "py_executor", "--code", "PROGRAM", "--sandbox", "docker"], 2),
        (["run", "py_executor", "--code", "PROGRAM", "--max-seconds", "0"], 2),
        (["run", "py_executor", "--code", "PROGRAM", "--max-seconds", "nan"], 2),
        (["run", "py_executor", "--code", "PROGRAM", "--max-seconds", "soon"], 2),
        (["run", "py_executor", "--code", "PROGRAM", "--max-memory-mb", "1"], 2),
        (["run", "shell", "--code", "PROGRAM"], 3),
    ],
)
def test_bad_input_is_refused(
    capsys: pytest.CaptureFixture[str], program: Path, arguments: list[str], code: int
) -> None:
    filled = [str(program) if one == "PROGRAM" else one for one in arguments]
    given, out, _ = run(capsys, *filled, "--json")
    assert (given, list(json.loads(out))) == (code, ["error"])


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"  \n", b"#" * (1024 * 1024 + 1)])
def test_a_file_without_code_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "program.py"
    path.write_bytes(content)
    code, out, _ = run(capsys, "run", "py_executor", "--code", str(path), "--json")
    assert (code, "error" in json.loads(out)) == (2, True)


def test_without_a_sandbox_nothing_is_run(
    capsys: pytest.CaptureFixture[str], program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    monkeypatch.setenv("PATH", "")
    for options in ([], ["--sandbox", "monty"], ["--sandbox", "bubblewrap"]):
        code, out, _ = run(capsys, "run", "py_executor", "--code", str(program), *options, "--json")
        assert (code, json.loads(out)["error"]["code"]) == (9, "sandbox_unavailable")
    code, out, _ = run(capsys, "list", "--json")
    assert [row["usable"] for row in json.loads(out)["sandboxes"]] == [False, False]
