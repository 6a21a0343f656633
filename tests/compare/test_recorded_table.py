"""A comparison as one file: the same table again without a model, and a changed line is named."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.problem_set import ProblemSet, open_dataset
from reasonry.compare.recorded_table import recorded_table, score_again
from reasonry.compare.standings import Report
from reasonry.core.budget import Budget
from reasonry.core.events import Answered, Usage
from reasonry.engine.ports import Model
from reasonry.errors import ConflictError, ModelError, UsageError
from reasonry.models.scripted import RecordedModel, ScriptedModel
from reasonry.strategies import STRATEGIES

SCOREBOARD = sorted((Path(__file__).parents[2] / "scoreboard").glob("*.jsonl"))
STRATEGY_NAMES = ["direct", "self_consistency(samples=3, stop=full)", "react"]


class Uneven(Model):
    """Breaks down when it is asked for a river alone, forgets its form at times, and else counts its calls."""

    name = "uneven"

    def __init__(self) -> None:
        self.calls = 0

    async def answer(self, question: Any, on_text: Any = None) -> Any:
        self.calls += 1
        if question.stage == "answering" and "river" in question.prompt:
            raise ModelError("down", code="provider_auth")
        reply = "<answer>42</answer>"
        if question.stage == "thought":
            reply = '{"thought": "", "action": "look_up", "action_input": {"name": "Vellunba"}}'
        usage = Usage(input_tokens=self.calls, output_tokens=3)
        text = reply * (self.calls % 5 > 0)
        await asyncio.sleep(0)
        return Answered(text, usage=usage, model=self.name)


async def recorded(path: Path, problems: ProblemSet) -> Report:
    asked = RunRequest(
        budget=Budget(calls=6), participants=Participants(model=Uneven(), tools=problems.tools)
    )
    async with App("memory") as app:
        report = await Comparison(app, problems, STRATEGY_NAMES, asked).run()
        path.write_text(await recorded_table(app.engine, report), "utf-8")
    return report


@pytest.fixture
async def table(tmp_path: Path) -> tuple[Path, Report]:
    path = tmp_path / "table.jsonl"
    return path, await recorded(path, open_dataset("facts:3"))


pytestmark = pytest.mark.anyio


def sealed(lines: list[dict[str, Any]]) -> str:
    """Write a file as a forger would who knows how it is made."""
    text, seal = "", ""
    for line in lines:
        body = json.dumps({**line, "seal": "?"}, separators=(",", ":"), ensure_ascii=False).removesuffix(
            ',"seal":"?"}'
        )
        seal = hashlib.sha256((seal + body).encode()).hexdigest()[:16]
        text += f'{body},"seal":"{seal}"}}\n'
    return text


def line_of_the_change(path: Path, text: str) -> tuple[int, str]:
    changed = path.with_name("changed.jsonl")
    changed.write_text(text, "utf-8", newline="\n")
    with pytest.raises(ConflictError) as error:
        score_again(str(changed), STRATEGIES)
    assert error.value.code == "recording_changed"
    assert f"line {error.value.details['line']} of {changed} cannot be scored again" in error.value.message
    return error.value.details["line"], error.value.message


async def test_the_same_report_comes_out_of_the_file_alone(table: tuple[Path, Report]) -> None:
    path, report = table
    again, was = score_again(str(path), STRATEGIES), json.loads(msgspec.json.encode(report.document()))
    now = json.loads(msgspec.json.encode(again.document()))
    assert now.pop("spent")["calls"] == now["runs"].pop("reused") - 9 == 0
    assert was.pop("spent")["calls"] > was["runs"].pop("reused") == 0
    assert now == was
    assert {trial.code for trial in again.trials} >= {None, "provider_auth"}
    assert sum(trial.asked_again for trial in again.trials) > 0


async def test_every_changed_lost_or_moved_line_is_named(table: tuple[Path, Report]) -> None:
    path, _ = table
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for at, line in enumerate(lines):
        middle = len(line) // 2
        other = line[:middle] + ("x" if line[middle] != "x" else "y") + line[middle + 1 :]
        assert line_of_the_change(path, "".join([*lines[:at], other, *lines[at + 1 :]]))[0] == at + 1
        assert line_of_the_change(path, "".join([*lines[:at], *lines[at + 1 :]]))[0] == at + 1
        assert line_of_the_change(path, "".join([*lines[: at + 1], "\n", *lines[at + 1 :]]))[0] == at + 2
    assert line_of_the_change(path, "".join([*lines[:9], lines[10], lines[9], *lines[11:]]))[0] == 10
    assert "the table ends before its last run" in line_of_the_change(path, "".join(lines[:-1]))[1]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{},false]", '{"direct.answering":"Guess."},false]', "does not ask the question e1 today"),
        ('"problem":"', '"problem":"So: ', "the run is not about the problem facts"),
        ("<answer>42</answer>", "<answer>43</answer>", "comes out differently: answer '42' → '43'"),
        ('"input_tokens":8', '"input_tokens":9', "comes out differently: tokens"),
        ('"problem":"', '"question":"', "unknown field `question`"),
        ('"id":"e1"', '"id":"e9"', "does not ask the question e9"),
    ],
)
async def test_a_change_that_is_sealed_again_does_not_fit_the_rest(
    table: tuple[Path, Report], old: str, new: str, why: str
) -> None:
    path, _ = table
    lines = path.read_text("utf-8").splitlines()
    assert sealed([json.loads(line) for line in lines]) == path.read_text("utf-8")
    at = next(at for at, line in enumerate(lines) if old in line)
    lines[at] = lines[at].replace(old, new)
    number, message = line_of_the_change(path, sealed([json.loads(line) for line in lines]))
    assert why in message
    assert number > at


async def test_the_file_is_a_recording_that_a_model_plays(table: tuple[Path, Report]) -> None:
    path, report = table
    problems, model = open_dataset("facts:3"), RecordedModel(str(path))
    asked = RunRequest(budget=Budget(calls=6), participants=Participants(model=model, tools=problems.tools))
    async with App("memory") as app:
        again = await Comparison(app, problems, STRATEGY_NAMES, asked, parallel=1).run()
    known, now = (
        {trial.item: trial.answer for trial in each.trials if trial.strategy == "direct" and trial.answer}
        for each in (report, again)
    )
    assert known == now != {}


async def test_a_comparison_fails_if_a_recording_has_lines_left_over(tmp_path: Path) -> None:
    path, names = tmp_path / "table.jsonl", STRATEGY_NAMES[:2]
    script, problems = [{"stage": "*", "reply": "<answer>4</answer>"}] * 8, open_dataset("facts:2")
    asked = RunRequest(budget=Budget(), participants=Participants(model=ScriptedModel.of(*script)))
    async with App("memory") as app:
        report = await Comparison(app, problems, names, asked, parallel=1).run()
        path.write_text(await recorded_table(app.engine, report), "utf-8")
    played = replace(asked, participants=Participants(model=f"recorded:{path}"))
    async with App("memory") as app:
        assert (await Comparison(app, problems, names, played).run()).complete
        # The second time, all runs come from the store.
        for _ in range(2):
            with pytest.raises(
                ModelError, match=r"no question used reply 2 \(reasoning_path_execution\), "
            ) as error:
                await Comparison(app, problems, names[:1], played).run()
            assert error.value.code == "script_left_over"
        limited = replace(played, budget=Budget(calls=2))
        assert (await Comparison(app, problems, names[1:], limited).run()).complete, "a limit may leave lines"


@pytest.mark.parametrize("text", ["", "{}\n", '{"line":"answer"}\n'])
def test_another_file_is_no_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"other\.jsonl"):
        score_again(str(path), STRATEGIES)


@pytest.mark.parametrize("path", SCOREBOARD, ids=lambda path: path.name)
def test_a_table_of_the_scoreboard_comes_out_the_same_again(path: Path) -> None:
    report = score_again(str(path), STRATEGIES)
    assert report.strategies[0] == "direct"
    assert len(report.trials) == len(report.items) * len(report.strategies)
    assert path.stat().st_size < 1_000_000


def test_the_scoreboard_has_tables() -> None:
    assert SCOREBOARD
