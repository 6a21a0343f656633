"""`solve_sync` is `solve` to editors, type checkers and `help`, but for the event loop."""

import inspect
import json
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import reasonry
from reasonry import Result, solve, solve_sync

SNIPPET = """\
import reasonry

result = reasonry.solve_sync("x", strategy="linear", budget=reasonry.Budget(tokens=5), options={"a": 1})
reveal_type(result)
reveal_type(result.answer)
reasonry.solve_sync("x", stratgy="linear")
reasonry.solve_sync("x", strategy=5)
reasonry.solve_sync("x", "linear")
reasonry.solve_sync(problem=None, session="last")
"""
WRONG_LINES = [6, 7, 8]


def test_signature_and_docstring_are_those_of_solve() -> None:
    assert inspect.signature(solve_sync) == inspect.signature(solve)
    assert typing.get_origin(typing.get_type_hints(solve_sync)["return"]) is Result
    assert solve_sync.__name__ == "solve_sync"
    assert inspect.getdoc(solve) in (inspect.getdoc(solve_sync) or "")
    assert not inspect.iscoroutinefunction(solve_sync)


def test_it_solves_and_refuses_what_solve_does_not_take() -> None:
    solved = solve_sync("Use 4, 9, 10 and 13 to make 24", model="offline", store="memory")
    assert isinstance(solved, Result)
    assert solved.status == "done"
    with pytest.raises(TypeError, match="stratgy"):
        solve_sync("x", stratgy="linear")  # pyright: ignore[reportCallIssue]
    assert reasonry.solve_sync is solve_sync


def test_a_type_checker_sees_names_and_types(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET, "utf-8")
    config = {"typeCheckingMode": "standard", "include": ["snippet.py"], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), "utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(tmp_path)], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"]
    assert errors == WRONG_LINES, found
    shown = [each["message"] for each in found if each["severity"] == "information"]
    assert shown == ['Type of "result" is "Result[Any]"', 'Type of "result.answer" is "str | None"']
