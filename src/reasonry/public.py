"""What `reasonry` itself has: the names of its public API, each imported from where it is defined."""

from .core.exports import *
from .engine.policy import Policy as Policy, RateLimits as RateLimits
from .engine.result import Result as Result, Termination as Termination
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
