"""The table of tree of thoughts: its stages, its edges, and what a guided thinker is told at each."""

from __future__ import annotations

from ...core.strategy import Field, Stage, Strategy
from .conclude import ask_for_answer, decide, justify, read_answer, select, take_answer
from .options import Options
from .prompts import Formulated, Proposals, Scores
from .propose import ask_for_thoughts, begin, open_branch, read_thoughts, receive, take_approaches, take_steps
from .state import State
from .value import ask_for_scores, read_scores, take_scores
from .views import outcome, progress

TREE_OF_THOUGHTS: Strategy[State, Options] = Strategy(
    name="tree_of_thoughts",
    title="Tree of Thoughts",
    source="arXiv:2305.10601",
    summary="Tries several steps at every point, values them and follows the best: for puzzles and plans.",
    aliases=("tot",),
    options=Options,
    state=State,
    begin=begin,
    outcome=outcome,
    progress=progress,
    suits=("number_puzzle", "search"),
    stages=(
        Stage(
            "problem_reception",
            ("approach_exploration",),
            description="Take in the problem.",
            guidance="Say what is asked, what is given and how a solution would be recognised.",
            absorb=receive,
        ),
        Stage(
            "approach_exploration",
            ("branch_creation",),
            description="Find several different first steps.",
            guidance="Propose first steps that differ in kind, not in wording. Judge none of them yet.",
            fields=(
                Field(
                    "approaches",
                    {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "One line for each approach.",
                    },
                    required=False,
                ),
            ),
            ask=ask_for_thoughts,
            absorb=take_approaches,
            reply=Proposals,
            example={"thoughts": ["Add the two largest numbers.", "Divide first."]},
            read=read_thoughts,
            value=list[str],
            hears_failures=True,
        ),
        Stage(
            "branch_creation",
            ("branch_development",),
            description="Open a branch for an approach.",
            guidance="Name the approach this branch follows, and give the branch an id.",
            absorb=open_branch,
        ),
        Stage(
            "branch_development",
            ("branch_evaluation",),
            description="Take the branch one step further.",
            guidance="Work out the next step on this branch, and on this one only. "
            "Stay for another candidate of the same step; go on when they can be valued.",
            ask=ask_for_thoughts,
            absorb=take_steps,
            reply=Proposals,
            example={"thoughts": ["Multiply what is left.", "Subtract 4 from 28."]},
            read=read_thoughts,
            value=list[str],
            hears_failures=True,
        ),
        Stage(
            "branch_evaluation",
            ("branch_selection",),
            description="Value how promising the branch is.",
            guidance="Say whether a solution can still be reached from here, and how surely: "
            "0 is impossible, 1 is solved.",
            fields=(
                Field(
                    "score",
                    {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 1,
                        "description": "How promising: 0 is impossible, 1 is solved.",
                    },
                ),
            ),
            ask=ask_for_scores,
            absorb=take_scores,
            reply=Scores,
            example={"scores": {"1": 0.7, "2": 0.2}},
            read=read_scores,
            value=list[float],
            hears_failures=True,
        ),
        Stage(
            "branch_selection",
            ("continuation_decision",),
            description="Choose the branch to follow.",
            guidance="Compare the scores of all open branches, earlier ones too, and name the one to follow.",
            fields=(
                Field(
                    "selected",
                    {"type": "string", "description": "The branch that is followed from here."},
                    required=False,
                ),
            ),
            absorb=select,
        ),
        Stage(
            "continuation_decision",
            ("branch_development", "branch_creation", "solution_formulation"),
            description="Go deeper, open another branch, or conclude.",
            guidance="Develop the chosen branch while it gains; open another when it stalls; "
            "conclude when a branch solves the problem or nothing promising is left.",
            absorb=decide,
        ),
        Stage(
            "solution_formulation",
            ("path_justification",),
            description="Write the answer from the best branch.",
            guidance="Follow the best branch from its first step and state what it arrives at.",
            ask=ask_for_answer,
            absorb=take_answer,
            reply=Formulated,
            example={"answer": "(10 - 4) * (13 - 9)"},
            read=read_answer,
            value=str | None,
        ),
        Stage(
            "path_justification",
            ("final_response",),
            description="Say why this branch was the best.",
            guidance="Set its scores beside those of the branches that were dropped.",
            absorb=justify,
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
