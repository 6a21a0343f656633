"""Reasonry: the reasoning strategies of the literature as durable, inspectable state machines.

    result = await reasonry.solve("Use 4, 9, 10 and 13 to make 24", strategy="tree_of_thoughts", model="offline")

Names are imported when they are first used, so that `import reasonry` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ext as ext, machine as machine
    from .core.bodies import Conclusion as Conclusion, Thought as Thought
    from .core.budget import Budget as Budget, Usage as Usage
    from .core.loop import ask as ask, ask_all as ask_all, strategy as strategy
    from .core.strategy import Field as Field, Stage as Stage, Strategy as Strategy
    from .engine.policy import Policy as Policy, RateLimits as RateLimits
    from .engine.result import Result as Result, Termination as Termination
    from .errors import ReasonryError as ReasonryError, UsageError as UsageError, WorldError as WorldError
    from .strategies import STRATEGIES as STRATEGIES
    from .surfaces.python.solving import (
        Coaching as Coaching,
        coach as coach,
        solve as solve,
        solve_sync as solve_sync,
    )
    from .surfaces.python.streaming import stream as stream
    from .surfaces.python.tool import (
        clear_all_sessions as clear_all_sessions,
        clear_session as clear_session,
        get_session as get_session,
        list_sessions as list_sessions,
        thinking_tool as thinking_tool,
    )
    from .surfaces.thinking import loop_limit as loop_limit
    from .tools.verifiers import Retry as Retry

_NAMES = {
    "core.budget": ("Budget", "Usage"),
    "core.loop": ("ask", "ask_all", "strategy"),
    "core.bodies": ("Conclusion", "Thought"),
    "core.strategy": ("Field", "Stage", "Strategy"),
    "engine.policy": ("Policy", "RateLimits"),
    "engine.result": ("Result", "Termination"),
    "errors": ("ReasonryError", "UsageError", "WorldError"),
    "strategies": ("STRATEGIES",),
    "surfaces.python.solving": ("Coaching", "coach", "solve", "solve_sync"),
    "surfaces.python.streaming": ("stream",),
    "surfaces.python.tool": (
        "clear_all_sessions",
        "clear_session",
        "get_session",
        "list_sessions",
        "thinking_tool",
    ),
    "surfaces.thinking": ("loop_limit",),
    "tools.verifiers": ("Retry",),
}

__all__ = ["ext", "machine", *(name for names in _NAMES.values() for name in names)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in ("ext", "machine"):
        return import_module(f".{name}", __name__)
    for place, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f".{place}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
