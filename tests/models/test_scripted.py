"""Scripts: played in order, refused with the line that is wrong."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from reasonry import Budget, Result, solve_sync
from reasonry.core.effects import Ask
from reasonry.core.events import Usage
from reasonry.engine.ports import Question
from reasonry.errors import ModelError, UsageError
from reasonry.models.scripted import ScriptedModel
from tests.in_process import call_command

pytestmark = pytest.mark.anyio


def question(stage: str, prompt: str = "?", sample: int = 0) -> Question:
    return Question("e1", stage, Ask(prompt, sample=sample))


async def texts(model: ScriptedModel, *stages: str) -> list[str]:
    return [(await model.answer(question(stage))).text for stage in stages]


async def test_each_ask_takes_the_first_unused_line_of_its_stage() -> None:
    model = ScriptedModel.of(
        {"stage": "a", "reply": "1"},
        {"stage": "b", "reply": {"x": 2}},
        {"stage": "*", "reply": "3"},
        {"stage": "a", "reply": "4"},
    )
    assert await texts(model, "a", "a", "b", "a") == ["1", "3", '{"x":2}', "4"]
    with pytest.raises(ModelError) as error:
        await texts(model, "a")
    assert error.value.code == "script_exhausted"
    assert error.value.details["stage"] == "a"


async def test_a_stage_without_a_line_is_told_which_line_is_next() -> None:
    model = ScriptedModel.of({"stage": "a", "reply": "1"}, {"stage": "b", "reply": "2"})
    await texts(model, "a")
    with pytest.raises(ModelError, match=r"no line left for stage a; the next unused one is reply 2 \(b\)"):
        await texts(model, "a")


CHECKED = [
    {"stage": "sequential_reasoning", "reply": "<answer>42</answer>"},
    {"stage": "answer_verification", "reply": {"reason": "so", "correct": True}},
]


def test_an_answered_run_fails_if_lines_are_left_over() -> None:
    with pytest.raises(
        ModelError, match=r"^no question used reply 2 \(answer_verification\) of scripted"
    ) as error:
        solved(*CHECKED, check=False)
    assert error.value.code == "script_left_over"
    assert solved(*CHECKED, check=True).answer == "42"


def test_a_script_that_several_models_play_is_used_up_together() -> None:
    judged = {"stage": "answer_check", "reply": {"reason": "so", "ratings": {"A": 10}}}
    writer, judge = (ScriptedModel.of(CHECKED[0], judged) for _ in range(2))
    result = solve_sync("17 + 25?", strategy="refine", model=writer, judge_model=judge, store="memory")
    assert (result.answer, writer.left_over, judge.left_over) == (
        "42",
        ["reply 2 (answer_check)"],
        ["reply 1 (sequential_reasoning)"],
    )


def test_a_run_that_a_limit_ended_may_leave_lines_over() -> None:
    assert solved(*CHECKED, CHECKED[0], check=True, budget=Budget(calls=1)).answer == "42"


def solved(*lines: dict[str, Any], check: bool, budget: Budget | None = None) -> Result:
    return solve_sync(
        "17 + 25?",
        strategy="chain_of_thought",
        model=ScriptedModel.of(*lines),
        options={"check": check},
        budget=budget,
        store="memory",
    )


CHECK_IT = ["solve", "17 + 25?", "--strategy", "chain_of_thought", "--option", "check=true"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of commands beside `scripted.jsonl`, a script, and `recorded.jsonl`, which records it."""
    env = {**os.environ, "REASONRY_STORE": str(tmp_path / "runs.db")}
    (tmp_path / "scripted.jsonl").write_text("\n".join(map(json.dumps, CHECKED)), "utf-8")
    script = ["--model", "scripted:scripted.jsonl", "--record", "recorded.jsonl"]
    assert call_command([*CHECK_IT, *script], env=env, cwd=tmp_path).returncode == 0
    return env


@pytest.mark.parametrize("kind", ["scripted", "recorded"])
def test_the_command_line_fails_if_a_file_has_lines_left_over(
    tmp_path: Path, env: dict[str, str], kind: str
) -> None:
    words = [*CHECK_IT, "--model", f"{kind}:{kind}.jsonl"]
    assert call_command(words, env=env, cwd=tmp_path).returncode == 0
    words[5] = "check=false"
    done = call_command(words, env=env, cwd=tmp_path)
    assert done.returncode == 8
    assert f"no question used reply 2 (answer_verification) of {kind}:{kind}.jsonl" in done.stderr


@pytest.mark.parametrize("kind", ["scripted", "recorded"])
def test_a_resumed_run_fails_if_lines_are_left_over(tmp_path: Path, env: dict[str, str], kind: str) -> None:
    file = tmp_path / f"{kind}.jsonl"
    limited = [*CHECK_IT, "--model", f"{kind}:{file.name}", "--max-calls", "1", "--at-limit", "stop"]
    resume = ["runs", "resume", "last", "--max-calls", "5"]
    assert call_command(limited, env=env, cwd=tmp_path).returncode == 10
    assert call_command(resume, env=env, cwd=tmp_path).returncode == 0
    assert call_command(limited, env=env, cwd=tmp_path).returncode == 10
    lines = file.read_text("utf-8").strip()
    file.write_text(f"{lines}\n{lines.splitlines()[-1]}\n", "utf-8")
    done = call_command(resume, env=env, cwd=tmp_path)
    assert done.returncode == 8
    assert f"no question used reply 3 (answer_verification) of {kind}:{file.name}" in done.stderr


def test_a_fork_fails_if_lines_after_its_point_are_left_over(tmp_path: Path, env: dict[str, str]) -> None:
    fork = ["runs", "fork", "last", "--at", "1", "--model", "recorded:recorded.jsonl"]
    assert call_command(fork, env=env, cwd=tmp_path).returncode == 0
    assert call_command(fork[:-2], env=env, cwd=tmp_path).returncode == 0
    done = call_command([*fork, "--option", "check=false"], env=env, cwd=tmp_path)
    assert done.returncode == 8
    assert "no question used reply 2 (answer_verification) of recorded:recorded.jsonl" in done.stderr


async def test_usage_and_errors_are_the_line_s() -> None:
    model = ScriptedModel.of(
        {"stage": "*", "reply": "x", "usage": {"output_tokens": 5, "usd": 0.25}},
        {"stage": "*", "error": "provider_auth"},
    )
    assert (await model.answer(question("a"))).usage == Usage(output_tokens=5, usd=0.25)
    with pytest.raises(ModelError) as error:
        await model.answer(question("a"))
    assert (error.value.code, error.value.retryable) == ("provider_auth", False)


async def test_rewinding_keeps_the_lines_of_what_was_not_answered() -> None:
    lines = [{"stage": "a", "reply": str(number)} for number in range(4)]
    model = ScriptedModel.of(*lines)
    model.rewind([("a", True), ("a", False), ("a", True)])
    assert await texts(model, "a", "a") == ["1", "3"]


async def test_rewinding_passes_over_errors_that_were_tried_again() -> None:
    failing = {"stage": "a", "error": "provider_error", "retryable": True}
    model = ScriptedModel.of(failing, failing, {"stage": "a", "reply": "1"}, {"stage": "a", "reply": "2"})
    model.rewind([("a", True)])
    assert await texts(model, "a") == ["2"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2"),
        ('{"reply": "x"}', "stage"),
        ('{"stage": "a"}', "either `reply` or `error`"),
        ('{"stage": "a", "reply": 1, "error": "x"}', "either"),
        ('{"stage": "a", "reply": 1, "nonsense": 2}', "nonsense"),
        ("[1]", "object"),
        ('{"stage": "a", "reply": ' + "[" * 100_000, "nested too deeply"),
        ('{"stage": "a", "reply": 1, "usage": {"tokens": 2}}', "tokens"),
        ('{"stage": "a", "reply": 1, "usage": {"calls": -1}}', "calls"),
        ('{"stage": "a", "reply": 1, "usage": {"usd": "1"}}', "usd"),
        ('{"stage": "a", "reply": 1, "delay_ms": -1}', "delay_ms"),
        ('{"stage": "", "reply": 1}', "stage"),
        ('{"stage": "a", "reply": "\ud800"}'.replace("\ud800", "\\ud800"), "line 2"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"stage": "a", "reply": 1}\n' + line + "\n", "utf-8")
    with pytest.raises(UsageError, match=why) as error:
        ScriptedModel.open(str(path))
    assert error.value.details["line"] == 2
    assert str(path) in error.value.message


def test_a_broken_line_given_as_data_is_named() -> None:
    with pytest.raises(UsageError, match="either `reply` or `error`") as error:
        ScriptedModel.of({"stage": "a", "reply": 1}, {"stage": "a"})
    assert error.value.details["line"] == 2


async def test_only_line_feeds_part_lines(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_bytes(
        '\ufeff{"stage": "a", "reply": "one\u2028two\x85"}\r\n\n{"stage": "a", "reply": null}'.encode()
    )
    assert await texts(ScriptedModel.open(str(path)), "a", "a") == ["one\u2028two\x85", "null"]


async def test_what_a_line_plays_is_handed_on() -> None:
    model = ScriptedModel.of(
        {"stage": "*", "reply": "x", "truncated": True, "delay_ms": 30},
        {"stage": "*", "reply": "no", "refused": True},
        {"stage": "*", "error": "rate_limited", "retryable": True, "message": "later"},
    )
    seen: list[str] = []
    start = time.perf_counter()
    first = await model.answer(question("a"), seen.append)
    assert time.perf_counter() - start >= 0.03
    second = await model.answer(question("a", sample=1))
    assert (first.truncated, second.refused, seen) == (True, True, ["x"])
    with pytest.raises(ModelError, match="later") as error:
        await model.answer(question("a"))
    assert error.value.retryable
