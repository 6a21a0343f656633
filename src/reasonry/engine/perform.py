"""Performing effects: the world's side of a run. Everything that goes wrong here comes back as an event."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from ..core.effects import Ask, CallTool, Verify
from ..core.events import Event, Failed, ToolReturned, Verified
from ..core.machine import Pending
from ..core.problem import without_quoted
from ..errors import ReasonryError
from ..masking import SECRETS
from .calls import Calls
from .ports import NOT_FAILURES


async def perform(waiting: Pending, calls: Calls) -> Event:
    """Perform one effect of a drive. No key in use gets into the event, whoever has echoed it.

    Raises:
        BudgetExhausted: It was not performed, because the budget does not cover it.
        Held: It was not performed, because the drive is to halt.
    """
    calls.observer.asked(waiting)
    return SECRETS.mask_data(await _perform(waiting, calls))


async def _perform(waiting: Pending, calls: Calls) -> Event:
    match waiting.effect:
        case Ask():
            return await calls.ask(waiting, waiting.effect)
        case CallTool():
            async with calls.slots:
                calls.gate.check()
                return await _call_tool(calls, waiting.effect)
        case Verify():
            async with calls.slots:
                calls.gate.check()
                return await _verify(calls, waiting.effect)
        case _:
            raise AssertionError("a strategy inside a run is opened by the machine")


async def _call_tool(calls: Calls, effect: CallTool) -> Event:
    if calls.performers.tools is None:
        return Failed("tool_error", f"there is no tool {effect.tool!r} in this run", at_ms=calls.at_ms())
    try:
        async with asyncio.timeout(calls.policy.tool_timeout_s):
            value = await calls.performers.tools.call(effect.tool, effect.arguments)
    except TimeoutError:
        message = f"{effect.tool} did not return within {calls.policy.tool_timeout_s:g} s"
        return Failed("tool_timeout", message, at_ms=calls.at_ms())
    except ReasonryError as error:
        return Failed(error.code, error.message, at_ms=calls.at_ms())
    except NOT_FAILURES:
        raise
    except BaseException as error:
        message = f"{effect.tool} failed: {type(error).__name__}: {error}"
        return Failed("tool_error", message, at_ms=calls.at_ms())
    return ToolReturned(value, at_ms=calls.at_ms())


async def _verify(calls: Calls, effect: Verify) -> Event:
    if calls.performers.verifier is None:
        return Verified("unknown", "no verifier was given", at_ms=calls.at_ms())
    try:
        claim = replace(effect, problem=without_quoted(effect.problem))
        verdict = await calls.performers.verifier.verify(claim)
    except NOT_FAILURES:
        raise
    except BaseException as error:
        detail = f"the verifier failed: {type(error).__name__}: {error}"[:500]
        return Verified("unknown", detail, at_ms=calls.at_ms(), failed=True)
    return replace(verdict, at_ms=calls.at_ms())
