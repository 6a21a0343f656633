"""What `reasonry` itself has: the names of its public API, each imported from where it is defined."""

from .blocks.loop import ask as ask, ask_all as ask_all, strategy as strategy
from .core.bodies import Conclusion as Conclusion, Thought as Thought
from .core.budget import Budget as Budget, Usage as Usage
from .core.strategy import Field as Field, Stage as Stage, Strategy as Strategy
from .engine.policy import Policy as Policy, RateLimits as RateLimits
from .engine.result import Result as Result, Termination as Termination
from .strategies import STRATEGIES as STRATEGIES
from .surfaces.python.solving import (
    Coaching as Coaching,
    coach as coach,
    select as select,
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
from .errors import ReasonryError as ReasonryError, UsageError as UsageError, WorldError as WorldError
from .surfaces.sequential_thinking import loop_limit as loop_limit
from .tools.verifiers import Retry as Retry
