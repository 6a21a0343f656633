"""What linear thinking asks, the forms of the replies, and its options."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

SYSTEM = """You think a problem through in numbered thoughts, one at a time. A thought is one step: an analysis, a \
realisation, a question, a result. Earlier thoughts are shown to you; some may be wrong, and may be replaced. You are \
told at the end what to do now. Reply with one JSON object of the form given there, and nothing else."""

PLAN = """Now plan: the approach, and about how many thoughts it will take.
{"approach": "…", "totalThoughts": number}"""
THINK = """Now think the next thought, number {number} of about {total}.
{{"thought": "…"}}"""
DECISION = """{"next": "thought_adjustment" to think on | "branch_creation" to try another way | \
"hypothesis_generation" to propose a solution, "reason": "…", "totalThoughts": how many it will be in all, or null, \
"branchFromThought": with branch_creation: the number of the thought the other way leaves}"""
EVALUATE = f"""Now look at the latest thought critically. If it, or one it rests on, is wrong, name the thought to \
replace; otherwise say how to go on.
{{"sound": true or false, "reason": "…", "revisesThought": number or null, "then": null or {DECISION}}}"""
REVISE = """Now replace thought {number}: write it as it should have been.
{{"thought": "…"}}"""
DECIDE = f"""Now decide how to go on.
{DECISION}"""
HYPOTHESIZE = """Now propose a solution as a hypothesis: one statement that could turn out wrong.
{"hypothesis": "…"}"""
TEST = """Now try to refute the hypothesis, with the thoughts so far and with the problem itself.
{"holds": true or false, "reason": "how it was tested, or what refutes it"}"""
FINALIZE = """Now write the solution. Give the answer alone, in the form the problem asks for.
{"answer": "…"}"""

Next = Literal["thought_adjustment", "branch_creation", "hypothesis_generation"]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of linear thinking."""

    max_thoughts: Annotated[
        int, Meta(ge=1, le=1000, description="Thoughts before a solution is proposed.")
    ] = 12
    max_hypotheses: Annotated[
        int, Meta(ge=1, le=100, description="Hypotheses before one is settled for.")
    ] = 3
    max_repairs: Annotated[int, Meta(ge=0, le=20, description="Answers after one proved wrong.")] = 1
    verify: Annotated[bool, Meta(description="Have the run's verifier look at the answer.")] = False


class Approach(Struct, frozen=True, rename="camel"):
    """How to go about it."""

    approach: Annotated[str, Meta(min_length=1, description="The approach.")]
    total_thoughts: Annotated[int, Meta(ge=1, description="About how many thoughts it will take.")]


class OneThought(Struct, frozen=True):
    """A thought."""

    thought: Annotated[str, Meta(min_length=1, description="The thought.")]


class Decision(Struct, frozen=True, rename="camel"):
    """How to go on."""

    next: Next
    reason: Annotated[str, Meta(description="Why.")] = ""
    total_thoughts: Annotated[int | None, Meta(description="How many thoughts it will be in all.")] = None
    branch_from_thought: Annotated[int | None, Meta(description="The thought a branch leaves.")] = None


class Evaluation(Struct, frozen=True, rename="camel"):
    """Whether a thought holds."""

    sound: Annotated[bool, Meta(description="Whether the latest thought holds.")]
    reason: Annotated[str, Meta(description="Why, or why not.")] = ""
    revises_thought: Annotated[int | None, Meta(description="If not sound: the thought to replace.")] = None
    then: Annotated[Decision | None, Meta(description="If sound: how to go on.")] = None


class Hypothesis(Struct, frozen=True):
    """A proposed solution."""

    hypothesis: Annotated[str, Meta(min_length=1, description="The proposed solution, in one statement.")]


class Trial(Struct, frozen=True):
    """How a hypothesis stood its test."""

    holds: Annotated[bool, Meta(description="Whether it agrees with every thought and the problem.")]
    reason: Annotated[str, Meta(description="How it was tested, or what refutes it.")] = ""
