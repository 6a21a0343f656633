"""The names of the public API of `reasonry`, each imported from the module that defines it."""

from ...blocks.short_strategy import ask as ask, ask_all as ask_all, strategy as strategy
from ...core.bodies import Conclusion as Conclusion, Thought as Thought
from ...core.budget import Budget as Budget
from ...core.events import Usage as Usage
from ...core.strategy import Field as Field, Stage as Stage, Strategy as Strategy
from ...engine.policy import Policy as Policy
from ...engine.rate_limits import RateLimits as RateLimits
from ...engine.result import Result as Result, Termination as Termination
from ...errors import ReasonryError as ReasonryError, UsageError as UsageError, WorldError as WorldError
from ...strategies import STRATEGIES as STRATEGIES
from ..sequential_thinking import loop_limit as loop_limit
from .solving import Coaching as Coaching, coach as coach, select as select, solve as solve
from .solving import solve_sync as solve_sync
from .streaming import stream as stream
from .tool import clear_all_sessions as clear_all_sessions, clear_session as clear_session
from .tool import get_session as get_session, list_sessions as list_sessions, thinking_tool as thinking_tool
