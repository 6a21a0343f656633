"""The filters of `runs list` and `sessions list`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .test_cli import PUZZLE, Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder: Path = tmp_path_factory.mktemp("lists")
    shell = Shell(folder)
    assert shell.run("solve", PUZZLE, "--model", "offline").returncode == 0
    assert shell.run("think", "a heron", "--number", "1", "--total", "2", "--next").returncode == 0
    return shell


@pytest.mark.parametrize(
    ("options", "runs", "sessions"),
    [
        ("--since 1h --search = --strategy TREE-OF-THOUGHTS", 1, 1),
        ("--search heron", 0, 1),
        ("--until 2026-01-01", 0, 0),
        ("--strategy chain_of_thought", 0, 0),
        ("--since 2w", 1, 2),
    ],
)
def test_each_filter_excludes_more(shell: Shell, options: str, runs: int, sessions: int) -> None:
    for command, count in (("runs", runs), ("sessions", sessions)):
        rows: list[Any] = shell.json(command, "list", *options.split())[command]
        assert len(rows) == count, command


@pytest.mark.parametrize(("outcome", "count"), [("solved", 1), ("stopped", 0), ("waiting", 0)])
def test_an_outcome_is_a_filter_of_runs(shell: Shell, outcome: str, count: int) -> None:
    assert len(shell.json("runs", "list", "--outcome", outcome)["runs"]) == count


def test_an_outcome_that_there_is_not_is_refused_with_those_there_are(shell: Shell) -> None:
    done = shell.run("runs", "list", "--outcome", "done")
    assert (done.returncode, "unsolved" in done.stderr) == (2, True)


def test_a_session_of_a_run_has_the_outcome_of_the_run(shell: Shell) -> None:
    statuses = {row["status"] for row in shell.json("sessions", "list")["sessions"]}
    assert statuses == {"active", "solved"}


def test_a_model_is_a_filter_of_runs(shell: Shell) -> None:
    assert len(shell.json("runs", "list", "--model", "offline")["runs"]) == 1
    done = shell.run("runs", "list", "--model", "openai:other")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (0, "", "no runs found")


@pytest.mark.parametrize("since", ["yesterday", "7", "12 h", "0001-01-01T00:00+23:59"])
def test_what_is_no_instant_is_refused_with_what_is_one(shell: Shell, since: str) -> None:
    done = shell.run("runs", "list", "--since", since)
    assert done.returncode == 2
    assert "7d" in done.stderr
