"""The table of linear thinking."""

from __future__ import annotations

from ...core.answering import AnswerReply
from ...core.closing import settle
from ...core.strategy import Field, Stage, Strategy, go
from .pairs import (
    State,
    adjust,
    ask_decision,
    ask_revision,
    ask_solution,
    ask_test,
    ask_thought,
    asks,
    decide,
    keep_evaluation,
    keep_hypothesis,
    keep_plan,
    keep_revision,
    keep_test,
    keep_thought,
    open_branch,
    outcome,
    progress,
    read_decision,
    read_evaluation,
)
from .questions import (
    EVALUATE,
    HYPOTHESIZE,
    PLAN,
    Approach,
    Decision,
    Evaluation,
    Hypothesis,
    OneThought,
    Options,
    Trial,
)

_SOUND = {"type": "boolean", "description": "Whether the latest thought holds."}
_HYPOTHESIS = {"type": "string", "minLength": 1, "description": "The proposed solution, in one sentence."}
_HOLDS = {"type": "boolean", "description": "Whether the hypothesis agrees with every thought."}

LINEAR: Strategy[State, Options] = Strategy(
    name="linear",
    title="Linear thinking",
    source="seed 000, Base Sequential",
    summary="Thinks step by step with revisions, branches and a tested hypothesis: for any problem.",
    aliases=("base_sequential", "sequential"),
    options=Options,
    state=State,
    begin=lambda problem, options: State(problem, options),
    outcome=outcome,
    progress=progress,
    stages=(
        Stage(
            "problem_reception",
            ("initial_thought_planning",),
            description="Take in the problem.",
            guidance="Say in your own words what is asked and what is given.",
            absorb=lambda state, _: go(state, "initial_thought_planning"),
        ),
        Stage(
            "initial_thought_planning",
            ("thought_generation",),
            description="Estimate how to go about it, and in how many thoughts.",
            guidance="Name the approach and estimate how many thoughts it takes; both may change later.",
            ask=asks("plan", PLAN),
            absorb=keep_plan,
            reply=Approach,
            example={"approach": "Work backwards from 24.", "totalThoughts": 4},
        ),
        Stage(
            "thought_generation",
            ("thought_evaluation",),
            description="Think one thought.",
            guidance="Take one step: an analysis, a realisation, a question, a result. "
            "Go on to look at it critically before the next.",
            ask=ask_thought,
            absorb=keep_thought,
            reply=OneThought,
            example={"thought": "24 is 4 * 6, so 6 has to come from the other numbers."},
        ),
        Stage(
            "thought_evaluation",
            ("thought_revision", "continuation_decision"),
            description="Look at the latest thought critically.",
            guidance="Check it against the problem and the thoughts before it. If it, or one it rests on, is "
            "wrong, revise that one; otherwise decide how to go on.",
            fields=(Field("sound", _SOUND, required=False),),
            ask=asks("evaluate", EVALUATE),
            absorb=keep_evaluation,
            reply=Evaluation,
            example={"sound": True, "reason": "4 * 6 is 24.", "then": {"next": "hypothesis_generation"}},
            read=read_evaluation,
        ),
        Stage(
            "thought_revision",
            ("continuation_decision",),
            description="Put a wrong thought right.",
            guidance="Say which thought is replaced and by what; leave the others as they are.",
            ask=ask_revision,
            absorb=keep_revision,
            reply=OneThought,
            example={"thought": "24 is 3 * 8, too, so 8 would do as well."},
        ),
        Stage(
            "continuation_decision",
            ("thought_adjustment", "branch_creation", "hypothesis_generation"),
            description="Decide how to go on.",
            guidance="With more to think, adjust the number of thoughts; with another way worth trying, open "
            "a branch; with a solution in sight, state it as a hypothesis.",
            ask=ask_decision,
            absorb=decide,
            reply=Decision,
            example={"next": "thought_adjustment", "reason": "One step is missing.", "totalThoughts": 5},
            read=read_decision,
        ),
        Stage(
            "thought_adjustment",
            ("thought_generation",),
            description="Change how many thoughts are expected.",
            guidance="Say how many thoughts are still needed and what for; then think the next one.",
            absorb=adjust,
        ),
        Stage(
            "branch_creation",
            ("thought_generation",),
            description="Open another line of thought.",
            guidance="Name the thought the branch leaves from and what it does differently.",
            absorb=open_branch,
        ),
        Stage(
            "hypothesis_generation",
            ("hypothesis_verification",),
            description="State a solution as a hypothesis.",
            guidance="Commit to one solution that could turn out wrong, and say what it rests on.",
            fields=(Field("hypothesis", _HYPOTHESIS),),
            ask=asks("hypothesize", HYPOTHESIZE),
            absorb=keep_hypothesis,
            reply=Hypothesis,
            example={"hypothesis": "4 * (7 - 1) * 1 makes 24."},
        ),
        Stage(
            "hypothesis_verification",
            ("solution_finalization", "continuation_decision"),
            description="Test the hypothesis.",
            guidance="Try to refute it with the thoughts so far and with the problem itself. If it holds, "
            "finalize it; otherwise say why not and decide how to go on.",
            fields=(Field("holds", _HOLDS, required=False),),
            ask=ask_test,
            absorb=keep_test,
            reply=Trial,
            example={"holds": True, "reason": "It uses each number once and makes 24."},
        ),
        Stage(
            "solution_finalization",
            ("final_response",),
            description="Turn the hypothesis that held into the solution.",
            guidance="Write the solution in the form that was asked for; check that nothing is missing.",
            ask=ask_solution,
            absorb=settle,
            reply=AnswerReply,
            example={"answer": "4 * (7 - 1) * 1"},
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
