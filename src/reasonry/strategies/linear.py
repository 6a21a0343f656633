"""Linear thinking: one thought after the other, each looked at, with room to revise, branch and test a guess.

Seed 000, "Base Sequential"; the guided form is that of the sequential-thinking tool.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

_SOUND = {"type": "boolean", "description": "Whether the latest thought holds."}
_HYPOTHESIS = {"type": "string", "minLength": 1, "description": "The proposed solution, in one sentence."}
_HOLDS = {"type": "boolean", "description": "Whether the hypothesis agrees with every thought."}

LINEAR: Strategy[Any, Any] = Strategy(
    name="linear",
    title="Linear thinking",
    source="seed 000, Base Sequential",
    summary="Thinks step by step with revisions, branches and a tested hypothesis: for any problem.",
    aliases=("base_sequential", "sequential"),
    stages=(
        Stage(
            "problem_reception",
            ("initial_thought_planning",),
            description="Take in the problem.",
            guidance="Say in your own words what is asked and what is given.",
        ),
        Stage(
            "initial_thought_planning",
            ("thought_generation",),
            description="Estimate how to go about it, and in how many thoughts.",
            guidance="Name the approach and estimate how many thoughts it takes; both may change later.",
        ),
        Stage(
            "thought_generation",
            ("thought_evaluation",),
            description="Think one thought.",
            guidance="Take one step: an analysis, a realisation, a question, a result. "
            "Go on to look at it critically before the next.",
        ),
        Stage(
            "thought_evaluation",
            ("thought_revision", "continuation_decision"),
            description="Look at the latest thought critically.",
            guidance="Check it against the problem and the thoughts before it. If it, or one it rests on, is "
            "wrong, revise that one; otherwise decide how to go on.",
            fields=(Field("sound", _SOUND, required=False),),
        ),
        Stage(
            "thought_revision",
            ("continuation_decision",),
            description="Put a wrong thought right.",
            guidance="Say which thought is replaced and by what; leave the others as they are.",
        ),
        Stage(
            "continuation_decision",
            ("thought_adjustment", "branch_creation", "hypothesis_generation"),
            description="Decide how to go on.",
            guidance="With more to think, adjust the number of thoughts; with another way worth trying, open "
            "a branch; with a solution in sight, state it as a hypothesis.",
        ),
        Stage(
            "thought_adjustment",
            ("thought_generation",),
            description="Change how many thoughts are expected.",
            guidance="Say how many thoughts are still needed and what for; then think the next one.",
        ),
        Stage(
            "branch_creation",
            ("thought_generation",),
            description="Open another line of thought.",
            guidance="Name the thought the branch leaves from and what it does differently.",
        ),
        Stage(
            "hypothesis_generation",
            ("hypothesis_verification",),
            description="State a solution as a hypothesis.",
            guidance="Commit to one solution that could turn out wrong, and say what it rests on.",
            fields=(Field("hypothesis", _HYPOTHESIS),),
        ),
        Stage(
            "hypothesis_verification",
            ("solution_finalization", "continuation_decision"),
            description="Test the hypothesis.",
            guidance="Try to refute it with the thoughts so far and with the problem itself. If it holds, "
            "finalize it; otherwise say why not and decide how to go on.",
            fields=(Field("holds", _HOLDS, required=False),),
        ),
        Stage(
            "solution_finalization",
            ("final_response",),
            description="Turn the hypothesis that held into the solution.",
            guidance="Write the solution in the form that was asked for; check that nothing is missing.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
