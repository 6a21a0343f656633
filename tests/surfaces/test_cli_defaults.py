"""What commands do where little is said: the session in use, a single answer, a deletion that nobody confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_cli import PUZZLE, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


# -- what a command leaves out


def test_think_goes_on_in_its_directory_and_says_so(shell: Shell) -> None:
    first = shell.json("think", "One.")
    assert (first["thought_number"], first["total_thoughts"], first["next_thought_needed"]) == (1, 2, True)
    said = shell.run("think", "Two.")
    assert "thought 2/3" in said.stdout
    assert "continues 'One.'; --new begins another session" in said.stderr
    branch = shell.json("think", "Or so.", "--branch", "b", "--branch-from", "1")
    assert (branch["session_id"], branch["thought_number"]) == (first["session_id"], 2)
    assert shell.json("think", "Also.", "--branch", "b")["thought_number"] == 3
    assert shell.json("think", "Main.", "--session", first["session_id"][:30])["thought_number"] == 3
    other = shell.json("think", "Another.", "--new")
    assert (other["thought_number"], other["session_id"] != first["session_id"]) == (1, True)
    assert shell.json("think", "By stages.", "--strategy", "react")["session_id"] == other["session_id"]
    assert shell.json("think", "A tree.", "--strategy", "tot")["thought_number"] == 1
    ended = shell.json("think", "Four.", "--number", "4", "--done", "--session", first["session_id"])
    assert (ended["session_id"], ended["total_thoughts"]) == (first["session_id"], 4)


def test_think_elsewhere_or_after_the_end_begins_a_session(shell: Shell, tmp_path: Path) -> None:
    began = shell.json("think", "One.")["session_id"]
    (tmp_path / "elsewhere").mkdir()
    shell.cwd = tmp_path / "elsewhere"
    assert shell.json("think", "One elsewhere.")["session_id"] != began
    shell.cwd = tmp_path
    assert shell.json("think", "Last.", "--done")["session_id"] == began
    assert shell.json("think", "Next problem.")["session_id"] != began


# -- coached runs and deletion


def test_a_single_question_is_answered_in_plain_words(shell: Shell) -> None:
    started = shell.run("coach", "start", "What is 6 times 7?", "--strategy", "chain_of_thought")
    (row,) = shell.json("runs", "list", "--outcome", "waiting")["runs"]
    assert f"answer with: reasonry coach answer {row['run_id']} ANSWER" in started.stderr
    assert shell.run("runs", "list").stdout.split("\t")[2] == "waiting"
    assert shell.run("coach", "answer", "last", "So it is <answer>42</answer>.").returncode == 0
    assert shell.json("runs", "show", "last")["answer"] == "42"


def test_a_run_that_was_cancelled_says_how_its_caller_resumes_it(shell: Shell) -> None:
    run_id = shell.json("coach", "start", "What is 6 times 7?", "--strategy", "linear")["run_id"]
    for command in ("cancel", "status"):
        done = shell.run("coach", command, run_id)
        assert f"reasonry runs resume {run_id} --coach" in done.stdout + done.stderr


def test_a_run_is_deleted_only_once_it_has_ended_and_when_that_is_meant(shell: Shell) -> None:
    run_id = shell.json("coach", "start", "What is 6 times 7?", "--strategy", "linear")["run_id"]
    active = shell.run("runs", "delete", run_id, "--yes")
    assert (active.returncode, f"reasonry runs cancel {run_id}" in active.stderr) == (5, True)
    shell.run("coach", "cancel", run_id)
    for kind in ("runs", "sessions"):
        unsaid = shell.run(kind, "delete", "last")
        assert (unsaid.returncode, "--yes" in unsaid.stderr) == (2, True)
        assert shell.run(kind, "delete", "nothing").returncode == 3
    assert len(shell.json("runs", "list")["runs"]) == 1


def test_resuming_says_that_it_reopens(shell: Shell) -> None:
    limited = shell.run(
        "solve", PUZZLE, "--strategy", "tree_of_thoughts", "--model", "offline", "--max-calls", "2"
    )
    assert limited.stderr.rstrip().endswith("--max-calls N")
    resumed = shell.run("runs", "resume", "last", "--max-calls", "50")
    assert "had ended (stopped: reached the limit of 2 calls). Resuming asks only" in resumed.stderr
    assert "fork it to try another way" in shell.run("runs", "resume", "last").stderr
