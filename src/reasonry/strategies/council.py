"""Council: several models answer and rate each other's anonymous answers; then a model merges all answers into one.

The aggregation of answers is from Wang et al. 2024, "Mixture-of-Agents Enhances Large Language Model Capabilities",
arXiv:2406.04692. arXiv:2604.02923 reports the gains of a mixed council on facts. There are no rounds of debate, since
arXiv:2508.17536 shows that such rounds are a martingale and so do not change the expected result.

Algorithm, for a problem x and members 1, …, k:

    y_i ~ π_i(y | x), in parallel                                    member_answers
    drop each y_i proved wrong; end if a y_i is proved or all agree  answer_check
    r_i(y_j) ~ π_i(r | x, {y_j : j ≠ i}), each i in its own order    peer_review
    Borda(y_j) = mean over i of the share that r_i ranks below y_j
    y, differences ~ π(y | x, y_1, …, y_k, Borda)                    synthesis

*Differs from the papers*: A verifier comes first. Equal answers are one candidate. No member judges its own answer, and
no prompt names a model. The best ranked answer replaces a synthesis that is refuted or unreadable.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from ..blocks.answers import MARKED, Answer, AnswerReply
from ..blocks.drafts import FRESH, SHOWN_CHARS, Draft, DraftState, Group, answer_selection, candidates
from ..blocks.judging import JudgedOptions, Judgement, judge_question, ratings_of, read_judgement
from ..blocks.tournament import Ratings, borda, seeded_order
from ..blocks.why import quote
from ..core.bodies import Body, Conclusion, Thought, go, request
from ..core.effects import Ask
from ..core.events import STOPPED, Failed, Reply
from ..core.strategy import DraftsDetails, Field, Stage, Strategy, final_response, problem_reception
from ..text import shorten

SYNTHESISE = """First say where the answers differ, and settle each difference by working it out, not by counting. \
Then write the best answer from all of them: take over what is right, wherever it stands."""
"""The aggregate-and-synthesise prompt of arXiv:2406.04692, table 1. The differences are our addition."""
RANKED = "Those who wrote them have ranked them without names; the best ranked answer comes first."


class Options(JudgedOptions, frozen=True, kw_only=True):
    """Options of a council."""

    models: Annotated[
        tuple[str, ...], Meta(max_length=12, description="Model of each seat; none: the run's.")
    ] = ()
    seats: Annotated[int, Meta(ge=2, le=12, description="Seats, if `models` is empty.")] = 3
    synthesis: Annotated[bool, Meta(description="Write one answer from all; otherwise the best wins.")] = True

    @property
    def members(self) -> range:
        """The numbers of the members, from 1."""
        return range(1, (len(self.models) or self.seats) + 1)


class CommonAnswer(AnswerReply, frozen=True, kw_only=True):
    """The answer written from all answers, and their differences."""

    differences: Annotated[str, Meta(description="Where the answers differ, and why one side is right.")] = ""
    answer: Answer


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the answers of the members, their ratings of each other, and the synthesis."""

    options: Options
    reviews: tuple[Ratings, ...] = ()
    differences: str = ""
    lost: str = ""
    """The reason why the synthesis failed. Empty if it did not fail."""

    @property
    def of_seats(self) -> tuple[Group, ...]:
        """The members' answers that are not refuted. Equal answers form one group."""
        return candidates(self.drafts[: len(self.options.members)])

    @property
    def ranking(self) -> list[tuple[Group, float]]:
        """The groups of equal answers with their Borda scores, best first."""
        shares = ((each, borda(each.number, self.reviews)) for each in self.of_seats)
        return sorted(shares, key=lambda pair: (-pair[1], -len(pair[0].voters)))

    @property
    def scores(self) -> dict[str, float]:
        """Maps the id of a draft to its score in `ranking`. Empty if there are no reviews."""
        return {each.draft.id: round(share, 3) for each, share in self.ranking if self.reviews}

    @property
    def best(self) -> Draft | None:
        """The best answer so far, in this order: a proved answer, an unrefuted synthesis, the best ranked answer."""
        if self.proved or not self.candidates:
            return super().best
        written = self.drafts[len(self.options.members) :]
        is_open = written and written[0].status == "open"
        return written[0] if is_open else self.ranking[0][0].draft


def answer(s: State) -> Body:
    """Ask all members in parallel. Member i answers problem x: y_i ~ π_i(y | x)."""
    s, drafts = yield from s.draw([FRESH] * len(s.options.members), by="seat")
    return go(s, "answer_check", drafts)


def check(s: State) -> Body:
    """Drop refuted answers. If an answer is proved or all members agree, skip the review."""
    s = yield from s.verify()
    return go(s, "answer_selection" if s.proved or len(s.of_seats) < 2 else "peer_review")


def review(s: State) -> Body:
    """Let each member i rate the other members' answers y_j: r_i(y_j) ~ π_i(r | x, {y_j : j ≠ i})."""
    found = s.of_seats
    texts = {each.number: each.draft.shown for each in found}
    orders = ((seat, _order_for(seat, found, s.options.seed)) for seat in s.options.members)
    asked = {seat: shown for seat, shown in orders if len(shown) > 1}
    asks = [
        judge_question(s.problem, shown, texts, sample=seat, about=f"draft-{seat}", by=f"seat-{seat}")
        for seat, shown in asked.items()
    ]
    replies = yield request(s, *asks, give_failures=True)
    reviews = tuple(ratings_of(shown, reply) for shown, reply in zip(asked.values(), replies, strict=True))
    if any(isinstance(reply, Failed) and reply.code == STOPPED for reply in replies):
        reviews = ()  # The ratings of only some seats would give a one-sided ranking.
    s = replace(s, reviews=reviews)
    lines = [f"Seat {seat}: {each.reason or 'no rating'}" for seat, each in zip(asked, reviews, strict=False)]
    thoughts = [Thought("\n".join(lines), data={"scores": s.scores})] if lines else []
    return go(s, "synthesis" if s.options.synthesis else "answer_selection", *thoughts)


def _order_for(seat: int, found: Sequence[Group], seed: int) -> list[int]:
    """Return the numbers of the other members' answers, in the order in which the member `seat` sees them."""
    order = seeded_order([each.number for each in found], seed)
    own = next((each for each in found if seat in each.voters), None)
    if own is None:
        return order
    at = order.index(own.number)
    others = [*order[at + 1 :], *order[:at]]
    turn = own.voters.index(seat) % max(1, len(others))
    return [*others[turn:], *others[:turn]]


def synthesise(s: State) -> Body:
    """Merge the answers, best Borda score first, into answer y: (y, differences) ~ π(y | x, y_1, …, y_k, Borda)."""
    drafts = [each.draft for each, _ in s.ranking]
    facts = {"kind": "synthesis", "problem": s.problem, "answers": [draft.answer for draft in drafts]}
    shown = [f"Answer {place}:\n{shorten(draft.shown, SHOWN_CHARS)}" for place, draft in enumerate(drafts, 1)]
    prompt = "\n\n".join([f"Problem: {s.problem}", *shown, *([RANKED] if s.reviews else [])])
    ask = Ask(prompt, mark=MARKED, task=SYNTHESISE, wants_value=s.options.verify, facts=facts)
    (reply,) = yield request(s, ask, give_failures=True)
    if not isinstance(reply, Reply):
        return go(replace(s, lost=reply.message), "answer_selection")
    written = Draft(len(s.options.members) + 1, reply.value.text, repairs=drafts[0].number)
    s = replace(s, drafts=(*s.drafts, written), differences=reply.value.differences)
    thought = Thought(s.differences or written.answer, data={"answer": written.answer})
    return go((yield from s.verify()), "answer_selection", thought)


class CouncilDetails(DraftsDetails):
    """The details of a result."""

    agreed: Annotated[bool, Meta(description="Whether all members gave the same answer.")]
    differences: Annotated[str, Meta(description="Where the answers differ.")]
    scores: Annotated[dict[str, float], Meta(description="The score of each draft, if they were reviewed.")]
    models: Annotated[list[str], Meta(description="The model of each draft, if the seats have their own.")]


def conclude(state: State) -> Conclusion:
    """Return the best answer so far, whether the members agree, and their differences."""
    found, members = state.of_seats, state.options.members
    details: dict[str, Any] = {
        "agreed": len(found) == 1 and len(found[0].voters) == len(members),
        "differences": state.differences,
        "scores": state.scores,
        "models": list(state.options.models),
    }
    conclusion = state.conclude(
        details, state.lost and f"no answer could be written from all: {state.lost}", "members"
    )
    best, differences = state.best, quote(state.differences, 200)
    named = (f"Answer {place} is draft {group.number}" for place, (group, _) in enumerate(state.ranking, 1))
    if details["agreed"]:
        return conclusion.because(f"all {len(members)} members gave the same answer", "member_answers")
    if best and (share := state.scores.get(best.id)):
        why = f"the members rank draft {best.number} above {share:.0%} of the other answers"
        return conclusion.because(why, "peer_review")
    if not differences:
        return conclusion
    return conclusion.because(f"the members differed{differences} ({', '.join(named)})", "synthesis")


COUNCIL: Strategy[State, Options] = Strategy(
    name="council",
    version=3,
    title="Council",
    source="arXiv:2406.04692",
    summary="Lets several models answer, and judge each other's answers without names: for a second opinion.",
    options=Options,
    calls=7,
    least_calls=2,
    state=State,
    conclude=conclude,
    close=State.close,
    details=CouncilDetails,
    stages=(
        problem_reception(("member_answers",), "Put the problem to each member in the same words."),
        Stage(
            "member_answers",
            ("answer_check",),
            tested_by="answer_check",
            description="Have each member answer by itself.",
            guidance="Each member answers without having seen another answer; stay for the next member.",
            fields=(Field.optional("answers", "texts", "Each member's answer."),),
            body=answer,
        ),
        Stage(
            "answer_check",
            ("peer_review", "answer_selection"),
            description="Drop what can be proved wrong; see whether all agree.",
            guidance="Run the checks there are. Where all members agree, there is nothing to judge.",
            body=check,
        ),
        Stage(
            "peer_review",
            ("synthesis", "answer_selection"),
            compares=True,
            description="Have each member judge the answers of the others.",
            guidance="Show each member the answers of the others without names, to each in another order.",
            body=review,
            reply=Judgement,
            read=read_judgement,
            example={"reason": "A takes the gross price for the net price.", "ratings": {"A": 3, "B": 8}},
        ),
        Stage(
            "synthesis",
            ("answer_selection",),
            description="Write one answer from all, and say where they differ.",
            guidance="Settle each difference by working it out. Say where the members differ.",
            fields=(
                Field.optional("differences", "string", "Where they differ, and why one side is right."),
            ),
            body=synthesise,
            reply=CommonAnswer,
            example={"differences": "Two take the tax twice; it is in the price.", "answer": "119 euros"},
        ),
        answer_selection(
            "Take the answer written from all, or else the best ranked.",
            "Take the common answer; never one that was proved wrong.",
        ),
        final_response("Give the answer whole, and say where the members differed."),
    ),
)
