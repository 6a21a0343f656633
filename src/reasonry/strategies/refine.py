"""Refine: answer, check, and improve until the checks pass.

Madaan et al. 2023, "Self-Refine: Iterative Refinement with Self-Feedback", arXiv:2303.17651. A repair loop
gains little after three or four rounds: arXiv:2607.05197.

Algorithm, for a problem x:

    y ~ π(y | x)                                                        draft_generation
    verify y; if y is proved right, the run ends                        answer_check
    f, r, r_best ~ judge(x, y, y_best): review and ratings
    y ~ π(y | x, y_best, f)                                             refinement
        until a rating is high enough, y stays the same, or the rounds are used up
    the proved draft; if there is none, the best rated unrefuted draft  answer_selection

*Differs from the papers*: A verifier's objection serves as feedback and costs no call. Feedback and ratings come in a
single bounded reply. The best draft so far is kept: a refinement that is refuted or rated lower never replaces it.
"""

from collections.abc import Generator, Sequence
from typing import Annotated, Any

from msgspec import Meta, field
from msgspec.structs import replace

from ..blocks.drafts import Draft, DraftState, Group, answer_selection
from ..blocks.judging import JudgedOptions, Judgement, judge_question, ratings_of, read_judgement, with_names
from ..blocks.tournament import MIDDLE, seeded_order
from ..blocks.why import quote
from ..core.bodies import Body, Conclusion, Request, Thought, go, request
from ..core.strategy import DraftsDetails, Field, Stage, Strategy, final_response, problem_reception
from ..text import shorten

REVIEW = """First review the answer by all that the problem asks for, length and tone included: what is right and \
has to stay, and each error with its correction. Then rate it from 1 (wrong) to 10 (right beyond doubt). Reply with \
one JSON object:
{{"reason": "…", "rating": 1 to 10}}"""
REVIEWS = """First review the candidates by all that the problem asks for, length and tone included: what is right \
and has to stay, where they contradict each other, and each error with its correction. Then rate each from 1 \
(wrong) to 10 (right beyond doubt). Reply with one JSON object:
{{"reason": "…", "ratings": {{{ratings}}}}}"""
"""Asks in a single reply for the feedback of arXiv:2303.17651 and the digest of arXiv:2510.01123, section 3."""

DIGEST_CHARS = 4_000
"""How many characters of a review the next round sees."""


class Options(JudgedOptions, frozen=True, kw_only=True):
    """Options of refine."""

    rounds: Annotated[int, Meta(ge=1, le=20, description="Rounds of drafts.")] = 4
    critique: Annotated[bool | None, Meta(description="Let a judge review; none: without a verifier.")] = None
    accept: Annotated[float, Meta(ge=1, le=10, description="Rating that ends the rounds.")] = 9.0

    @property
    def reviews(self) -> bool:
        """Whether a judge reviews the drafts."""
        return not self.verify if self.critique is None else self.critique


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: a draft for each round, the ratings of drafts, and the feedback for the next round."""

    options: Options
    ratings: dict[str, float] = field(default_factory=dict[str, float])
    """Maps the number of a draft to its rating."""
    compared: tuple[int, ...] = ()
    """The new draft and the best earlier draft of the last review. Ratings of different reviews are not comparable."""
    feedback: str = ""
    reason: str = ""
    lost: str = ""
    """The reason why the last review was unreadable. Empty if the review was readable."""

    @property
    def ranking(self) -> list[Group]:
        """The candidates, best rating first. Candidates with a rating from an earlier review come last.

        An unrated candidate counts as rated in the middle, so a revision ranks above a draft with a lower rating.
        """

        def rank(group: Group) -> tuple[bool, float]:
            rating = self.ratings.get(str(group.number))
            is_current = rating is None or group.number in self.compared
            return is_current, MIDDLE if rating is None else rating

        in_order = sorted(self.candidates, key=lambda group: group.number)
        return sorted(in_order, key=rank, reverse=True)

    @property
    def best(self) -> Draft | None:
        """The best draft so far: the proved draft, or else the newest draft in the best group of `ranking`."""
        if self.proved or not (ranking := self.ranking):
            return super().best
        return self.newest(ranking[0])

    def newest(self, group: Group) -> Draft:
        """Return the newest draft in a group of equal drafts."""
        return self.drafts[max(group.voters) - 1]


def write_draft(s: State) -> Body:
    """Write a draft for problem x from the best draft and the feedback f, if any: y ~ π(y | x, y_best, f)."""
    s, drafts = yield from s.draw([(s.best, s.feedback)])
    return go(replace(s, feedback=""), "answer_check", drafts)


def check(s: State) -> Body:
    """Verify the draft. If a judge reviews drafts, ask for a review. If another round may help, start one."""
    s = yield from s.verify()
    found, is_last = s.ranking, len(s.drafts) >= s.options.rounds
    unrated = [each for each in found if str(each.number) not in s.ratings]
    if not unrated and found and not s.proved:
        return go(s, "answer_selection", Thought("The answer did not change: nothing is left to refine."))
    if s.proved or (is_last and len(found) < 2) or (found and not s.options.reviews):
        return go(s, "answer_selection")
    thoughts: tuple[Thought, ...] = ()
    if unrated:
        rated = [each for each in found if each not in unrated]
        s, thoughts = yield from _review(s, [*unrated, *rated[:1]])
    else:
        s = replace(s, feedback=shorten(s.drafts[-1].why, DIGEST_CHARS))
    is_accepted = max(s.ratings.values(), default=0) >= s.options.accept
    can_improve = not is_last and not is_accepted and bool(s.feedback)
    return go(s, "refinement" if can_improve else "answer_selection", *thoughts)


def _review(s: State, groups: Sequence[Group]) -> Generator[Request, Any, tuple[State, tuple[Thought, ...]]]:
    texts = {each.number: s.newest(each).shown for each in groups}
    shown = seeded_order(list(texts), s.options.seed)
    question = judge_question(s.problem, shown, texts, task=REVIEWS if len(shown) > 1 else REVIEW)
    (reply,) = yield request(s, question, give_failures=True)
    verdict = ratings_of(shown, reply)
    if not verdict.ratings:
        return replace(s, feedback="", lost=getattr(reply, "message", "")), ()
    pairs = zip(shown, verdict.ratings, strict=True)
    rated_now = {str(number): rating for number, rating in pairs if rating is not None}
    feedback = shorten("\n".join(filter(None, [verdict.reason, s.drafts[-1].why])), DIGEST_CHARS)
    ratings, reason = s.ratings | rated_now, verdict.reason
    s = replace(s, ratings=ratings, compared=tuple(shown), feedback=feedback, reason=reason, lost="")
    return s, (Thought(reason, data={"ratings": rated_now}),)


class RefineDetails(DraftsDetails):
    """The details of a result."""

    rounds: Annotated[int, Meta(description="Rounds of review.")]
    ratings: Annotated[dict[str, float], Meta(description="The rating of each draft, by its number.")]


def conclude(state: State) -> Conclusion:
    """Return the best draft so far, its rating, and how many rounds there were."""
    details: dict[str, Any] = {"rounds": len(state.drafts), "ratings": state.ratings}
    conclusion = state.conclude(details, state.lost and f"no reply to its review could be read: {state.lost}")
    best = state.best
    rating = best and state.ratings.get(str(best.number))
    if not best or not rating or best.number not in state.compared:
        return conclusion
    reason = with_names(quote(state.reason), state.compared, "draft {}".format)
    return conclusion.because(f"draft {best.number} is rated {rating:g} of 10{reason}", "answer_check")


REFINE: Strategy[State, Options] = Strategy(
    name="refine",
    version=3,
    title="Refine",
    source="arXiv:2303.17651",
    summary="Answers, and improves the answer until a check passes: for code and texts.",
    options=Options,
    state=State,
    conclude=conclude,
    close=State.close,
    details=RefineDetails,
    suits=("checked",),
    calls=8,
    stages=(
        problem_reception(
            ("draft_generation",), "Say what is asked, and which checks an answer has to pass."
        ),
        Stage(
            "draft_generation",
            ("answer_check",),
            tested_by="answer_check",
            description="Write a first answer.",
            guidance="Write a whole answer.",
            body=write_draft,
        ),
        Stage(
            "answer_check",
            ("refinement", "answer_selection"),
            description="Check the answer, and say what is wrong with it.",
            guidance="Run the tests there are; else look for the first error. Say how to correct it.",
            fields=(
                Field.optional("feedback", "string", "What is wrong, and how to correct it."),
                Field.optional("passed", "boolean", "Whether the answer passed its checks."),
            ),
            body=check,
            reply=Judgement,
            read=read_judgement,
            example={"reason": "The last element is dropped; end the loop at n.", "ratings": {"A": 4}},
        ),
        Stage(
            "refinement",
            ("answer_check",),
            tested_by="answer_check",
            description="Improve the answer.",
            guidance="Keep what is right and correct what was found wrong; do not start a check here.",
            body=write_draft,
        ),
        answer_selection(
            "Take the best answer of all rounds.",
            "Take what passed its checks; else the best so far, never one that was proved wrong.",
        ),
        final_response("Give the answer whole, in the form that was asked for."),
    ),
)
