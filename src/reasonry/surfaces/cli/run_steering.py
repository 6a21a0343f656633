"""`reasonry runs pause` and `reasonry runs limit`: a run that is at work, in whatever process, is steered."""

from __future__ import annotations

from typing import Any

import msgspec

from ...app.wiring import App
from ...core.budget import Budget
from ...errors import UsageError
from .candidates import RunId
from .output import print_document, print_line
from .settings import Common, Limits, run_async, with_run


def pause_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """Have a run begin nothing new; what it has asked comes in, then it stands still until it is resumed.

    It may be driven by any process on this store, which heeds it within a second.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    """

    async def work(app: App, run_id: str) -> str:
        await app.pause(run_id)
        return run_id

    paused = run_async(with_run(common.app(), run_id, work))
    if common.json:
        print_document({"run_id": paused, "paused": True})
    else:
        print_line(f"paused; go on with it with: reasonry runs resume {paused}")
    return 0


def limit_(run_id: RunId, /, *, limits: Limits = Limits(), common: Common = Common()) -> int:
    """Raise or lower limits of a run that has not ended; those that are not named stay. What is spent counts.

    It may be driven by any process on this store, which heeds it within a second.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    """
    named = limits.budget()
    if named is None:
        raise UsageError(
            "name a limit: --max-calls, --max-tokens, --max-usd, --max-seconds, …", option="budget"
        )

    async def work(app: App, run_id: str) -> tuple[str, Budget]:
        recorded = await app.engine.recorded_run(run_id)
        budget = msgspec.convert({**_limits_in(recorded.budget), **_limits_in(named)}, Budget)
        await app.set_budget(run_id, budget)
        return run_id, budget

    limited, budget = run_async(with_run(common.app(), run_id, work))
    if common.json:
        print_document({"run_id": limited, "budget": _limits_in(budget)})
    else:
        shown = ", ".join(f"{value:g} {name}" for name, value in _limits_in(budget).items())
        print_line(f"the limits of {limited} are now: {shown}")
    return 0


def _limits_in(budget: Budget) -> dict[str, Any]:
    """Return the limits that are set."""
    return msgspec.to_builtins(budget)
