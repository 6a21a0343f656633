"""Cascade: a cheap model answers, and a more expensive model answers only if the cheap answer is rejected.

Chen et al. 2023, "FrugalGPT: How to Use Large Language Models While Reducing Cost and Improving Performance",
arXiv:2305.05176, section 3. The agreement of samples as a score is from Yue et al. 2023, arXiv:2310.03094.

Algorithm, for a problem x and models π_1, …, π_k, cheapest first:

    y_1, …, y_m ~ π_i(y | x), in parallel                               model_answer
    g(x, y): the verifier's verdict; if there is none, the share of
        equal samples (if m > 1) or a judge's rating (if m = 1)         answer_check
    if g(x, y) < τ and i < k: repeat with π_{i+1}
    y of the last model that has an unrefuted y                         answer_selection

*Differs from the papers*: A verifier, votes or a judge scores an answer; FrugalGPT trains a small model for it. The
user sets the order of the models and the thresholds. The last model's answer is verified, but not judged.
"""

from collections.abc import Generator
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from ..blocks.drafts import FRESH, Draft, DraftOptions, DraftState, answer_selection, candidates
from ..blocks.judging import Judgement, judge_question, ratings_of, read_judgement
from ..core.bodies import Body, Conclusion, Request, Thought, go, request
from ..core.strategy import (
    SHORT_REPLY,
    DraftsDetails,
    Field,
    Stage,
    Strategy,
    final_response,
    problem_reception,
)
from ..text import shorten


class Options(DraftOptions, frozen=True, kw_only=True):
    """Options of a cascade."""

    models: Annotated[
        tuple[str, ...], Meta(max_length=12, description="Two models or more, each once, cheapest first.")
    ] = ()
    samples: Annotated[int, Meta(ge=1, le=20, description="Answers of each model; from 2 on they vote.")] = 1
    agreement: Annotated[float, Meta(gt=0, le=1, description="Share of equal votes that is enough.")] = 1.0
    accept: Annotated[float, Meta(ge=1, le=10, description="Rating of the judge that is enough.")] = 8.0

    @property
    def steps(self) -> int:
        """How many models there are, at least two."""
        return max(2, len(self.models))


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the answers so far, and the reason for each step to the next model."""

    options: Options
    doubts: tuple[str, ...] = ()

    @property
    def asked(self) -> int:
        """How many models have been asked so far."""
        return len(self.drafts) // self.options.samples

    def answers_of(self, model: int) -> tuple[Draft, ...]:
        """Return the answers of a model. `model` is its position, from 1."""
        end = model * self.options.samples
        return self.drafts[end - self.options.samples : end]

    @property
    def best(self) -> Draft | None:
        """The proved answer, or else the best unrefuted answer. Answers of later models come first."""
        if not self.proved:
            for model in range(self.asked, 0, -1):
                if found := candidates(self.answers_of(model)):
                    return found[0].draft
        return super().best


def answer(s: State) -> Body:
    """Ask the next model π_i for m answers to problem x, in parallel: y_1, …, y_m ~ π_i(y | x)."""
    s, drafts = yield from s.draw([FRESH] * s.options.samples, by=f"seat-{s.asked + 1}")
    return go(s, "answer_check", drafts)


def check(s: State) -> Body:
    """Score the answers of model π_i. If the score g(x, y) < τ and a model is left (i < k), ask model π_{i+1}."""
    s = yield from s.verify()
    if s.proved or s.asked == s.options.steps:
        return go(s, "answer_selection")
    doubt = yield from _doubt(s)
    if not doubt:
        return go(s, "answer_selection")
    return go(replace(s, doubts=(*s.doubts, doubt)), "model_answer", Thought(f"The next model: {doubt}."))


def _doubt(s: State) -> Generator[Request, Any, str]:
    """Return the reason to ask the next model, or an empty text if the answer is accepted."""
    drawn = s.answers_of(s.asked)
    found, rejected = candidates(drawn), [draft for draft in drawn if not draft.is_candidate]
    if not found:
        return shorten(rejected[0].why or "the answer was cut off", 200, one_line=True)
    if len(drawn) > 1:
        votes = len(found[0].voters)
        return "" if votes >= len(drawn) * s.options.agreement else f"{votes} of {len(drawn)} samples agree"
    draft = found[0].draft
    question = judge_question(s.problem, [draft.number], {draft.number: draft.shown})
    (reply,) = yield request(s, question, give_failures=True)
    rating = next(iter(ratings_of([draft.number], reply).ratings), None)
    if rating is None:
        return "the judge gave no rating that could be read"
    return "" if rating >= s.options.accept else f"the judge rates the answer {rating:g} of 10"


class CascadeDetails(DraftsDetails, total=False):
    """The details of a result."""

    models: Annotated[list[str], Meta(description="The models asked, in order, if they are named.")]
    doubts: Annotated[list[str], Meta(description="The reason for each step up.")]
    share_up: Annotated[
        float, Meta(description="Steps up that were taken: 0 if the first answer stood, 1 at the last model.")
    ]


def conclude(state: State) -> Conclusion:
    """Return the best answer so far, the models asked, and the reason for each step to the next model."""
    steps, taken = state.options.steps, len(state.doubts)
    details: dict[str, Any] = {
        "models": list(state.options.models[: state.asked]),
        "doubts": list(state.doubts),
        "share_up": round(taken / (steps - 1), 3),
    }
    names = state.options.models or range(1, steps + 1)
    up, doubt = f"{taken} of {steps - 1} steps up", f": {state.doubts[-1]}" if taken else ""
    model = (state.best.number - 1) // state.options.samples if state.best else 0
    fallen = f"; the answer of model {names[taken - 1]} did not stand{doubt}" if taken else ""
    conclusion = replace(state.conclude(details), detail=f"{up}{doubt}")
    return conclusion.because(f"model {names[model]} answered after {up}{fallen}", "answer_check")


CASCADE: Strategy[State, Options] = Strategy(
    name="cascade",
    title="Cascade",
    source="arXiv:2305.05176",
    summary="Asks a cheap model first, and a dearer model only if a check rejects the answer: for many problems.",
    options=Options,
    calls=2,
    state=State,
    conclude=conclude,
    close=State.close,
    details=CascadeDetails,
    needs_models=True,
    stages=(
        problem_reception(("model_answer",), "Say what is asked, and how an answer can be checked."),
        Stage(
            "model_answer",
            ("answer_check",),
            tested_by="answer_check",
            description="Have the next model answer.",
            guidance="Begin with the cheapest model; each model answers without having seen another answer.",
            fields=(Field.optional("model", "string", "The model that answers."),),
            body=answer,
        ),
        Stage(
            "answer_check",
            ("model_answer", "answer_selection"),
            description="Decide whether the answer stands, or the next model is asked.",
            guidance="Run the checks there are; else count the votes, or judge the answer. In doubt, go up.",
            fields=(Field.optional("doubt", "string", "Why the next model is asked."),),
            body=check,
            reply=Judgement,
            read=read_judgement,
            max_output_tokens=SHORT_REPLY,
            example={"reason": "Each step follows, and the total is right.", "ratings": {"A": 9}},
        ),
        answer_selection(
            "Take the answer of the last model asked.",
            "Take the answer that stood; never an answer that was proved wrong.",
        ),
        final_response(),
    ),
)
