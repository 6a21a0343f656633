"""`runs diff` for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_cli import PUZZLE, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_it_says_where_two_runs_part_and_what_came_of_it(shell: Shell) -> None:
    first = shell.json("solve", PUZZLE, "--model", "offline", "--option", "max_depth=3")["run_id"]
    shell.run("runs", "fork", first, "--at", "1", "--option", "branching_factor=2")
    document = shell.json("runs", "diff", first, "last")
    assert document["fork"] == {"of": "a", "at": 1}
    assert document["parting"]["what"] == "question"
    assert document["answer"]["same"]
    shown = shell.run("runs", "diff", first, "last").stdout
    assert "B is a fork of A after 1 answer." in shown
    assert f"They part at {document['parting']['id']}" in shown
    assert "options.branching_factor\t3\t2" in shown
    for line in shown.splitlines():
        assert len(line) < 400
    same = shell.run("runs", "diff", "last", "last")
    assert (same.returncode, same.stdout) == (2, "")
    assert "name two runs" in same.stderr
    missing = shell.run("runs", "diff", first, "ffff")
    assert missing.returncode == 3
    assert "no run 'ffff'" in missing.stderr
