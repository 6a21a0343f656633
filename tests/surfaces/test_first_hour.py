"""The first hour at a terminal: one part of a document, one id, help that says all, and text as people read it."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.in_process import Screen, run

from .test_cli import PUZZLE, Shell

ANSWER = "It takes $\\frac{8}{3}$ or **2.67** hours.\n\n## Why\n\n`x` is $3.5 \\text{ hours}$."
SEARCH = ["solve", PUZZLE, "--model", "offline", "--strategy", "tree_of_thoughts"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize(
    ("field", "printed"),
    [
        ("answer", "(9 - (13 - 10)) * 4 = 24\n"),
        ("usage.calls", "3\n"),
        ("termination", '{\n  "reason": '),
    ],
)
def test_a_part_of_a_document_is_printed_alone(field: str, printed: str, shell: Shell) -> None:
    shown = shell.run(*SEARCH, "--field", field)
    assert (shown.returncode, shown.stdout[: len(printed)], shown.stderr) == (0, printed, "")
    assert shown.stdout == printed or printed.startswith("{")


def test_a_part_that_a_document_has_not_is_refused_with_those_it_has(shell: Shell) -> None:
    for field, said in (
        ("runs.0.run_id", "'0'; there is nothing in it"),
        ("rnus", "'rnus'; there is runs, next"),
    ):
        refused = shell.run("runs", "list", "--field", field)
        assert (refused.returncode, f"there is no {said}" in refused.stderr) == (2, True)


def test_a_stopped_run_has_no_answer_to_print_and_its_own_exit_code(shell: Shell) -> None:
    command = ("solve", "Use 3, 3, 8 and 8 to make 24", "--model=offline", "--strategy=tree_of_thoughts")
    stopped = shell.run(*command, "--max-calls=1", "--field=answer")
    assert (stopped.returncode, stopped.stdout) == (10, "")


def test_a_run_and_its_session_have_one_id(shell: Shell) -> None:
    solved = shell.json(*SEARCH)
    assert solved["session_id"] == solved["run_id"]
    for kind in ("runs", "sessions"):
        assert shell.run(kind, "list").stdout.split("\t")[0] == solved["run_id"]
    page = ("open", solved["run_id"][:8], "--output", "page.html", "--no-browser")
    assert shell.run(*page).returncode == 0


@pytest.mark.parametrize("words", [["store", "verify", "--help"], ["help", "store", "verify"]])
def test_help_has_the_whole_description_and_an_example(words: list[str], shell: Shell) -> None:
    shown = shell.run(*words).stdout
    assert "Check everything in the store for damage." in shown
    assert "The exit code is 6 if anything is damaged." in shown
    assert "$ reasonry store verify" in shown


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["slove", PUZZLE], "unknown command 'slove'. Did you mean solve? Usage"),
        (["runs", "shwo"], "Did you mean show?"),
        (["runs", "compare", "last"], "unknown command 'compare'. Did you mean diff?"),
        (["resume", "last"], "unknown command 'resume'. Did you mean runs?"),
        (["runs", "mend"], "Commands: list, show, resume, fork, replay, cancel, delete, pause, "),
        (["runs", "fork", "last"], "reasonry: --at is missing. Usage: reasonry runs fork --at INT"),
        (["think", "--session", "demo"], "reasonry: THOUGHT is missing. Usage"),
        (["solve", "--fulll", "--model", "offline"], "unknown option --fulll. Did you mean --full?"),
        (["solve", "--file", "x"], "For a problem in a file, write `reasonry solve - < FILE`;"),
        (["solve", PUZZLE, "--max-seconds", "1h"], "of seconds, got '1h'. Did you mean --max-seconds 3600?"),
        (["solve", PUZZLE, "--max-seconds", "500ms"], "got '500ms'. Did you mean --max-seconds 0.5?"),
        (["solve", PUZZLE, "--max-usd", "$0,50"], "of US dollars, got '$0,50'. Did you mean --max-usd 0.5?"),
        (["solve", PUZZLE, "--max-tokens", "10k"], "of tokens, got '10k'. Did you mean --max-tokens 10000?"),
        (["solve", PUZZLE, "--max-tokens", "1,000"], "Did you mean --max-tokens 1000?"),
        (["solve", PUZZLE, "--call-timeout", "2m"], "of seconds, got '2m'. Did you mean --call-timeout 120?"),
        (["solve", PUZZLE, "--max-seconds", "soon"], "expected a number of seconds, got 'soon'. Usage"),
        (["think", "-5 + 3"], "unknown option -5 + 3."),
        (["solve", "--", "--quiet", "--model", "offline"], "--model stands after --"),
        (["coach", "start", PUZZLE, "--model", "offline"], "a coached run takes no --model: you answer"),
        (["solve", PUZZLE, "--model", "gpt-4o"], "no model 'gpt-4o'. Did you mean openai:gpt-4o?"),
        (["solve", PUZZLE, "--model", "offlin"], "no model 'offlin'. Did you mean offline?"),
        (["solve", PUZZLE, "--model", "nope"], "'nope'. A model is written PROVIDER:NAME, or offline;"),
        (["mcp", "--model", "nope"], "--model: there is no model 'nope'. A model is written PROVIDER:NAME,"),
        (["mcp", "--model", "offlin"], "no model 'offlin'. Did you mean offline?"),
        (["setup", "cursor", "--models", "nope"], "--models: there is no model 'nope'"),
        ([*SEARCH, "--option", "branching=4"], "no option 'branching'. Did you mean branching_factor?"),
        ([*SEARCH, "--option", "xyz=4"], "no option 'xyz'. Its options: branching_factor, "),
        ([*SEARCH, "--option", "early_success_threshold=none"], "expected number, 0 to 1; got 'none'"),
        (["solve", PUZZLE, "--strategy", "tree-of-thougts"], "Did you mean tree_of_thoughts?"),
        (["solve", PUZZLE, "--strategy", "xyz"], "no strategy 'xyz'. The strategies: linear, "),
        (["runs", "list", "--limit", "0"], "It must be at least 1."),
        (["runs", "list", "--limit", "many"], "expected a whole number, got 'many'."),
        (["runs", "list", "--stauts", "done"], "Did you mean --status?"),
        (["runs", "list", "--since", "yesterday"], "must be a time ago (30m, 12h, 7d, 2w) or a date "),
        ([*SEARCH, "--verifier", "arithmatic:24"], "no verifier 'arithmatic:24'. Did you mean arithmetic?"),
        ([*SEARCH, "--option", "branching_factor"], "--option must be NAME=VALUE, got 'branching_factor'"),
        ([*SEARCH, "--option", "max_depth=1", "--option", "max_depth =2"], "option max_depth is given twice"),
        (["plugins", "list"], "unexpected argument 'list'."),
        (["runs", "list", "--status", "doen"], "Did you mean done?"),
    ],
)
def test_a_slip_is_answered_with_the_word_that_was_meant(command: list[str], said: str, shell: Shell) -> None:
    refused = shell.run(*command)
    assert (refused.returncode, said in " ".join(refused.stderr.split())) == (2, True), refused.stderr


def test_an_unknown_agent_is_answered_with_the_nearest(shell: Shell) -> None:
    refused = shell.run("setup", "curser")
    assert refused.returncode == 3
    assert "there is no agent 'curser'. Did you mean cursor?" in refused.stderr


def test_a_text_after_two_dashes_may_begin_with_one(shell: Shell) -> None:
    assert shell.run("think", "--new", "--", "--quiet is an option").returncode == 0
    assert "--quiet is an option" in shell.run("sessions", "search", "--", "--quiet").stdout


def test_a_session_has_the_name_that_the_user_gave(shell: Shell) -> None:
    for words in (("thought 1",), ("thought 2",), ("fresh", "--clear")):
        assert "session demo" in shell.run("think", *words, "--session", "demo").stdout
    shown = shell.json("sessions", "show", "demo")
    assert [thought["thought"] for thought in shown["thoughts"]] == ["fresh"]


@pytest.mark.parametrize("name", ["dead", "DEADBEEF", "abc", "last"])
def test_an_id_that_no_session_has_starts_none(name: str, shell: Shell) -> None:
    assert shell.run("think", "one", "--session", name).returncode == 3
    assert shell.run("sessions", "list").stdout == ""


def test_the_nearest_ids_are_named_for_an_id_that_no_session_has(shell: Shell) -> None:
    session_id = shell.json("think", "one")["session_id"]
    refused = shell.run("think", "two", "--session", f"{session_id[:6]}-ffff")
    assert refused.returncode == 3
    assert f"Did you mean {session_id}?" in " ".join(refused.stderr.split())


def test_the_offline_model_refuses_before_a_run_exists(shell: Shell) -> None:
    refused = shell.run("solve", "Plan a trip", "--model", "offline")
    assert (refused.returncode, "only solves number puzzles" in refused.stderr) == (2, True)
    assert shell.run("runs", "list").stdout == ""


def test_the_line_to_resume_a_run_is_complete(shell: Shell) -> None:
    (shell.folder / "a b.txt").write_text("The tower is 330 m high.", "utf-8")
    command = ("solve", "How high is it?", "--strategy=react", "--context", "a b.txt", "--store", "mine.db")
    failed = shell.run(*command, "--model", shell.script({"stage": "*", "reply": "no form"}))
    assert failed.returncode == 8
    (line,) = [line for line in failed.stderr.splitlines() if line.startswith("resume with")]
    resume = shlex.split(line.partition("reasonry ")[2])
    assert resume[3:] == ["--context", "a b.txt", "--store", "mine.db", "--model", "NAME"]
    more = shell.script(*({"stage": "*", "reply": "no form"},) * 3)
    assert shell.run(*resume[:-1], more).returncode != 2


def test_a_store_creates_no_more_than_its_own_folder(shell: Shell) -> None:
    assert shell.run("think", "one", "--store", "new/mine.db").returncode == 0
    refused = shell.run("think", "one", "--store", "no/such/mine.db")
    said = f"there is no folder {shell.folder}/no; name another with --store or REASONRY_STORE"
    assert (refused.returncode, said in " ".join(refused.stderr.split())) == (6, True)


def test_a_terminal_shows_a_run_as_people_read_it_and_a_pipe_as_it_is(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = f"Half of $\\frac{{16}}{{3}}$ is **that**.\n\n<answer>{ANSWER}</answer>"
    model = ("--model", shell.script({"stage": "*", "reply": reply}), "--strategy", "chain_of_thought")
    assert shell.run("solve", "Write how long it takes.", *model).stdout == ANSWER + "\n"
    plain = shell.run("runs", "show", "last").stdout
    assert all(text in plain for text in ("Half of $\\frac{16}{3}$ is **that**.", "\nAnswer\n"))
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    for name, value in {**shell.environ, "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert run(["runs", "show", "last"]) == 0
    shown = screen.getvalue()
    assert "  Half of 16/3 is that.\n" in shown
    assert shown.endswith("Answer\n  It takes 8/3 or 2.67 hours.\n\n  Why\n\n  x is 3.5 hours.\n")
