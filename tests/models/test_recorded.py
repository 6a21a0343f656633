"""Recordings: the same questions get the same answers again."""

import stat
from pathlib import Path

import pytest

from reasonry.core.effects import Ask
from reasonry.core.events import Usage
from reasonry.engine.ports import Model, Question
from reasonry.engine.prices import Prices, check_priced
from reasonry.errors import ModelError, UsageError
from reasonry.models.offline import OfflineModel
from reasonry.models.scripted import RecordedModel, Recorder, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "answers.jsonl")


def question(stage: str, prompt: str = "?", sample: int = 0, system: str = "") -> Question:
    return Question("e1", stage, Ask(prompt, system, sample=sample))


async def record(path: str, model: Model, *asked: Question) -> list[str]:
    recorder = Recorder(model, path)
    try:
        return [(await recorder.answer(one)).text for one in asked]
    finally:
        await recorder.close()


def script(*replies: str) -> ScriptedModel:
    return ScriptedModel.of(*({"stage": "*", "reply": reply, "usage": {"usd": 0.5}} for reply in replies))


async def test_a_recording_gives_the_same_answers_to_the_same_questions(path: str) -> None:
    asked = [
        question("a", "one"),
        question("a", "one", sample=1),
        question("a", "two"),
        question("b", "two"),
        question("b", "two", system="s"),
    ]
    first = await record(path, script("r1", "r2", "r3", "r4", "r5"), *asked)
    again = RecordedModel(path)
    assert [(await again.answer(one)).text for one in reversed(asked)] == first[::-1]
    with pytest.raises(ModelError) as error:
        await again.answer(question("a", "three"))
    assert (error.value.code, error.value.retryable) == ("script_exhausted", False)


async def test_a_question_that_is_not_in_the_recording_is_shown_beside_the_nearest_one(
    path: str,
) -> None:
    asked = [
        question("a", "Add 17 and 25, please."),
        question("a", "Name a fruit."),
        question("b", "Add them."),
    ]
    await record(path, script("42", "Fig", "1"), *asked)
    with pytest.raises(ModelError) as error:
        await RecordedModel(path).answer(question("a", "Add 17 and 26, please."))
    differs = "the nearest one differs at character 13. Recorded: Add 17 and 25, please. Asked: Add 17 and 26, please."
    assert error.value.message.endswith(differs)
    with pytest.raises(ModelError, match=r"Recorded: Name a fruit\. Asked: Name a fig\."):
        await RecordedModel(path).answer(question("c", "Name a fig."))


async def test_the_lines_of_a_recording_that_no_question_used_are_left_over(path: str) -> None:
    await record(path, script("1", "2", "3"), question("a"), question("a"), question("b"))
    again = RecordedModel(path)
    assert again.left_over == ["reply 1 (a)", "reply 2 (a)", "reply 3 (b)"]
    await again.answer(question("a"))
    await again.answer(question("b"))
    await again.answer(question("b"))
    assert again.left_over == ["reply 2 (a)"]


async def test_a_question_asked_again_gets_the_next_answer_and_then_the_last_for_good(path: str) -> None:
    await record(path, script("first", "second"), question("a"), question("a"))
    again = RecordedModel(path)
    assert [(await again.answer(question("a"))).text for _ in range(3)] == ["first", "second", "second"]


async def test_everything_about_an_answer_is_kept(path: str) -> None:
    lines = ScriptedModel.of({"stage": "a", "reply": "x", "truncated": True, "usage": {"output_tokens": 7}})
    await record(path, lines, question("a"))
    seen: list[str] = []
    answer = await RecordedModel(path).answer(question("a"), seen.append)
    assert (answer.truncated, answer.usage, seen) == (True, Usage(output_tokens=7), ["x"])
    puzzle = Question(
        "e1", "a", Ask("make 3", facts={"kind": "answer", "problem": "make 3 from 1 and 2", "path": []})
    )
    await record(path, OfflineModel(), puzzle)
    assert (await RecordedModel(path).answer(puzzle)).native is True


async def test_a_recording_goes_on_after_a_line_that_was_cut_off(path: str) -> None:
    await record(path, script("one"), question("a", "1"))
    Path(path).write_bytes(Path(path).read_bytes() + b'{"stage": "a", "dig')
    await record(path, script("two"), question("a", "2"))
    assert len(Path(path).read_bytes().splitlines()) == 3
    with pytest.raises(UsageError, match="line 2 of the recording") as error:
        RecordedModel(path)
    assert error.value.details["line"] == 2


async def test_a_recording_is_for_its_owner_alone(path: str) -> None:
    await record(path, script("secret"), question("a"))
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


async def test_a_failure_is_not_recorded(path: str) -> None:
    with pytest.raises(ModelError):
        await record(path, script(), question("a"))
    assert Path(path).read_bytes() == b""


async def test_a_recorder_hands_on_where_a_run_stands(tmp_path: Path) -> None:
    recorder = Recorder(script("one", "two"), str(tmp_path / "answers.jsonl"))
    recorder.rewind([("a", True)])
    assert (await recorder.answer(question("a"))).text == "two"
    await recorder.close()
    plain = Recorder(OfflineModel(), str(tmp_path / "others.jsonl"))
    plain.rewind([("a", True)])
    await plain.close()


async def test_a_model_that_states_its_dollars_is_recorded_under_a_limit_on_dollars(path: str) -> None:
    recorder = Recorder(script("one"), path)
    check_priced("max_usd", [recorder], Prices())
    await recorder.close()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "no" / "such.jsonl"), "a\0b"):
        with pytest.raises(UsageError, match="cannot be written"):
            Recorder(ScriptedModel.of(), path)
