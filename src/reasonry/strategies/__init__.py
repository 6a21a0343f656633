"""The registry of all strategies. To add a strategy, add its file, an import and a line here.

Only this file and a strategy's own file name the strategy. `auto` chooses by the kinds of problem that strategies suit
(see `choice`), and other modules use the constants below. `installed` adds the strategies of other packages.
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
"""All strategies by canonical name. The first is the default of a session."""

DEFAULT_STRATEGY = AUTO
"""The default strategy of a run."""

REFUTER = PROVE_AND_REFUTE.name
"""The strategy that has fresh readers test thoughts."""
SELECTOR = BEST_OF_N.name
"""The strategy that compares given texts."""

INQUIRER = ANALYSIS.name
"""The strategy whose plans can ask the user a question."""

BASE = DIRECT.name
"""The strategy that sends only the problem. Comparisons count the gains of other strategies against it."""

SHORT_ANSWER = (SELF_CONSISTENCY.name, {"samples": 1})
"""The strategy and options for a single question with a short answer, such as a verdict."""

COMPARED: Mapping[str, str] = {
    "answer": f"{BASE},{CHAIN_OF_THOUGHT.name},{SELF_CONSISTENCY.name},{BEST_OF_N.name}",
    "search": f"{TREE_OF_THOUGHTS.name},{SELF_CONSISTENCY.name}",
    "tools": f"{REACT.name},{REWOO.name},{SELF_ASK.name}",
}
"""The default strategies of a comparison, by the kind of its problems."""
