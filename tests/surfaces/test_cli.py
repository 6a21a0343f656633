"""The command line: real SQLite files, real input and bad input; real processes where they are killed or piped."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonry.guided.export import KIND, VERSION
from reasonry.records import new_id
from tests.forked import ForkedProcess
from tests.in_process import call_command

from .weather import until

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
TREE = ("--strategy", "tree_of_thoughts")


class Shell:
    """A shell with its own store and a clean environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = self.cwd = folder
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "USERPROFILE": str(folder),
            "REASONRY_STORE": str(folder / "store.db"),
            "PYTHONPATH": "",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "reasonry", *arguments]

    def run(self, *arguments: str, text: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        given = text.encode() if isinstance(text, str) else text
        done = call_command(arguments, env=self.environ, cwd=self.cwd, text=given)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *arguments: str, text: str = "") -> Any:
        return json.loads(self.run(*arguments, "--json", text=text).stdout)

    def told(self, *arguments: str) -> tuple[int, Any]:
        done = self.run(*arguments, "--json")
        return done.returncode, json.loads(done.stdout)

    def script(self, *lines: dict[str, Any]) -> str:
        path = self.folder / f"script{len(list(self.folder.glob('script*')))}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return f"scripted:{path}"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_thoughts_of_runs_side_by_side_are_numbered_as_they_come(shell: Shell) -> None:
    search = ("--strategy", "best_of_n(tree_of_thoughts)", "--model", "offline")
    shown = shell.run("solve", PUZZLE, *search).stderr
    numbers = re.findall(r"^Thought (\d+)", shown, re.MULTILINE)
    assert [*map(int, numbers)] == [*range(1, len(numbers) + 1)]
    assert len(numbers) > 20


def test_the_problem_may_come_from_standard_input(shell: Shell) -> None:
    assert shell.json("solve", "-", text=PUZZLE + "\n")["status"] == "done"


def test_ids_may_be_short_or_last_in_every_command(shell: Shell) -> None:
    began = shell.json("coach", "start", "What is 6 times 7?", "--strategy", "linear")
    run_id, short = began["run_id"], began["run_id"][:30]
    assert shell.json("coach", "status", "last")["run_id"] == run_id
    assert shell.json("coach", "cancel", short)["run_id"] == run_id
    assert shell.json("runs", "show", "last")["run_id"] == run_id
    assert shell.json("runs", "replay", short)["run_id"] == run_id
    assert shell.json("runs", "resume", short, "--coach")["run_id"] == run_id
    begun = shell.json("think", "One.", "--number", "1", "--total", "3", "--next")["session_id"]
    for number, name in ((2, "last"), (3, begun[:30])):
        thought = ("think", "More.", "--number", str(number), "--total", "3", "--next", "--session", name)
        assert shell.json(*thought)["session_id"] == begun
    assert shell.json("sessions", "show", "last")["session_id"] == begun


def test_a_list_is_bounded_by_how_long_ago_or_by_an_instant(shell: Shell) -> None:
    shell.run("solve", PUZZLE, "--model", "offline")
    for bound in ("--since=1h", "--since=2w", "--since=2026-01-01", "--until=2026-01-01T09:30"):
        listed = shell.run("runs", "list", bound)
        assert (listed.stdout == "") is (listed.stderr == "no runs found\n") is ("until" in bound)
    for wrong in ("7", "0001-01-01T00:00+23:59"):
        assert "7d" in shell.run("runs", "list", "--since", wrong).stderr


def test_an_answer_whose_check_cannot_be_read_is_given_with_a_warning(shell: Shell) -> None:
    reply: Any = {"reasoning": "17 + 25 = 42", "answer": "42"}
    said = [{"stage": "sequential_reasoning", "reply": reply}]
    said += [{"stage": "answer_verification", "reply": f"Hm, {odd}."} for odd in ("a", "b", "c")]
    arguments = ("--strategy=chain_of_thought", "--option=check=true", "--model", shell.script(*said))
    solved = shell.json("solve", "17 + 25", *arguments)
    assert (solved["status"], solved["answer"], solved["verification"]) == ("done", "42", "unchecked")
    assert any(warning.startswith("the answer is unchecked: ") for warning in solved["warnings"])


def test_a_failed_run_shows_its_best_answer_every_question_and_every_refused_reply(shell: Shell) -> None:
    said = ("17 + 25 = 42", {"nonsense": 1}, "I have said it.")
    model = shell.script(*({"stage": "sequential_reasoning", "reply": reply} for reply in said))
    check = shell.folder / "check.py"
    check.write_text("def verify(problem, path):\n    return True\n", "utf-8")
    options = ("--strategy", "chain_of_thought", "--option", "verify=true", "--verifier", f"python:{check}")
    failed = shell.json("solve", "17 + 25", *options, "--model", model)
    assert (failed["outcome"], failed["answer"], failed["best_answer"]) == ("error", None, "I have said it.")
    shown = shell.run("runs", "show", failed["run_id"]).stdout
    assert "Best so far, not an answer\n  I have said it.\n" in shown
    assert shown.count("unreadable: ") == 3
    assert "e1 sequential_reasoning" in shown
    assert [shown.count(f"← {reply}") for reply in ("17 + 25 = 42", '{"nonsense":1}')] == [1, 1]


def test_a_killed_run_is_active_and_goes_on_without_asking_again(shell: Shell) -> None:
    lines: list[dict[str, Any]] = [{"stage": "approach_exploration", "reply": {"thoughts": ["a", "b", "c"]}}]
    scores = ({"1": 0.1 * n, "2": 0.1, "3": 0.1} for n in (3, 6))
    lines += [{"stage": "branch_evaluation", "reply": {"scores": each}} for each in scores]
    slow = {"stage": "branch_development", "reply": {"thoughts": ["d", "e", "f"]}, "delay_ms": 60_000}
    model = shell.script(*lines, slow)
    command = shell.command("solve", "anything", *TREE, "--model", model, "--option=expand_width=1")
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = ForkedProcess(command, env=shell.environ, **quiet)
    until((shell.folder / "store.db").exists)
    until(lambda: shell.told("runs", "show", "last")[1].get("events", ())[1:])
    run_id = shell.json("runs", "show", "last")["run_id"]
    code, busy = shell.told("runs", "resume", run_id)
    assert (code, busy["error"]["code"]) == (5, "conflict")
    process.kill()
    process.wait()
    assert shell.json("runs", "show", run_id)["status"] == "active"
    assert "\tresumable\t" in shell.run("runs", "list").stdout
    fast = shell.script(
        {"stage": "branch_development", "reply": {"thoughts": ["d", "e", "f"]}},
        {"stage": "branch_evaluation", "reply": {"scores": {"1": 1.0, "2": 0.1, "3": 0.1}}},
        {"stage": "continuation_decision", "reply": {"answer": "42"}},
    )
    resumed = shell.json("runs", "resume", run_id, "--model", fast)
    assert (resumed["status"], resumed["answer"]) == ("done", "42")
    assert resumed["usage"]["calls"] == 6, "the call that was in flight when the process died counts"


def test_a_limit_leaves_room_for_the_answer_and_a_closed_run_can_go_on(shell: Shell) -> None:
    model = shell.script(*({"stage": "*", "reply": "It.\n<answer>4</answer>"},) * 3)
    command = ("--model", model, "--max-calls", "1")
    done = shell.run("solve", "2 + 2?", "--strategy", "step_back", *command)
    assert (done.returncode, done.stdout) == (0, "4\n")
    assert "warning: step_back needs 2 calls; with 1 this is one direct question" in done.stderr
    assert "answered: " in done.stderr
    assert "answered from what was known by then: reached the limit of 1 call" in done.stderr
    (row,) = shell.json("runs", "list")["runs"]
    resumed = shell.json("runs", "resume", row["run_id"], "--max-calls", "9")
    assert resumed["termination"]["reason"] != "max_calls"
    refused = shell.run("solve", "2 + 2 = 5", "--strategy", "prove_and_refute", *command)
    assert refused.returncode == 2
    assert "prove_and_refute needs 2 calls; with 1 it has no result" in refused.stderr


def test_a_run_without_a_limit_has_30_calls_and_resuming_grants_30_more(shell: Shell) -> None:
    start = {"stage": "scratchpad_initialization", "reply": {"stateVariables": {"n": 0}, "rule": "count"}}
    steps = (
        {"calculation": f"{n} + 1", "stateVariables": {"n": n + 1}, "finished": False} for n in range(99)
    )
    lines = [{"stage": "*", "reply": step} for step in steps]
    options = ("--strategy", "scratchpad", "--option", "max_steps=90", "--model", shell.script(start, *lines))
    begun = shell.run("solve", "Count to a hundred", *options)
    assert "at most 30 calls (--max-calls N allows more)" in begun.stderr
    (row,) = shell.json("runs", "list")["runs"]
    assert (row["termination"]["reason"], row["usage"]["calls"]) == ("max_calls", 30)
    resumed = shell.json("runs", "resume", row["run_id"])
    assert (resumed["termination"]["reason"], resumed["usage"]["calls"]) == ("max_calls", 60)


def test_a_preset_and_a_named_limit_are_taken_as_they_are(shell: Shell) -> None:
    preset = shell.json("solve", PUZZLE, *TREE, "--option", "preset=seed")
    named = shell.json("solve", PUZZLE, "--max-seconds", "60")
    runs = [shell.json("runs", "show", shown["run_id"]) for shown in (preset, named)]
    assert [run["budget"].get("calls") for run in runs] == [None, None]


BAD: list[tuple[list[str], int, str]] = [
    (["solve", PUZZLE, "--model", "scripted:/no/such"], 2, "/no/such"),
    (["solve", PUZZLE, "--option", "early_success_threshold=nan"], 2, "early_success_threshold"),
    (["solve", PUZZLE, "--max-seconds", "nan"], 2, "max-seconds"),
    (["solve", PUZZLE, "--max-concurrency", "0"], 2, "max-concurrency"),
    (["solve", PUZZLE, "--call-timeout", "0"], 2, "call-timeout"),
    (["solve", PUZZLE, "--tool-timeout", "nan"], 2, "tool-timeout"),
    (["solve", PUZZLE, "--max-requests-per-minute", "0"], 2, "PROVIDER=NUMBER"),
    (["solve", PUZZLE, "--max-requests-per-minute", "=5"], 2, "PROVIDER=NUMBER"),
    (["solve", PUZZLE, "--max-tokens-per-minute", "openai=many"], 2, "max-tokens-per-minute"),
    (["solve", PUZZLE, "--model", "offline", "--max-requests-per-minute", "opnai=9"], 2, "opnai"),
    (["think", "x", "--next", "--done"], 2, "--done"),
    (["think", "x", "--new", "--session", "last"], 2, "--new"),
    (["think", "x", "--number", "1", "--total", "1", "--done", "--data", "{"], 2, "data"),
    (["sessions", "import", "/no/such"], 2, "/no/such"),
    (["runs", "replay", ""], 3, ""),
]


def test_bad_input_is_a_clear_error(shell: Shell) -> None:
    for arguments, code, named in BAD:
        done = shell.run(*arguments, "--json")
        error = json.loads(done.stdout)["error"]
        assert done.returncode == code, arguments
        assert set(error) >= {"code", "message", "retryable"}
        assert named in json.dumps(error)
        plain = shell.run(*arguments)
        assert (plain.returncode, plain.stdout) == (code, ""), arguments
        assert plain.stderr.startswith("reasonry: ")
    assert shell.json("runs", "list")["runs"] == shell.json("sessions", "list")["sessions"] == []


@pytest.mark.parametrize(
    ("problem", "code", "named"),
    [
        (b"x" * 10_000_000, "payload_too_large", "100,000"),
        (b"make\0me", "invalid_request", "NUL"),
        (b"\xff\xfe", "invalid_request", "UTF-8"),
        (b"", "invalid_request", "empty"),
    ],
)
def test_a_problem_that_cannot_be_kept_is_refused(
    shell: Shell, problem: bytes, code: str, named: str
) -> None:
    done = shell.run("solve", "-", "--json", text=problem)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2
    assert error["code"] == code
    assert named in error["message"]


def test_escape_sequences_of_a_model_do_not_reach_the_terminal(shell: Shell) -> None:
    model = shell.script(
        {"stage": "approach_exploration", "reply": {"thoughts": ["\x1b[31mred\x1b[0m \x9b2J \u202eback"]}},
    )
    options = ["--option", "max_depth=1", "--option", "min_depth=0", "--option", "formulate_answer=false"]
    done = shell.run("solve", "x", *TREE, "--model", model, *options)
    assert done.returncode == 0
    for bad in ("\x1b", "\x9b", "\u202e"):
        assert bad not in done.stdout + done.stderr
    assert shell.json("runs", "list")["runs"][0]["answer"].startswith("\x1b[31mred")
    listed = shell.run("runs", "list", "--json").stdout
    assert not set("\x1b\x9b\u202e") & set(listed), "a document has them as escapes"


def test_a_thought_without_a_stage_shows_none_and_one_with_a_stage_what_it_must_know(shell: Shell) -> None:
    plain = shell.run("think", "a", "--number", "1", "--total", "2", "--next").stdout.splitlines()
    assert plain[0] == "thought 1/2"
    assert plain[1].startswith("session ")
    assert len(plain) == 2
    session = plain[1].removeprefix("session ")
    assert shell.run("sessions", "show", session).stdout.startswith(f"{session}  1 thought\n")
    assert "linear" not in shell.run("sessions", "list").stdout
    more = ("--session", session, "--next", "--strategy", "linear", "--stage", "continuation_decision")
    staged = shell.run("think", "b", "--number", "2", "--total", "2", *more, "--history", "2").stdout
    assert staged.startswith("thought 2/2 · linear · stage continuation_decision\n")
    assert "  here: With more to think" in staged
    assert "  next: thought_adjustment\n    " in staged
    assert "  next: hypothesis_generation (--data hypothesis: text)\n    Commit to one" in staged
    assert staged.endswith("  1: a\n  2: b\n")
    stated = ("--session", session, "--done", "--stage", "hypothesis_generation")
    data = '{"hypothesis": "It [rains]", "causes": ["wind", "sea"], "score": 0.5}'
    end = shell.run("think", "c", "--number", "3", "--total", "3", *stated, "--data", data).stdout
    assert "  left open: not tested: thought 3\n" in end
    assert "1: a" not in end
    drawn = [line.strip() for line in shell.run("sessions", "show", session).stdout.splitlines()]
    assert {"hypothesis: It [rains]", "causes: wind; sea", "score: 0.5"} <= set(drawn)


def test_a_coached_run_takes_no_options_of_models_and_reads_standard_input(shell: Shell) -> None:
    shown = shell.json("coach", "start", "-", "--strategy", "scratchpad", text="What is 17 + 25?\n")
    assert "17 + 25" in shown["questions"][0]["prompt"]
    run_id = shown["run_id"]
    for idle in ("--model", "--judge-model", "--draft-model", "--record", "--max-requests-per-minute"):
        for command in (
            ["coach", "start", "x"],
            ["coach", "answer", run_id],
            ["runs", "resume", run_id, "--coach"],
        ):
            refused = shell.run(*command, idle, "9", text='{"answers": []}')
            assert (refused.returncode, idle in refused.stderr) == (2, True)
    assert len(shell.json("runs", "list")["runs"]) == 1


TABLE = """
name = "code_review"
[[stages]]
name = "reading"
to = ["verdict"]
[[stages]]
name = "verdict"
fields = { grade = { type = "integer" } }
"""


def test_strategies_of_one_s_own_are_read_from_a_named_folder_only(shell: Shell) -> None:
    folder = shell.folder / "tables"
    folder.mkdir()
    (folder / "review.toml").write_text(TABLE, "utf-8")
    named = ["--strategies-dir", str(folder)]
    assert shell.json("strategies", "code-review", *named)["stages"][1]["name"] == "verdict"
    for others in ((), ("--strategies-dir", "/no/such")):
        assert shell.run("strategies", "code-review", *others).returncode == 2
    assert shell.json("think", "a", "--strategy", "code_review", *named)["stage"] == "reading"
    last = ["think", "b", "--done"]
    code, refused = shell.told(*last, "--stage", "verdict", *named)
    assert (code, "grade" in refused["error"]["message"]) == (2, True)
    assert shell.json(*last, "--stage", "verdict", "--data", '{"grade": 1}', *named)["stage"] == "verdict"
    assert shell.run("solve", "x", "--strategy", "code_review", *named, "--model", "offline").returncode == 2


def test_think_has_an_option_for_every_argument_of_the_thinking_tool(shell: Shell) -> None:
    """`--next` and `--done` stand for next_thought_needed, and `--revises` says that it is a revision."""
    from reasonry.guided.thinking_tool import ThinkingCall, tool_schema
    from reasonry.surfaces.cli.sessions import ThinkingOptions

    members = tool_schema(ThinkingCall)["properties"]
    arguments = ThinkingOptions.__dataclass_fields__.keys()
    assert arguments == members.keys() - {"thought", "next_thought_needed", "is_revision"}
    shown = " ".join(shell.run("think", "--help").stdout.replace("│", " ").split())
    options = "number total session branch branch-from merge-branch revises more clear history"
    assert all(f"--{option} " in shown for option in options.split())
    # What a tool demands or finds by its connection, a command may leave out; it says what that means.
    for argument in ("strategy", "stage", "data", "merge_branch", "clear_session"):
        assert members[argument]["description"] in shown


def test_a_refused_thought_is_told_the_options_that_would_be_accepted(shell: Shell) -> None:
    shell.json("think", "Two ways.", "--strategy", "tot")
    shell.json("think", "Which are they?", "--stage", "approach_exploration")
    shell.json("think", "One of them.", "--branch", "one", "--stage", "branch_creation")
    refused = shell.run("think", "Again.", "--stage", "problem_reception")
    accepted = "This would be accepted: no --branch, --branch-from 1, --stage problem_reception."
    assert accepted in " ".join(refused.stderr.split())


def test_a_session_of_many_pages_is_read_once_and_drawn_as_it_branches(shell: Shell) -> None:
    branches = {601: ("b", 3), 602: ("c", 601)}
    thoughts = [
        {"thought_number": number, "total_thoughts": 9, "thought": f"T{number}"}
        | dict(zip(("branch_id", "branch_from_thought"), branches.get(number, ()), strict=False))
        for number in range(1, 603)
    ]
    head = {"kind": KIND, "version": VERSION, "session_id": new_id(), "strategy": "linear"}
    file = shell.folder / "long.json"
    file.write_text(json.dumps({**head, "thoughts": thoughts}), "utf-8")
    session = shell.json("sessions", "import", str(file))["session_id"]
    first, *drawn = shell.run("sessions", "show", session).stdout.splitlines()
    assert "602 thoughts" in first
    shown = [line.strip().split()[-1] for line in drawn]
    place = shown.index("T3")
    assert shown[place : place + 6] == ["T3", "b", "T601", "c", "T602", "T4"]
    assert len([word for word in shown if word.startswith("T")]) == 602


def test_a_reader_that_has_gone_ends_a_command_quietly(shell: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    streams: Any = {"stdout": writer, "stderr": subprocess.PIPE}
    with ForkedProcess(shell.command("strategies"), env=shell.environ, **streams) as process:
        os.close(writer)
        assert process.communicate(timeout=20)[1] == b""
    assert process.returncode == 141


def test_before_the_end_a_thinker_in_a_shell_is_told_the_command(shell: Shell) -> None:
    for _ in range(2):
        shell.run("think", "One.", "--total", "4")
    asked = shell.run("think", "Two.", "--total", "4", "--branch", "b").stdout
    assert "`reasonry coach refute --session last` tries to refute the session." in asked
    assert "3 thoughts processed" not in asked
    end = shell.run("think", "Three.", "--done").stdout
    assert "4 thoughts processed across 1 branch." in end


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


def test_a_run_with_an_answer_is_not_resumed(shell: Shell) -> None:
    shell.run("solve", PUZZLE, "--model", "offline")
    assert "fork it to try another way" in shell.run("runs", "resume", "last").stderr
