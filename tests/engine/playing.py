"""Small strategies and a model that counts, for the tests of the engine."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from reasonry.core.bodies import Body, Conclusion, go, request, stay
from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Usage
from reasonry.core.strategy import Stage, Strategy
from reasonry.engine.policy import Performers
from reasonry.engine.ports import OnText, Question
from reasonry.errors import ModelError


class Loops(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    steps: Annotated[int, Meta(ge=1, le=10_000)] = 20
    width: Annotated[int, Meta(ge=1, le=1_000)] = 1


class Seen(Struct, frozen=True):
    problem: str
    steps: int
    width: int
    texts: tuple[str, ...] = ()


def _think(state: Seen) -> Body:
    number = len(state.texts)
    asks = [
        Ask(f"{state.problem} {number}", sample=sample, facts={"n": number}) for sample in range(state.width)
    ]
    replies = yield request(state, *asks)
    texts = (*state.texts, *(reply.text for reply in replies))
    now = Seen(state.problem, state.steps, state.width, texts)
    done = len(texts) >= state.steps * state.width
    return go(now, "end", texts[-1]) if done else stay(now, texts[-1])


LOOP: Strategy[Seen, Loops] = Strategy(
    name="loop",
    title="Loop",
    source="test",
    summary="Asks `width` questions at once, `steps` times.",
    options=Loops,
    state=Seen,
    begin=lambda problem, options: Seen(problem, options.steps, options.width),
    conclude=lambda state: Conclusion(state.texts[-1] if state.texts else None),
    stages=(Stage("think", to=("end",), body=_think), Stage("end")),
)

STRATEGIES = {"loop": LOOP}


class CountingModel:
    """Answers with the number of the call; a fake, standing where a paid model would."""

    name = "counting"

    def __init__(
        self,
        latency_s: float = 0.0,
        usage: Usage | None = None,
        fault: Callable[[int], ModelError | None] | None = None,
        reply: Callable[[Question], str] | None = None,
    ) -> None:
        self.calls = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.latency_s, self.usage, self.fault, self.reply = latency_s, usage or Usage(), fault, reply

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.calls += 1
        number = self.calls
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        error = self.fault(number) if self.fault else None
        if error is not None:
            raise error
        text = self.reply(question) if self.reply else f"{question.ask.prompt} of {question.id}"
        return Answered(text, usage=self.usage, model=self.name)

    async def close(self) -> None:
        pass


class GatedModel(CountingModel):
    """Answers nothing before its gate is open."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.gate = asyncio.Event()

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        answered = await super().answer(question, on_text)
        await self.gate.wait()
        return answered


async def turns(number: int) -> None:
    """Let the event loop turn so often."""
    for _ in range(number):
        await asyncio.sleep(0)


def by(performers: Performers) -> Callable[[Any], Awaitable[Performers]]:
    """Say who performs what is no question of a coached run, as it is asked for once the run is read."""

    async def open_performers(_: Any) -> Performers:
        return performers

    return open_performers
