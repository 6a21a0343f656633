"""`reasonry.stream`: a run as typed events for `async for`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal, ParamSpec

from msgspec import Struct

from ...core.bodies import Thought
from ...core.budget import Budget
from ...core.effects import Ask, CallTool, Verify
from ...core.events import Usage, Verified
from ...core.machine import Step
from ...core.pending import Pending
from ...engine.observer import Observer
from ...engine.result import Result
from ...engine.run import Run
from ...errors import UsageError
from .solving import solve

P = ParamSpec("P")


class ThoughtEvent(Struct, frozen=True, tag="thought"):
    """A thought was recorded."""

    run_id: str
    thought: Thought


class ScoreEvent(Struct, frozen=True, tag="score"):
    """A thought was scored."""

    run_id: str
    score: float
    thought: Thought


class CallEvent(Struct, frozen=True, tag="call"):
    """A model, a tool or a verifier is called.

    Args:
        about: The prompt, the name of the tool, or the candidate.
    """

    run_id: str
    id: str
    stage: str
    kind: Literal["ask", "call_tool", "verify"]
    about: str


class VerdictEvent(Struct, frozen=True, tag="verdict"):
    """A verifier gave a verdict. The `CallEvent` of the verifier has the same `id`."""

    run_id: str
    id: str
    verdict: Literal["right", "wrong", "unknown"]
    detail: str


class BudgetEvent(Struct, frozen=True, tag="budget"):
    """The run has used more of its budget."""

    run_id: str
    usage: Usage
    budget: Budget


class EndEvent(Struct, frozen=True, tag="end"):
    """The run has ended."""

    run_id: str
    result: Result


StreamEvent = ThoughtEvent | ScoreEvent | CallEvent | VerdictEvent | BudgetEvent | EndEvent


class _StreamObserver(Observer):
    def __init__(self, queue: asyncio.Queue[StreamEvent | None]) -> None:
        self._put, self._run_id, self._usage = queue.put_nowait, "", Usage(calls=0)

    def began(self, run_id: str, run: Run) -> None:
        self._run_id, self._usage = run_id, run.usage

    def asked(self, pending: Pending) -> None:
        match pending.effect:
            case Ask(text=about):
                kind = "ask"
            case CallTool(tool=about):
                kind = "call_tool"
            case Verify(path=path):
                kind, about = "verify", path[-1] if path else ""
            case _:
                return
        self._put(CallEvent(self._run_id, pending.id, pending.stage, kind, about))

    def stepped(self, run: Run, step: Step) -> None:
        latest = run.events[-1] if run.events else None
        if latest is not None and isinstance(verdict := latest.event, Verified):
            self._put(VerdictEvent(self._run_id, latest.id or "", verdict.verdict, verdict.detail))
        for thought in step.thoughts:
            self._put(ThoughtEvent(self._run_id, thought))
            if thought.score is not None:
                self._put(ScoreEvent(self._run_id, thought.score, thought))
        if run.usage != self._usage:
            self._usage = run.usage
            self._put(BudgetEvent(self._run_id, run.usage, run.budget))


def _as_stream(
    function: Callable[P, Coroutine[Any, Any, Result]],
) -> Callable[P, AsyncGenerator[StreamEvent]]:
    """Convert `function` to an async generator function that yields the events of the run."""

    async def stream(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[StreamEvent]:
        """Solve a problem and yield the events of the run. The last event is an `EndEvent` with the result.

        The arguments are the same as for `solve`, except `observer`. Closing the generator cancels the run.

        Raises:
            UsageError: An argument is wrong. Nothing was written or paid.
        """
        if kwargs.get("observer") is not None:
            raise UsageError("a stream has no observer: its events say the same", option="observer")
        queue = asyncio.Queue[StreamEvent | None]()
        kwargs["observer"] = _StreamObserver(queue)
        solving = asyncio.create_task(function(*args, **kwargs))
        solving.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            result = solving.result()
            yield EndEvent(result.run_id, result)
        finally:
            solving.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await solving

    return stream


stream = _as_stream(solve)
"""Yields the events of a run. Its arguments are the same as for `solve`, except `observer`."""
