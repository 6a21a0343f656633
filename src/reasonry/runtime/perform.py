"""Performing effects: the world's side of a run. Everything that goes wrong here comes back as an event."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from ..core.budget import NOTHING, Usage
from ..core.effects import Ask, CallTool, Verify
from ..core.events import Event, Failed, ToolReturned, Verified
from ..core.machine import Pending
from ..errors import ReasonryError
from .calls import Calls
from .masking import SECRETS
from .ports import NOT_FAILURES


class Performing:
    """Performs the effects of one drive of one run.

    Args:
        calls: Performs the questions; the rest is performed here.
    """

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.who, self.observer, self.at_ms = calls.who, calls.observer, calls.at_ms
        self.policy, self.slots = calls.policy, calls.slots

    async def perform(self, one: Pending) -> Event:
        """Perform one effect. No key in use gets into the event, whoever has echoed it.

        Raises:
            BudgetExhausted: It was not performed, because the budget does not cover it.
        """
        self.observer.asked(one)
        return SECRETS.masked(await self._perform(one))

    async def _perform(self, one: Pending) -> Event:
        match one.effect:
            case Ask():
                return await self.calls.ask(one, one.effect)
            case CallTool():
                async with self.slots:
                    return await self._call_tool(one.effect)
            case Verify():
                async with self.slots:
                    return await self._verify(one.effect)
            case _:
                raise AssertionError("a strategy inside a run is opened by the machine")

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
        except NOT_FAILURES:
            raise
        except BaseException as error:
            message = f"{effect.tool} failed: {type(error).__name__}: {error}"
            return Failed("tool_error", message, at_ms=self.at_ms())
        return ToolReturned(value, at_ms=self.at_ms())

    async def _verify(self, effect: Verify) -> Event:
        if self.who.verifier is None:
            return Verified("unknown", "no verifier was given", at_ms=self.at_ms())
        try:
            verdict = await self.who.verifier.verify(effect)
        except NOT_FAILURES:
            raise
        except BaseException as error:
            detail = f"the verifier failed: {type(error).__name__}: {error}"[:500]
            return Verified("unknown", detail, at_ms=self.at_ms(), failed=True)
        return replace(verdict, at_ms=self.at_ms())

    @property
    def in_flight(self) -> Mapping[str, int]:
        """How many requests went out for each effect that is not answered yet."""
        return self.calls.in_flight

    @property
    def cut_off(self) -> Usage:
        """What these requests took, as far as can be seen."""
        return sum(self.calls.taken.values(), NOTHING)
