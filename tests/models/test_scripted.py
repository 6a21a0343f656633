"""Scripts and recordings: played in order, refused with the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonry.core.budget import Usage
from reasonry.core.effects import Ask
from reasonry.errors import ModelError, UsageError
from reasonry.models.recorded import RecordedModel, Recorder
from reasonry.models.scripted import ScriptedModel
from reasonry.runtime.ports import Question

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


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2"),
        ('{"reply": "x"}', "stage"),
        ('{"stage": "a"}', "either `reply` or `error`"),
        ('{"stage": "a", "reply": 1, "error": "x"}', "either"),
        ('{"stage": "a", "reply": 1, "nonsense": 2}', "nonsense"),
        ("[1]", "object"),
        ("[" * 100_000, "line 2"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"stage": "a", "reply": 1}\n' + line + "\n", "utf-8")
    with pytest.raises(UsageError, match=why) as error:
        ScriptedModel.open(str(path))
    assert error.value.details["line"] == 2


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.jsonl"):
        ScriptedModel.open(str(tmp_path / "no.jsonl"))
    with pytest.raises(UsageError, match="cannot be read"):
        RecordedModel(str(tmp_path))
    with pytest.raises(UsageError, match="cannot be written"):
        Recorder(ScriptedModel.of(), str(tmp_path))


async def test_a_recording_gives_the_same_answers_to_the_same_questions(tmp_path: Path) -> None:
    path = str(tmp_path / "answers.jsonl")
    script = ScriptedModel.of(*({"stage": "*", "reply": f"r{n}", "usage": {"usd": 0.5}} for n in range(3)))
    recorder = Recorder(script, path)
    asked = [question("a", "one"), question("a", "one", 1), question("a", "two")]
    first = [(await recorder.answer(one)).text for one in asked]
    await recorder.close()
    again = RecordedModel(path)
    assert [(await again.answer(one)).text for one in reversed(asked)] == first[::-1]
    with pytest.raises(ModelError) as error:
        await again.answer(question("a", "three"))
    assert error.value.code == "script_exhausted"
