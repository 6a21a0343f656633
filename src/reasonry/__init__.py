"""Reasonry: the reasoning strategies of the literature as durable, inspectable state machines.

    result = await reasonry.solve("Use 4, 9, 10 and 13 to make 24", strategy="tree_of_thoughts", model="offline")

Names are imported when they are first used, so that `import reasonry` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ext, machine
    from .core.bodies import Conclusion, Thought
    from .core.budget import Budget, Usage
    from .core.loop import ask, ask_all, strategy
    from .core.strategy import Field, Stage, Strategy
    from .engine.policy import Policy, RateLimits
    from .engine.result import Result, Termination
    from .errors import ReasonryError, UsageError, WorldError
    from .strategies import STRATEGIES
    from .surfaces.python.solving import Coaching, coach, solve, solve_sync
    from .surfaces.python.streaming import stream
    from .surfaces.python.tool import (
        clear_all_sessions,
        clear_session,
        get_session,
        list_sessions,
        thinking_tool,
    )
    from .surfaces.thinking import loop_limit
    from .tools.verifiers import Retry

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

__all__ = [
    "STRATEGIES",
    "Budget",
    "Coaching",
    "Conclusion",
    "Field",
    "Policy",
    "RateLimits",
    "ReasonryError",
    "Result",
    "Retry",
    "Stage",
    "Strategy",
    "Termination",
    "Thought",
    "Usage",
    "UsageError",
    "WorldError",
    "ask",
    "ask_all",
    "clear_all_sessions",
    "clear_session",
    "coach",
    "ext",
    "get_session",
    "list_sessions",
    "loop_limit",
    "machine",
    "solve",
    "solve_sync",
    "strategy",
    "stream",
    "thinking_tool",
]


def __getattr__(name: str) -> Any:
    if name in ("ext", "machine"):
        return import_module(f".{name}", __name__)
    for place, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f".{place}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
