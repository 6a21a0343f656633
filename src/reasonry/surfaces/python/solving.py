"""`reasonry.solve`: the Python face of a driven run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...app import DEFAULT_STRATEGY, App, Team
from ...core.budget import Budget
from ...core.strategy import Strategy
from ...runtime.observe import Observer
from ...runtime.policy import Policy
from ...runtime.ports import Model, Store, Verifier
from ...runtime.result import Result


async def solve(
    problem: str,
    *,
    strategy: str | Strategy[Any, Any] = DEFAULT_STRATEGY,
    model: str | Model | None = None,
    options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    store: str | Store | None = None,
    judge_model: str | Model | None = None,
    verifier: str | Verifier | Callable[..., Any] | None = None,
    tools: Sequence[Any] = (),
    max_concurrency: int = 8,
    observer: Observer | None = None,
) -> Result:
    """Solve a problem and return what came of it.

    Args:
        strategy: A name of the registry, or a strategy of your own.
        model: What `--model` takes, or an object of the `Model` port; None: what the environment offers.
        options: Options of the strategy, by name.
        budget: Hard limits; a run that meets one ends with the best so far.
        store: What `--store` takes, or a store; None: `REASONRY_STORE`, else the user's data folder.
        verifier: What `--verifier` takes, or a callable `(problem, path) -> bool | None`.
        tools: Python callables, or objects of the `Tool` port.
        observer: Told what happens, as it happens.

    Raises:
        UsageError: Something about the call is wrong; nothing was written or paid.
        StoreError: The store cannot be used.
    """
    team = Team(model=model, judge_model=judge_model, verifier=verifier, tools=tools)
    async with App(store, Policy(max_concurrency=max_concurrency)) as app:
        order, who = app.order(problem, strategy, options or {}, budget or Budget(), team)
        return await app.solve(order, who, observer)


def solve_sync(problem: str, **arguments: Any) -> Result:
    """Call `solve` where there is no event loop; takes the same arguments. The one synchronous door."""
    return asyncio.run(solve(problem, **arguments))
