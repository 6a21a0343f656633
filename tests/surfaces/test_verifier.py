"""A verifier as its user meets it: what it says counts, and where it fails that shows."""

import re
from pathlib import Path
from typing import Any

import pytest

from reasonry import Budget, Result, solve
from reasonry.models.scripted import ScriptedModel

from .test_cli import Shell

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = [
    {"stage": "approach_exploration", "reply": {"thoughts": ["Look at the calendar.", "Ask Anna."]}},
    {"stage": "branch_evaluation", "reply": {"scores": {"t1": 0.9, "t2": 0.95}}},
]


async def solved(verifier: Any) -> Result:
    model = ScriptedModel.of({"stage": "*", "reply": {"reasoning": "", "answer": "42"}})
    terms: Any = {"strategy": "self_consistency", "options": {"samples": 1}, "store": "memory"}
    return await solve("q", model=model, verifier=verifier, **terms)


@pytest.mark.anyio
@pytest.mark.parametrize("error", [ValueError("bug"), SystemExit(3)])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_verifier_that_never_works_is_warned_of(error: BaseException, waits: bool) -> None:
    def raises(problem: str, path: list[str]) -> bool:
        raise error

    async def raises_later(problem: str, path: list[str]) -> bool:
        raise error

    broken = raises_later if waits else raises
    broken.__name__ = "broken"
    result = await solved(broken)
    (warning,) = result.warnings
    assert (result.status, result.answer) == ("done", "42")
    assert "python:broken gave no verdict 1 of 1 times" in warning
    assert type(error).__name__ in warning
    assert result.document()["warnings"] == [warning]
    assert (await solved(lambda problem, path: None)).document()["warnings"] == []


def test_the_shell_says_so_at_the_end_and_when_the_run_is_shown(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "check.py").write_text("def verify(problem, path):\n    return 1 / 0\n", "utf-8")
    given = ("--model", shell.script({"stage": "*", "reply": {"answer": "42"}}), "--verifier=python:check.py")
    done = shell.run("solve", "q", "--strategy=self_consistency", "--option=samples=1", *given)
    said = r"^warning: the verifier python:.* 1 of 1 times.*ZeroDivisionError"
    assert (done.returncode, bool(re.search(said, done.stderr, re.MULTILINE))) == (0, True)
    assert "Warnings\n  - the verifier python:" in shell.run("runs", "show", "last").stdout
    assert len(shell.json("runs", "show", "last")["warnings"]) == 1


@pytest.mark.anyio
async def test_a_check_of_the_answer_alone_prunes_no_step_of_a_search() -> None:
    asked: list[tuple[str, bool]] = []

    def is_may(problem: str, path: list[str], final: bool) -> bool | None:
        asked.append((path[-1], final))
        return path[-1] == "In May." if final else None

    result = await searched(is_may)
    assert (result.status, result.answer) == ("done", "In May.")
    assert asked[-1] == ("In May.", True)
    assert not any(final for _, final in asked[:-1])


@pytest.mark.anyio
async def test_the_example_of_the_documentation_leaves_a_search_alone_and_refuses_a_long_answer(
    tmp_path: Path,
) -> None:
    section = (DOCS / "tools.md").read_text("utf-8").partition("## A verifier of your own")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    (tmp_path / "check.py").write_text(code[1], "utf-8")
    given = f"python:{tmp_path / 'check.py'}"
    result = await searched(given)
    assert (result.status, result.answer, result.warnings) == ("done", "In May.", ())
    assert result.termination.reason != "verified"
    wrong = await searched(given, "In May. " * 11)
    assert (wrong.status, wrong.answer) == ("failed", None)


async def searched(verifier: Any, answer: str = "In May.") -> Result:
    model = ScriptedModel.of(*SCRIPT, {"stage": "continuation_decision", "reply": {"answer": answer}})
    options = {"max_depth": 1, "branching_factor": 2, "formulate_answer": True}
    terms: Any = {"strategy": "tree_of_thoughts", "options": options, "store": "memory"}
    return await solve("When is Anna free?", model=model, verifier=verifier, **terms)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("problem", "warned"),
    [("Plan a picnic for six people.", True), ("Use 4, 9, 10 and 13 to make 24", False)],
)
async def test_a_run_says_from_the_start_that_its_verifier_has_nothing_to_check(
    problem: str, warned: bool, tmp_path: Path
) -> None:
    model = ScriptedModel.of({"stage": "approach_exploration", "reply": {"thoughts": ["x"]}})
    shown: dict[str, Any] = {"store": str(tmp_path / "s.db"), "strategy": "tree_of_thoughts"}
    result = await solve(problem, model=model, verifier="arithmetic:24", budget=Budget(calls=1), **shown)
    message = "the verifier arithmetic:24 has nothing to check: no numbers of a puzzle can be read"
    assert sum(warning.startswith(message) for warning in result.warnings) == warned
