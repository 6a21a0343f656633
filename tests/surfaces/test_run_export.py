"""A run, a session and a comparison are exported as tests, which fail where something else is asked."""

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reasonry import STRATEGIES, Budget, UsageError, ask, solve_sync, strategy
from reasonry.app.run_test import run_test
from reasonry.ext import App, Loop, ScriptedModel, Strategy, replay
from reasonry.system.masking import SECRETS
from tests.in_process import call_command

KEY = "sk-CANARY0123456789abcdef"
ANSWER = {"stage": "*", "reply": "17 + 25 = 42.\n\n<answer>42</answer>"}
CALL = {"thought": "I look.", "actions": [{"tool": "weather", "arguments": {"city": "Rome"}}]}


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"Sun over {city}, {KEY}"


@strategy
def two_drafts(problem: str) -> Loop:
    first = yield ask(f"Draft: {problem}")
    return (yield ask(f"Improve: {first}"))


def export(store: Path) -> Path:
    """Export the last run or session as the test `it`; return its lines."""
    call(store, "runs", "export", "last", "--as-test=tests", "--name=it")
    return store.parent / "tests" / "it.jsonl"


def call(store: Path, *words: str, code: int = 0) -> str:
    """Run a command on a store; return the output, or the error."""
    done = call_command(words, env={**os.environ, "REASONRY_STORE": str(store)}, cwd=store.parent)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def solved(store: Path, *lines: dict[str, Any], name: str = "chain_of_thought", **more: Any) -> Path:
    """Solve a problem, export the run, and return its lines."""
    solve_sync("17 + 25?", strategy=name, model=ScriptedModel.of(*lines), store=str(store), **more)
    return export(store)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def with_stage(name: str, stage: str, **changed: Any) -> dict[str, Strategy[Any, Any]]:
    """Return the registry with a changed stage of a strategy."""
    own = STRATEGIES[name]
    stages = tuple(replace(one, **changed) if one.name == stage else one for one in own.stages)
    return {**STRATEGIES, name: replace(own, stages=stages)}


def test_a_driven_run_passes_and_fails_with_another_prompt_option_or_limit(store: Path) -> None:
    file = solved(store, ANSWER)
    replay(file)
    changed = {"chain_of_thought.sequential_reasoning": "{prompt}\n\nBe brief."}
    with pytest.raises(AssertionError) as error:
        replay(file, prompts=changed)
    told = str(error.value)
    assert re.match(
        r"it.jsonl: e1 of stage sequential_reasoning differs from the record at character \d+", told
    )
    recorded, now = told.split("\n")[1:]
    assert recorded.startswith("  recorded: ")
    assert now.startswith("  now:      ")
    assert "Be brief." in now
    assert "Be brief." not in recorded
    with pytest.raises(
        AssertionError, match="e2 of stage answer_verification is new; the nearest text differs"
    ):
        replay(file, options={"check": True})
    shorter = with_stage("chain_of_thought", "sequential_reasoning", max_output_tokens=99)
    with pytest.raises(AssertionError, match="differs from the record in stage, form, role, tools or limits"):
        replay(file, strategies=shorter)
    with pytest.raises(UsageError, match="has no option 'checks'"):
        replay(file, options={"checks": True})


def test_a_changed_default_of_an_option_fails_the_test(store: Path) -> None:
    file = solved(store, ANSWER)
    own = STRATEGIES["chain_of_thought"]
    options = msgspec.defstruct("Other", [("check", bool, True)], bases=(own.options,), frozen=True)
    with pytest.raises(AssertionError, match="answer_verification"):
        replay(file, strategies={**STRATEGIES, own.name: replace(own, options=options)})


def test_tools_are_not_called_and_a_changed_tool_fails_the_test(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [{"stage": "initial_reasoning", "reply": CALL}, {"stage": "*", "reply": {"answer": "42"}}]
    file = solved(store, *lines, name="react", tools=[weather])

    def refuse(city: str) -> str:
        """Return the weather of a city."""
        raise AssertionError("it was called")

    refuse.__name__ = "weather"
    replay(file)
    replay(file, tools=[refuse])
    refuse.__doc__ = "Return the climate of a city."
    with pytest.raises(AssertionError, match=r"(?s)e1 of stage initial_reasoning.*weather of.*climate of"):
        replay(file, tools=[refuse])


def test_keys_are_masked(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SECRETS, "_certain", {})
    monkeypatch.setattr(SECRETS, "_pattern", None)
    lines = [{"stage": "initial_reasoning", "reply": CALL}, {"stage": "*", "reply": {"answer": "42"}}]
    model = ScriptedModel.of(*lines)
    solve_sync("17 + 25?", strategy="react", model=model, store=str(store), tools=[weather])
    SECRETS.keep(KEY)
    file = export(store)
    text = file.read_text("utf-8")
    assert KEY not in text
    assert "Sun over Rome, ***" in text
    replay(file)


def test_a_strategy_of_your_own_is_replayed_and_its_change_is_found(store: Path) -> None:
    lines = [{"stage": "loop", "reply": reply} for reply in ("One", "Two")]
    run = solve_sync("a line", strategy=two_drafts, model=ScriptedModel.of(*lines), store=str(store))
    known = {**STRATEGIES, two_drafts.name: two_drafts}

    async def export_it() -> bytes:
        async with App(str(store), strategies=known) as app:
            source = await app.engine.recorded_run(run.run_id)
            written = run_test(run.run_id, source.entries, known)
            return b"\n".join(map(msgspec.json.encode, written))

    file = store.parent / "own.jsonl"
    file.write_bytes(asyncio.run(export_it()))
    replay(file, strategies=known)

    @strategy
    def two_drafts_of_today(problem: str) -> Loop:
        first = yield ask(f"Draft: {problem}")
        return (yield ask(f"Better: {first}"))

    with pytest.raises(AssertionError, match=r"(?s)e2 of stage loop.*Improve: One.*Better: One"):
        replay(file, strategies={**known, two_drafts.name: two_drafts_of_today})
    with pytest.raises(UsageError, match="there is no strategy 'two_drafts'"):
        replay(file)


@pytest.mark.parametrize("calls", [1, 2])
def test_a_run_that_a_limit_ended_is_a_test_too(store: Path, calls: int) -> None:
    lines = [{"stage": "*", "reply": {"thoughts": ["Add.", "Guess."]}}, {"stage": "*", "reply": "no scores"}]
    replay(solved(store, *lines, name="tree_of_thoughts", budget=Budget(calls=calls)))


def test_a_question_that_is_not_asked_any_more_fails_the_test(store: Path) -> None:
    check = {"stage": "answer_verification", "reply": {"reason": "so", "correct": True}}
    file = solved(store, ANSWER, check, options={"check": True})
    with pytest.raises(
        AssertionError, match="stage answer_verification does not ask e2 any more: the run has ended"
    ):
        replay(file, options={"check": False})


def test_another_end_fails_the_test(store: Path) -> None:
    file = solved(store, ANSWER)
    text = file.read_text("utf-8")
    file.write_text(text.replace("<answer>42</answer>", "<answer>43</answer>"), "utf-8")
    with pytest.raises(AssertionError, match=r"(?s)end of stage final_response.*answered: 42.*answered: 43"):
        replay(file)


def test_a_coached_run_is_a_test_once_it_has_ended(store: Path) -> None:
    call(store, "coach", "start", "17 + 25?", "--strategy", "chain_of_thought")
    words = ("runs", "export", "last", "--as-test", "tests")
    assert "is active; it becomes a test at its end" in call(store, *words, code=5)
    assert not (store.parent / "tests").exists()
    call(store, "coach", "answer", "last", '{"e1": "17 + 25 = 42 <answer>42</answer>"}')
    call(store, *words)
    replay(store.parent / "tests" / "chain_of_thought.jsonl")


def test_a_session_of_an_agent_is_a_test_of_what_it_is_told(store: Path) -> None:
    call(store, "think", "One", "--stage", "problem_reception", "--strategy", "chain_of_thought")
    call(store, "think", "Two", "--stage", "step_decomposition")
    file = export(store)
    replay(file)
    other = with_stage("chain_of_thought", "step_decomposition", guidance="Solve some of them.")
    with pytest.raises(
        AssertionError, match=r"(?s)thought 1 of stage problem_reception.*Solve none.*Solve some"
    ):
        replay(file, strategies=other)
    lines = file.read_text("utf-8").replace('"stage":"step_decomposition"', '"stage":"final_response"')
    file.write_text(lines, "utf-8")
    with pytest.raises(AssertionError, match="does not ask thought 2 any more: Invalid transition"):
        replay(file)


def test_each_run_of_a_comparison_is_a_test(store: Path) -> None:
    rows = (
        '{"problem": "Use 3, 3, 8 and 8 to make 24", "id": "a b"}',
        '{"problem": "Use 1, 2 to make 3", "id": "a_b"}',
    )
    (store.parent / "rows.jsonl").write_text("\n".join(rows), "utf-8")
    words = ["compare", "rows.jsonl", "--strategies", "tree_of_thoughts,best_of_n(tree_of_thoughts, n=2)"]
    shown = call(store, *words, "--model=offline", "--judge=arithmetic:24", "--json", "--yes")
    call(store, "runs", "export", json.loads(shown)["id"], "--as-test=tests", "--name=sums")
    folder = store.parent / "tests"
    assert {file.stem for file in folder.glob("*.jsonl")} == {
        "sums_tree_of_thoughts_a_b",
        "sums_tree_of_thoughts_a_b_",
        "sums_best_of_n_tree_of_thoughts_n_2_a_b",
        "sums_best_of_n_tree_of_thoughts_n_2_a_b_",
    }
    passed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "."],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in passed.stdout, passed.stdout


def test_a_file_that_exists_is_an_error_and_stays(store: Path) -> None:
    file = solved(store, ANSWER)
    file.write_text("mine", "utf-8")
    (file.parent / "test_it.py").unlink()
    words = ("runs", "export", "last", "--name=it", "--as-test")
    assert "it.jsonl exists; choose another --name or folder" in call(store, *words, "tests", code=2)
    (store.parent / "file").touch()
    assert "cannot be made" in call(store, *words, "file/in", code=2)
    assert [path.name for path in file.parent.iterdir()] == ["it.jsonl"]
    assert file.read_text("utf-8") == "mine"


def test_a_run_that_the_strategies_of_today_ask_otherwise_is_not_exported(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reasonry.strategies import chain_of_thought

    solve_sync("17 + 25?", strategy="chain_of_thought", model=ScriptedModel.of(ANSWER), store=str(store))
    for name, text in [*vars(chain_of_thought).items()]:
        if name.isupper() and isinstance(text, str):
            monkeypatch.setattr(chain_of_thought, name, f"{text} Truly.")
    said = call(store, "runs", "export", "last", "--as-test=tests", code=5)
    assert "asks something else with the strategies of today" in said
