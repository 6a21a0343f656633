"""The public API of `reasonry`: its names, each imported from its module."""

from ...blocks.short_strategy import ask as ask
from ...blocks.short_strategy import ask_all as ask_all
from ...blocks.short_strategy import strategy as strategy
from ...core.bodies import Conclusion as Conclusion
from ...core.bodies import Thought as Thought
from ...core.budget import Budget as Budget
from ...core.events import Usage as Usage
from ...core.strategy import Field as Field
from ...core.strategy import Stage as Stage
from ...core.strategy import Strategy as Strategy
from ...engine.policy import Policy as Policy
from ...engine.rate_limits import RateLimits as RateLimits
from ...engine.result import Result as Result
from ...engine.result import Termination as Termination
from ...errors import ReasonryError as ReasonryError
from ...errors import UsageError as UsageError
from ...errors import WorldError as WorldError
from ...strategies import STRATEGIES as STRATEGIES
from ...tools.verifiers import Retry as Retry
from ..sequential_thinking import loop_limit as loop_limit
from .solving import (
    Coaching as Coaching,
)
from .solving import (
    coach as coach,
    select as select,
)
from .solving import (
    solve as solve,
)
from .solving import (
    solve_sync as solve_sync,
)
from .streaming import stream as stream
from .tool import (
    clear_all_sessions as clear_all_sessions,
)
from .tool import (
    clear_session as clear_session,
)
from .tool import (
    get_session as get_session,
)
from .tool import (
    list_sessions as list_sessions,
)
from .tool import (
    thinking_tool as thinking_tool,
)
