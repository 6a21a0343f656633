"""Gathering independent samples of one question, so that they go out as one request where the model can do that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeGuard

from ..core.events import Answered, Failed
from .ports import Model, SamplingModel

Send = Callable[[int], Awaitable[Sequence[Answered] | Failed]]
"""Asks the question for so many samples; what comes back may be fewer."""


def takes_samples(model: Model) -> TypeGuard[SamplingModel]:
    """Whether a model takes several samples in one request, as far as is known."""
    return bool(getattr(model, "takes_n", False)) and hasattr(model, "answer_many")


class Batch:
    """Merges the asks of one turn of the event loop into a request. The tasks of a round start in the same turn."""

    def __init__(self) -> None:
        self._open: dict[object, list[asyncio.Future[Answered | bool]]] = {}

    async def ask(self, key: object, model: Model, send: Send) -> Answered | Failed:
        """Have one sample drawn; asks with equal keys are told apart by nothing but their sample.

        The first to come sends for all that come in the same turn. Those for whom nothing came share the next request;
        where the request failed, or the model turned out to give one answer at a time, each asks alone.
        """
        while (waiting := self._open.get(key)) is not None:
            mine = asyncio.get_running_loop().create_future()
            waiting.append(mine)
            answer = await mine
            if isinstance(answer, Answered):
                return answer
            if not (answer and takes_samples(model)):
                return _first(await send(1))
        return await self._lead(key, send)

    async def _lead(self, key: object, send: Send) -> Answered | Failed:
        waiting = self._open[key] = []
        answers: Sequence[Answered] | Failed = ()
        try:
            try:
                await asyncio.sleep(0)
            finally:
                del self._open[key]
            answers = await send(1 + len(waiting))
        finally:
            _hand_out(answers, waiting)
        return _first(answers)


def _hand_out(
    answers: Sequence[Answered] | Failed, waiting: Sequence[asyncio.Future[Answered | bool]]
) -> None:
    """Give the waiting what came after the first answer, or else whether the request was answered at all.

    Plain futures, so that all of them continue in one turn.
    """
    others = () if isinstance(answers, Failed) else answers[1:]
    answered = not isinstance(answers, Failed) and bool(answers)
    for number, mine in enumerate(waiting):
        if not mine.done():
            mine.set_result(others[number] if number < len(others) else answered)


def _first(answers: Sequence[Answered] | Failed) -> Answered | Failed:
    return answers if isinstance(answers, Failed) else answers[0]
