"""Each page's own run, with each number of calls from one to what it takes, ends with an answer, within them."""

import asyncio
import contextlib
import json
import random
import shlex
import sys
from typing import Any

import pytest
from msgspec import structs

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.core.events import Answered
from reasonry.core.machine import LAST_QUESTION
from reasonry.engine.policy import Policy
from reasonry.engine.ports import Model, OnText, Question
from reasonry.engine.result import Result
from reasonry.errors import UsageError
from reasonry.strategies import DEFAULT_STRATEGY
from reasonry.surfaces.cli.settings import RunSettings

from ..filling import fill
from ..playing import check_reason

sys.path.append("docs")
from worked import ROOT, command_of

PAGES = sorted((ROOT / "docs" / "strategies").glob("*.md"))
UNANSWERED = {
    ("program_of_thought", 1): "its only program failed",
    ("prove_and_refute", 1): "refused",
}
"""Runs without an answer, and why."""


class WithLastQuestion:
    """Answers as the page's model does, and the last question, which no page has, with the page's answer."""

    name = "page"

    def __init__(self, model: Model, answer: str) -> None:
        self.model, self.last = model, answer

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        if LAST_QUESTION not in question.ask.question:
            return await self.model.answer(question)
        if question.ask.mark or not question.ask.form:
            return Answered(f"As far as it is known.\n<answer>{self.last}</answer>")
        filled = fill(question.ask.form, random.Random(1)) | {"answer": self.last}
        return Answered(json.dumps(filled))

    async def close(self) -> None:
        await self.model.close()


async def run_page(command: str, budget: Budget, answer: str = "") -> Result:
    from reasonry.surfaces.cli.commands import app as commands

    words = shlex.split(command.replace("\\\n", ""))[1:]
    _, bound, *_ = commands.parse_args(words, exit_on_error=False, print_error=False)
    given: dict[str, Any] = bound.arguments
    settings = given.get("settings", RunSettings())
    request = settings.request(
        given["problem"], given.get("strategy", DEFAULT_STRATEGY), given.get("option", ())
    )
    async with App("memory", Policy(max_concurrency=1), {}) as app:
        participants = await app.equip(request.participants)
        chosen, performers = app.order(structs.replace(request, budget=budget, participants=participants))
        model = WithLastQuestion(performers.model, answer) if answer else performers.model
        result = await app.solve(chosen, structs.replace(performers, model=model))
        record = await app.engine.record(result.run_id)
        check_reason(result.why, [*record.thoughts()], result)
        return result


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_run_of_a_page_ends_with_an_answer_at_every_number_of_calls(page: Any) -> None:
    command = command_of(page.read_text("utf-8"))
    if not command:
        pytest.skip("the page has no run")
    with contextlib.chdir(ROOT):
        usual = asyncio.run(run_page(command, Budget()))
        for calls in range(1, usual.usage.calls + 1):
            key = (page.stem, calls)
            if UNANSWERED.get(key) == "refused":
                with pytest.raises(UsageError, match=r"needs \d+ calls"):
                    asyncio.run(run_page(command, Budget(calls=calls), str(usual.answer)))
                continue
            result = asyncio.run(run_page(command, Budget(calls=calls), str(usual.answer)))
            assert result.usage.calls <= calls
            assert (result.outcome in ("answered", "solved")) is (key not in UNANSWERED), key
            if result.termination.reason == "max_calls" and key not in UNANSWERED:
                assert result.warnings[0].startswith("answered from what was known by then")
