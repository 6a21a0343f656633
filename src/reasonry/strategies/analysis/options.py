"""What a user may set of an analysis."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ...core.toolcard import ToolCard
from .focus import Focus, focus_of

MODES: dict[str, tuple[int, int]] = {
    "quick": (1, 2),
    "balanced": (2, 3),
    "thorough": (3, 4),
    "research": (4, 5),
}
"""Fewest and most iterations of each mode."""

Iterations = Annotated[int, Meta(ge=1, le=5)]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of an analysis."""

    mode: Annotated[
        Literal["quick", "balanced", "thorough", "research"],
        Meta(description="Presets the iterations: 1 to 2, 2 to 3, 3 to 4, 4 to 5."),
    ] = "quick"
    candidate_plans: Annotated[int, Meta(ge=1, le=5, description="Plans drafted side by side.")] = 3
    max_iterations: Annotated[
        Iterations | None, Meta(description="Iterations at most; none: as the mode has it, 2 in `quick`.")
    ] = None
    min_iterations: Annotated[
        Iterations | None, Meta(description="Iterations wanted; none: as the mode has it, 1 in `quick`.")
    ] = None
    enforce_iterations: Annotated[
        bool, Meta(description="Go on until min_iterations, whatever the decision.")
    ] = False
    execution_retry_limit: Annotated[
        int, Meta(ge=0, le=10, description="Further attempts at a task that failed, each shown the error.")
    ] = 1
    complexity_analysis: Annotated[bool, Meta(description="Size up the query before planning.")] = True
    focused_answer_type: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="none, number, yes/no, true/false, good/bad, high/low, accepted/rejected, "
            "yes/maybe/no, good/neutral/bad, high/medium/low, or `choice: A | B | …`.",
        ),
    ] = "none"
    concurrent_tasks: Annotated[
        bool, Meta(description="Carry out tasks that do not depend on one another side by side.")
    ] = False
    votes: Annotated[
        int, Meta(ge=1, le=15, description="Votes on each plan score and quality gate, an odd number.")
    ] = 1
    cost_limit: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="US dollars; what the end needs is kept back. Needs a model whose price is known."),
    ] = None
    image: Annotated[bool, Meta(description="Ask for the caption of an image.")] = False
    context: Annotated[
        str, Meta(max_length=400_000, description="What is to be taken into account besides the query.")
    ] = ""
    max_result_chars: Annotated[
        int, Meta(ge=100, description="How much of a task's result is shown to later questions.")
    ] = 8_000
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="Of all questions; none: the model's own."),
    ] = None
    verify: Annotated[
        bool,
        Meta(description="Have the run's verifier look at the answer: the focused value if there is one."),
    ] = False
    max_repairs: Annotated[
        int, Meta(ge=0, le=20, description="Further answers after one that the verifier proved wrong.")
    ] = 1
    tools: Annotated[
        tuple[ToolCard, ...], Meta(description="What tasks may use besides the built-in resources.")
    ] = ()

    def __post_init__(self) -> None:
        fewest, most = self.iterations
        if fewest > most:
            raise ValueError(f"min_iterations ({fewest}) is over max_iterations ({most})")
        if self.votes % 2 == 0:
            raise ValueError(f"votes must be an odd number, got {self.votes}")
        focus_of(self.focused_answer_type)

    @property
    def iterations(self) -> tuple[int, int]:
        """Fewest and most iterations: what was given, else what the mode has."""
        fewest, most = MODES[self.mode]
        most = most if self.max_iterations is None else self.max_iterations
        return min(fewest, most) if self.min_iterations is None else self.min_iterations, most

    @property
    def focus(self) -> Focus | None:
        """The focused answer that is wanted."""
        return focus_of(self.focused_answer_type)
