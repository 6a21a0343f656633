"""The registry of all strategies. To add a strategy, write its module, import it here, and add an entry to `_ALL`.

Only this file and a strategy's own file mention the name of the strategy. Other modules use the constants below. `auto`
chooses a strategy by the kind of problem (see `choice`). `app.installed` adds the strategies of installed packages.
"""

from collections.abc import Mapping
from typing import Any

from ..core.registry import Registry
from ..core.strategy import Strategy
from .analysis import ANALYSIS
from .best_of_n import BEST_OF_N
from .cascade import CASCADE
from .chain_of_thought import CHAIN_OF_THOUGHT
from .choice import AUTO
from .council import COUNCIL
from .direct import DIRECT
from .linear import LINEAR
from .planned_thinking import PLANNED_THINKING
from .profiles import PROFILES
from .program_of_thought import PROGRAM_OF_THOUGHT
from .prove_and_refute import PROVE_AND_REFUTE
from .react import REACT
from .recursive import RECURSIVE
from .refine import REFINE
from .rewoo import REWOO
from .scratchpad import SCRATCHPAD
from .self_ask import SELF_ASK
from .self_consistency import SELF_CONSISTENCY
from .step_back import STEP_BACK
from .tree_of_thoughts import TREE_OF_THOUGHTS

_ALL: tuple[Strategy[Any, Any], ...] = (
    LINEAR,
    DIRECT,
    CHAIN_OF_THOUGHT,
    PLANNED_THINKING,
    REACT,
    REWOO,
    SCRATCHPAD,
    SELF_ASK,
    SELF_CONSISTENCY,
    STEP_BACK,
    TREE_OF_THOUGHTS,
    ANALYSIS,
    BEST_OF_N,
    REFINE,
    PROGRAM_OF_THOUGHT,
    COUNCIL,
    CASCADE,
    *PROFILES,
    PROVE_AND_REFUTE,
    RECURSIVE,
)

STRATEGIES: Registry = {strategy.name: strategy for strategy in _ALL}
"""All strategies by canonical name. The first strategy is the default for a session."""

DEFAULT_STRATEGY = AUTO
"""The default strategy of a run."""

REFUTER = PROVE_AND_REFUTE.name
"""The strategy in which fresh readers test the claims of thoughts."""
SELECTOR = BEST_OF_N.name
"""The strategy that compares texts from the caller."""

INQUIRER = ANALYSIS.name
"""The strategy whose plans can ask the user a question."""

BASE = DIRECT.name
"""The strategy that sends only the problem. A comparison measures the gains of other strategies against this one."""

SHORT_ANSWER = (SELF_CONSISTENCY.name, {"samples": 1})
"""The strategy and options for a single question with a short answer, such as a verdict."""

COMPARED: Mapping[str, str] = {
    "answer": f"{BASE},{CHAIN_OF_THOUGHT.name},{SELF_CONSISTENCY.name},{BEST_OF_N.name}",
    "search": f"{TREE_OF_THOUGHTS.name},{SELF_CONSISTENCY.name}",
    "tools": f"{REACT.name},{REWOO.name},{SELF_ASK.name}",
}
"""Maps each kind of problem to the strategies that a comparison of such problems runs by default."""
