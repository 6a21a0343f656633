"""Performing effects: the world's side of a run. Everything that goes wrong here comes back as an event.

Only transport is tried again here: overload, resets, time-outs, bodies that are no answer. What an answer says is the
machine's business; it re-asks by itself, so that every reply that was paid for is in the journal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import NOTHING, Usage
from ..core.effects import Ask, CallTool, Verify
from ..core.events import Answered, Event, Failed, ToolReturned, Verified
from ..core.machine import Pending
from ..errors import ModelError, ReasonryError
from .guard import BudgetGuard
from .observe import Observer
from .ports import Model, Question, Verifier


class Policy(Struct, frozen=True, kw_only=True):
    """How patient and how wide the runtime is.

    Args:
        max_concurrency: Effects of one run performed at once.
        max_attempts: Requests for one question, the first included.
        call_timeout_s: Until a call to a model counts as lost.
        tool_timeout_s: Until a tool counts as failed.
        backoff_s: First pause between attempts; doubles, with full jitter.
        max_backoff_s: No pause is longer, whatever `Retry-After` says.
    """

    max_concurrency: int = 8
    max_attempts: int = 4
    call_timeout_s: float = 120.0
    tool_timeout_s: float = 30.0
    backoff_s: float = 0.5
    max_backoff_s: float = 20.0


class Tools(Protocol):
    """The tools a run may call, fixed when it starts."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call one. Raises ToolError."""
        ...


class Performers(Struct, frozen=True):
    """Who does what in a run."""

    model: Model
    judge: Model | None = None
    verifier: Verifier | None = None
    tools: Tools | None = None


class Performing:
    """Performs the effects of one drive of one run.

    Args:
        intend: Writes down durably that a call is about to go out.
        at_ms: Reads the run's clock.
    """

    def __init__(
        self,
        who: Performers,
        guard: BudgetGuard,
        policy: Policy,
        observer: Observer,
        intend: Callable[[str], Awaitable[None]],
        at_ms: Callable[[], int],
    ) -> None:
        self.who, self.guard, self.policy = who, guard, policy
        self.observer, self.intend, self.at_ms = observer, intend, at_ms
        self.slots = asyncio.Semaphore(policy.max_concurrency)
        self.in_flight: dict[str, int] = {}

    async def perform(self, one: Pending) -> Event:
        """Perform one effect.

        Raises:
            BudgetExhausted: It was not performed, because the budget does not cover it.
        """
        async with self.slots:
            self.observer.asked(one)
            match one.effect:
                case Ask():
                    return await self._ask(one, one.effect)
                case CallTool():
                    return await self._call_tool(one.effect)
                case Verify():
                    return await self._verify(one.effect)
                case _:
                    raise AssertionError("a strategy inside a run is opened by the machine")

    async def _ask(self, one: Pending, ask: Ask) -> Event:
        model = self.who.judge if ask.by == "judge" and self.who.judge else self.who.model
        question = Question(one.id, one.stage, ask, timeout_s=self.policy.call_timeout_s)
        for attempt in range(1, self.policy.max_attempts + 1):
            try:
                answer = await self._attempt(model, question)
            except ModelError as error:
                if not error.retryable or attempt == self.policy.max_attempts:
                    usage = Usage(calls=attempt)
                    self.in_flight.pop(one.id, None)
                    return Failed(error.code, error.message, at_ms=self.at_ms(), usage=usage)
                pause = self._pause(attempt, error.retry_after_s)
                self.observer.retrying(one.id, error.message, pause)
                await asyncio.sleep(pause)
            else:
                name = "" if answer.model == self.who.model.name else answer.model
                usage = replace(answer.usage, calls=answer.usage.calls + attempt - 1)
                return replace(answer, at_ms=self.at_ms(), usage=usage, model=name)
        raise AssertionError("unreachable: the last attempt returns")

    async def _attempt(self, model: Model, question: Question) -> Answered:
        estimate = await self.guard.reserve(question)
        spent = Usage()
        self.in_flight[question.id] = self.in_flight.get(question.id, 0) + 1
        try:
            if self.guard.limits_calls:
                await self.intend(question.id)
            async with asyncio.timeout(question.timeout_s):
                answer = await model.answer(question, lambda piece: self.observer.text(question.id, piece))
            spent = answer.usage
        except TimeoutError:
            seconds = question.timeout_s or 0
            raise ModelError(
                f"{model.name} did not answer within {seconds:g} s", code="provider_timeout", retryable=True
            ) from None
        except ReasonryError:
            raise
        except Exception as error:
            raise ModelError(f"{model.name} failed: {type(error).__name__}: {error}") from error
        finally:
            self.guard.settle(estimate, spent)
        del self.in_flight[question.id]
        return answer

    def _pause(self, attempt: int, retry_after_s: float | None) -> float:
        policy = self.policy
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), policy.max_backoff_s)
        return random.uniform(0, min(policy.backoff_s * 2 ** (attempt - 1), policy.max_backoff_s))

    async def _call_tool(self, effect: CallTool) -> Event:
        if self.who.tools is None:
            return Failed("tool_error", f"there is no tool {effect.tool!r} in this run", at_ms=self.at_ms())
        try:
            async with asyncio.timeout(self.policy.tool_timeout_s):
                value = await self.who.tools.call(effect.tool, effect.arguments)
        except TimeoutError:
            message = f"{effect.tool} did not return within {self.policy.tool_timeout_s:g} s"
            return Failed("tool_timeout", message, at_ms=self.at_ms())
        except ReasonryError as error:
            return Failed(error.code, error.message, at_ms=self.at_ms())
        return ToolReturned(value, at_ms=self.at_ms())

    async def _verify(self, effect: Verify) -> Event:
        if self.who.verifier is None:
            return Verified("unknown", "no verifier was given", at_ms=self.at_ms())
        return replace(await self.who.verifier.verify(effect), at_ms=self.at_ms())

    def cut(self) -> Usage:
        """Return what calls cut off in flight may have cost."""
        calls = sum(self.in_flight.values())
        return replace(NOTHING, calls=calls)
