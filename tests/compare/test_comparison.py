"""A comparison counts what its runs spend while they run, and asks for a verdict only who is to give it."""

import asyncio

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.grading import Item
from reasonry.compare.problem_set import ProblemSet
from reasonry.core.events import Answered, Usage
from reasonry.engine.ports import Model, OnText, Question
from reasonry.errors import UsageError


class Cashier(Model):
    """Takes a dollar a sample; the last sample of a long problem is never answered while short ones come in."""

    name = "cashier"

    def __init__(self) -> None:
        self.short = asyncio.Event()

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        if "long" not in question.ask.prompt:
            self.short.set()
        elif question.ask.sample == 4:
            await self.short.wait()
            await asyncio.sleep(0.1)
        return Answered('{"reasoning": "", "answer": "4"}', usage=Usage(usd=1.0))


class Speaker(Model):
    """Says the same to everything, once it may, and keeps what it was asked."""

    def __init__(self, name: str, says: str) -> None:
        self.name, self.says = name, says
        self.prompts: list[str] = []
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.prompts.append(question.ask.prompt)
        self.asked.set()
        await self.free.wait()
        return Answered(f'{{"reasoning": "", "answer": "{self.says}"}}')


@pytest.mark.anyio
async def test_money_that_runs_in_flight_have_spent_begins_no_more_runs() -> None:
    async with App("memory") as app:
        items = [
            Item(f"{kind} {at}", 4, str(at)) for at, kind in enumerate(["long", "short", "short", "short"])
        ]
        problems, voting = ProblemSet("sums", items), ["self_consistency(samples=5, stop=full)"]
        asked = RunRequest(participants=Participants(model=Cashier()))
        report = await Comparison(app, problems, voting, asked, parallel=2, total_usd=9.0).run()
    # The long one has four dollars' worth of answers when the first short one has ended for five: that is nine.
    assert {trial.item for trial in report.trials} == {"0", "1"}
    assert report.spent.usd == 10.0
    assert not report.complete


@pytest.mark.anyio
async def test_an_interrupted_verdict_is_gone_on_with_by_the_judge_model() -> None:
    model, judge = Speaker("model", "4"), Speaker("judge", "yes")
    model.free.set()
    asked = RunRequest(participants=Participants(model=model, judge_model=judge))
    async with App("memory") as app:

        def comparison() -> Comparison:
            problems = ProblemSet("sums", [Item("2 + 2?", id="sum")])
            return Comparison(app, problems, ["self_consistency(samples=1)"], asked, judge="model")

        interrupted = asyncio.create_task(comparison().run())
        await judge.asked.wait()
        interrupted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await interrupted
        judge.free.set()
        report = await comparison().run()
    assert [trial.right for trial in report.trials] == [True]
    assert len(model.prompts) == 1
    assert all("Is the answer given right?" in prompt for prompt in judge.prompts)


@pytest.mark.anyio
async def test_a_strategy_that_only_tests_a_text_is_not_put_to_questions() -> None:
    asked = RunRequest(participants=Participants(model=Speaker("model", "4")))
    problems = ProblemSet("sums", [Item("2 + 2?", 4, id="sum")])
    async with App("memory") as app:
        with pytest.raises(UsageError, match="tests the claims of a text and answers no question"):
            Comparison(app, problems, ["prove_and_refute"], asked)
        assert len(Comparison(app, problems, ["prove_and_refute(solvers=2)"], asked).jobs) == 1
