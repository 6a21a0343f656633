"""A strategy by hand: answers in, questions out, with no loop, no clock and no I/O.

`begin` and `advance` return a `Step`: the new `Snapshot`, the effects that are wanted now, the edges taken and the
thoughts recorded. The caller performs the effects and says what came of each. `solve` does the same with a
model, a journal and a budget around it.
Nothing here changes what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .core import machine
from .core.codec import dump_snapshot, load_snapshot
from .core.effects import (
    Ask as Ask,
    CallTool as CallTool,
    Effect as Effect,
    RunStrategy as RunStrategy,
    Verify as Verify,
)
from .core.events import (
    Answered as Answered,
    Event as Event,
    Failed as Failed,
    Stopped as Stopped,
    ToolReturned as ToolReturned,
    Verified as Verified,
)
from .core.machine import Step as Step
from .core.pending import Pending as Pending, Snapshot as Snapshot
from .core.options import read_options
from .core.problem import check_problem
from .core.registry import Registry, resolve
from .core.strategy import Strategy
from .errors import StoreError, UsageError
from .reading.reply import read_reply
from .strategies import STRATEGIES
from .strategies.tree_of_thoughts import TREE_OF_THOUGHTS


def begin(
    problem: str,
    strategy: str | Strategy[Any, Any] = TREE_OF_THOUGHTS,
    options: Mapping[str, Any] | None = None,
    *,
    strategies: Registry = STRATEGIES,
) -> Step:
    """Begin a run.

    Args:
        problem: What is to be solved.
        strategy: A name or alias, or a strategy of your own.
        options: The strategy's options by name, as `solve` takes them.
        strategies: Where strategies that this one runs are looked up.

    Raises:
        UsageError: The problem is empty or no text, or there is no such strategy or option, or its value is illegal.
    """
    check_problem(problem)
    chosen = resolve(strategy, strategies) if isinstance(strategy, str) else strategy
    return machine.begin(chosen, problem, read_options(chosen, options or {}), strategies=strategies)


def advance(
    snapshot: Snapshot, effect_id: str | None, event: Event, *, strategies: Registry = STRATEGIES
) -> Step:
    """Take what came of one effect, and go as far as it leads.

    Args:
        effect_id: Which effect, as `wanted_effects` has it; None for `Stopped`.
        event: `Answered` for an `Ask`, `Verified` for a `Verify`, `ToolReturned` for a `CallTool`, or `Failed`.
            Its `at_ms` is the run time, for the options that limit it.

    Raises:
        ConflictError: The run has ended, or waits for no such effect, or the event does not fit it.
    """
    chosen = resolve(snapshot.strategy, strategies)
    return machine.advance(chosen, snapshot, effect_id, event, read=read_reply, strategies=strategies)


def wanted_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the effects that the run waits for, each with its `id`, in the order asked; none once it has ended."""
    return machine.open_effects(snapshot)


def status(snapshot: Snapshot, *, strategies: Registry = STRATEGIES) -> str:
    """Return what the run does: `generating`, `evaluating` or `expanding`, then `completed` or `error`.

    For a strategy without such phases it is the run's own status: `active`, `done`, `failed` or `cancelled`.
    """
    strategy = resolve(snapshot.strategy, strategies)
    return strategy.phase(snapshot.stage, snapshot.status) or snapshot.status


def result(snapshot: Snapshot, *, strategies: Registry = STRATEGIES) -> dict[str, Any]:
    """Return the strategy's part of the result document as the run stands; `docs/machine.md` lists its members."""
    ended = snapshot.conclusion
    return dict((ended or resolve(snapshot.strategy, strategies).conclude(snapshot.state)).document)


def to_map(snapshot: Snapshot) -> dict[str, Any]:
    """Return the snapshot as a dict of JSON data, to be kept anywhere."""
    return msgspec.json.decode(dump_snapshot(snapshot))


def from_map(saved: Mapping[str, Any], *, strategies: Registry = STRATEGIES) -> Snapshot:
    """Return the snapshot that `to_map` made a dict of; keys that are not known are passed over.

    Raises:
        UsageError: It is no such dict, a newer version made it, or its strategy is not among `strategies`.
    """
    try:
        return load_snapshot(msgspec.json.encode(saved), strategies)
    except StoreError as error:
        reason = error.message
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"this is no snapshot: {error}"
    raise UsageError(f"{reason}. `to_map` makes such a dict, `begin` a new run.", option="saved") from None
