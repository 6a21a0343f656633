"""Run a strategy by hand: your code passes answers in and gets questions out. There is no loop, clock or I/O here.

`begin` and `advance` return a `Step`, which has the new `Snapshot`, the effects to perform, the edges taken and the
thoughts to record. Your code performs each effect and passes its result to `advance`. `solve` does all of this for you,
with a model, a journal and a budget. No function here changes its arguments.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from .core import machine
from .core.codec import dump_snapshot, load_snapshot
from .core.effects import Ask as Ask, CallTool as CallTool, Effect as Effect, RunStrategy as RunStrategy
from .core.effects import Verify as Verify
from .core.events import Answered as Answered, Closing as Closing, Event as Event, Failed as Failed
from .core.events import Stopped as Stopped, ToolReturned as ToolReturned, Verified as Verified
from .core.machine import Step as Step
from .core.pending import Pending as Pending, Snapshot as Snapshot
from .core.options import read_options
from .core.problem import check_problem
from .core.registry import Registry, resolve
from .core.strategy import Strategy
from .errors import StoreError, UsageError
from .blocks.reply import read_reply
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
        strategy: A strategy, or the name or alias of a strategy in `strategies`.
        options: The strategy's options by name, as in `solve`.
        strategies: The registry that resolves the names of `strategy` and of inner strategies.

    Raises:
        UsageError: The problem is empty or not text, an option has an illegal value, or a name is unknown.
    """
    check_problem(problem)
    chosen = resolve(strategy, strategies) if isinstance(strategy, str) else strategy
    return machine.begin(chosen, problem, read_options(chosen, options or {}), strategies=strategies)


def advance(
    snapshot: Snapshot, effect_id: str | None, event: Event, *, strategies: Registry = STRATEGIES
) -> Step:
    """Apply the result of an effect, and run the strategy until the run waits again or ends.

    Args:
        effect_id: The id of the effect, from `wanted_effects`. None if the event is `Stopped` or `Closing`.
        event: `Answered` for an `Ask`, `Verified` for a `Verify`, `ToolReturned` for a `CallTool`, or `Failed` for any
            of them. The event's `at_ms` is the run time so far in milliseconds; some options limit the run time.

    Raises:
        ConflictError: The run has ended or does not wait for this effect, or the event does not fit the effect.
    """
    chosen = resolve(snapshot.strategy, strategies)
    return machine.advance(chosen, snapshot, effect_id, event, read=read_reply, strategies=strategies)


def wanted_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the effects that the run waits for, in order, each with an `id`. An ended run waits for none."""
    return machine.open_effects(snapshot)


def status(snapshot: Snapshot, *, strategies: Registry = STRATEGIES) -> str:
    """Return the phase of the run: `generating`, `evaluating` or `expanding`, and at the end `completed` or `error`.

    If the strategy has no phases, return the run's status: `active`, `done`, `failed` or `cancelled`.
    """
    strategy = resolve(snapshot.strategy, strategies)
    return strategy.phase(snapshot.stage, snapshot.status) or snapshot.status


def result(snapshot: Snapshot, *, strategies: Registry = STRATEGIES) -> dict[str, Any]:
    """Return the strategy's part of the result document, even before the run ends. See `docs/machine.md`."""
    ended = snapshot.conclusion
    return dict((ended or resolve(snapshot.strategy, strategies).conclude(snapshot.state)).document)


def to_map(snapshot: Snapshot) -> dict[str, Any]:
    """Return the snapshot as a dict of JSON data."""
    return msgspec.json.decode(dump_snapshot(snapshot))


def from_map(saved: Mapping[str, Any], *, strategies: Registry = STRATEGIES) -> Snapshot:
    """Restore a snapshot from a dict made by `to_map`. Unknown keys are ignored.

    Raises:
        UsageError: The dict is not from `to_map`, or its strategy is not among `strategies`.
    """
    try:
        return load_snapshot(msgspec.json.encode(saved), strategies)
    except StoreError as error:
        reason = error.message
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"this is no snapshot: {error}"
    raise UsageError(f"{reason}. `to_map` makes such a dict, `begin` a new run.", option="saved") from None
