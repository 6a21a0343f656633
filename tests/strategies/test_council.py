"""A council: each seat its own model, no names in prompts, nobody judges itself, and the differences are said."""

from typing import Any

import pytest

from reasonry import solve
from reasonry.blocks.answers import MARKED
from reasonry.core.effects import Ask
from reasonry.errors import ModelError
from reasonry.strategies.council import SYNTHESISE

from .walking import Mind

pytestmark = pytest.mark.anyio


class Member(Mind):
    """A model that gives one answer, and rates what it is shown by a table."""

    def __init__(self, name: str, answer: str, ratings: dict[str, float] | None = None) -> None:
        super().__init__()
        self.name, self.said, self.ratings = name, answer, ratings or {}

    def reply(self, ask: Ask) -> Any:
        if ask.facts["kind"] == "judge":
            shown = ask.prompt.split("Candidate ")[1:]
            values = [next((v for word, v in self.ratings.items() if word in text), 5) for text in shown]
            return {"reason": "traced", "ratings": dict(zip(ask.facts["labels"], values, strict=False))}
        if ask.facts["kind"] == "synthesis":
            return f"one counts the tax twice\n\n<answer>{self.said}, settled</answer>"
        return f"worked out\n\n<answer>{self.said}</answer>"


class Down(Member):
    """A model that cannot be reached."""

    def reply(self, ask: Ask) -> Any:
        raise ModelError("the line is dead")


async def convene(monkeypatch: pytest.MonkeyPatch, *members: Member, **options: Any) -> tuple[Any, Member]:
    by_name = {member.name: member for member in members}
    monkeypatch.setattr("reasonry.models.choose.open_model", lambda spec, *_, **__: by_name[spec])
    chair = Member("chair", "nothing")
    result = await solve(
        "Which tree is it?",
        strategy="council",
        model=chair,
        store="memory",
        options={"models": [member.name for member in members], **options},
    )
    return result, chair


async def test_where_all_seats_agree_nobody_judges_and_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [Member(f"vendor-{n}", "birch") for n in (1, 2, 3)]
    result, chair = await convene(monkeypatch, *members)
    assert (result.answer, result.usage.calls, result.details["agreed"]) == ("birch", 3, True)
    assert chair.asked == []


async def test_seats_that_differ_judge_the_others_and_the_answer_is_written_from_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    members = [Member("vendor-1", "amber"), Member("vendor-2", "birch"), Member("vendor-3", "cedar")]
    for member in members:
        member.ratings = {"amber": 2, "birch": 9, "cedar": 4}
    result, chair = await convene(monkeypatch, *members)
    assert result.usage.calls == 3 + 3 + 1
    assert result.answer == "nothing, settled"
    assert result.details["differences"] == "one counts the tax twice"
    assert result.why is not None
    assert "one counts the tax twice (Answer 1 is draft 2, Answer 2 is draft 3," in result.why.text
    counts = {vote["answer"]: vote["count"] for vote in result.details["votes"]}
    assert counts == {"amber": 1, "birch": 1, "cedar": 1, "nothing, settled": 0}, "the synthesis has no vote"
    assert next(iter(result.details["scores"])) == "draft-2"
    for member in members:
        (judged,) = [ask for ask in member.asked if ask.facts["kind"] == "judge"]
        assert f"\n{member.said}" not in judged.prompt
    prompts = [ask.text for each in (*members, chair) for ask in each.asked]
    assert not [prompt for prompt in prompts if "vendor" in prompt]
    assert result.details["models"] == ["vendor-1", "vendor-2", "vendor-3"]
    (written,) = chair.asked
    assert "Answer 1:\nworked out\nAnswer: birch\n\nAnswer 2:" in written.prompt
    assert not any(word in written.text for word in ("given by", "put before", "%"))
    assert written.question.endswith(f"{MARKED}\n\n{SYNTHESISE}")
    assert written.spelled_out().form is None


@pytest.mark.parametrize("seed", range(6))
async def test_each_seat_sees_the_others_in_an_order_of_its_own(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    words = ("amber", "birch", "cedar", "delta")
    members = [Member(f"vendor-{word}", word) for word in words]
    await convene(monkeypatch, *members, seed=seed)
    orders: list[list[str]] = []
    for member in members:
        (judged,) = [ask for ask in member.asked if ask.facts["kind"] == "judge"]
        shown = judged.prompt.split("\nCandidate ")[1:]
        orders.append([word for text in shown for word in words if f"Answer: {word}" in text])
        assert set(orders[-1]) == {*words} - {member.said}
    for place in range(3):
        assert {order[place] for order in orders} == {*words}


async def test_without_a_synthesis_the_best_ranked_answer_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = {"amber": 9.0, "birch": 2.0}
    members = [Member(f"vendor-{word}", word, ratings) for word in ("amber", "birch", "cedar")]
    result, chair = await convene(monkeypatch, *members, synthesis=False)
    assert (result.answer, chair.asked) == ("amber", [])


async def test_a_seat_whose_model_fails_is_said_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [Member(f"vendor-{number}", "birch") for number in (1, 2)]
    result, _ = await convene(monkeypatch, Down("vendor-0", ""), *others)
    assert (result.answer, result.details["agreed"]) == ("birch", False)
    assert "the line is dead" in result.details["drafts"][0]["dropped"]["text"]


async def test_where_one_seat_of_three_replies_the_first_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("amber", "birch", "", "", "")
    members = [(Member if word else Down)(f"vendor-{at}", word) for at, word in enumerate(words)]
    result, _ = await convene(monkeypatch, *members)
    assert result.termination.detail == "2 of 5 members replied"
    result, _ = await convene(monkeypatch, *members[1:4])
    assert result.termination.detail == "1 of 3 members replied: this is one model's answer"
    assert list(result.warnings) == [result.termination.detail]
