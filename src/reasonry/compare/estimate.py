"""How much a comparison is going to take: each strategy is rehearsed once, with the replies that its stages show.

Rule 1: nothing is asked, called, checked or written: the machine alone walks the table, and is told that every verifier
        says yes and every tool returns nothing.
Rule 2: it is a guess: how long a real model thinks, and when it finds the answer, nobody knows before.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec
from msgspec.structs import replace

from ..app.wiring import App
from ..core.budget import NOTHING, Usage
from ..core.effects import Ask, Effect, Verify
from ..core.events import Answered, Event, ToolReturned, Verified
from ..core.machine import advance, begin, open_effects
from ..core.metering import estimate_tokens
from ..core.options import nested_options
from ..engine.engine import Order
from .comparison import Comparison

REPLY_TOKENS = 200
"""Of a reply, where the shown one is shorter."""


async def estimate(comparison: Comparison) -> tuple[int, Usage]:
    """Return how many runs are missing, and about what they take."""
    missing = await comparison.missing()
    orders = {job.strategy: job.order for job in missing}
    rehearsed = {name: _rehearse(comparison.app, order) for name, order in orders.items()}
    total = sum((rehearsed[job.strategy] for job in missing), NOTHING)
    if comparison.judge is None:
        total += Usage(len(missing), total.input_tokens // max(1, total.calls) * len(missing))
    performers, usd = comparison.jobs[0].performers, 0.0
    if missing and not getattr(performers.model, "is_free", False):
        usd = performers.prices.price_of(performers.model)(total.input_tokens, total.output_tokens, 0)
    return len(missing), replace(total, usd=usd)


def _rehearse(app: App, order: Order) -> Usage:
    """Return what a run takes in which everybody says what the stages show."""
    strategy, strategies, limit = order.strategy, app.strategies, order.budget.calls or inf
    levels = nested_options(msgspec.to_builtins(order.options))
    inside = [app.strategy(str(options["over"])) for options in levels if "over" in options]
    stages = [stage for each in (*reversed(inside), strategy) for stage in each.stages]
    shown = {stage.name: dict(stage.example) for stage in stages if stage.example}
    taken, step = NOTHING, begin(strategy, order.problem, order.options, strategies=strategies)
    while (waiting := open_effects(step.snapshot)) and taken.calls < limit:
        asked = waiting[0]
        event = _answer(asked.effect, shown.get(asked.stage, {"answer": "4"}))
        taken += event.usage if isinstance(event, Answered) else NOTHING
        step = advance(strategy, step.snapshot, asked.id, event, strategies=strategies)
    return taken


def _answer(effect: Effect, shown: Mapping[str, Any]) -> Event:
    """Return what comes of an effect."""
    if isinstance(effect, Verify):
        return Verified("right" if effect.final else "unknown")
    if not isinstance(effect, Ask):
        return ToolReturned("")
    reply = msgspec.json.encode(shown).decode()
    tokens = max(REPLY_TOKENS, estimate_tokens(reply))
    return Answered(reply, usage=Usage(input_tokens=estimate_tokens(effect.text), output_tokens=tokens))
