"""The registry: every strategy there is. Adding one is adding its file, an import and a line here.

Nothing outside this file and a strategy's own names it: `auto` chooses by what each strategy says it suits (`choice`),
and whoever needs a certain one takes it from the names below. `installed` adds the strategies of other packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.registry import Registry
from ..core.strategy import Strategy
from .analysis import ANALYSIS
from .best_of_n import BEST_OF_N
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
    *PROFILES,
    PROVE_AND_REFUTE,
    RECURSIVE,
)

STRATEGIES: Registry = {strategy.name: strategy for strategy in _ALL}
"""By canonical name. The first is what a session thinks by where no strategy is named."""

DEFAULT_STRATEGY = AUTO
"""The strategy of a run for which none is named."""

REFUTER = PROVE_AND_REFUTE.name
"""The strategy that has other eyes look at what was thought."""

INQUIRER = ANALYSIS.name
"""The strategy whose plans may have the user answer a question."""

SHORT_ANSWER = (SELF_CONSISTENCY.name, {"samples": 1})
"""The strategy, and its options, that asks one question for one short answer, such as a verdict."""


COMPARED: Mapping[str, str] = {
    "answer": f"{CHAIN_OF_THOUGHT.name},{SELF_CONSISTENCY.name},{BEST_OF_N.name}",
    "search": f"{TREE_OF_THOUGHTS.name},{SELF_CONSISTENCY.name}",
    "tools": f"{REACT.name},{REWOO.name},{SELF_ASK.name}",
}
"""The strategies that are compared where none is named, by what the problems need."""
