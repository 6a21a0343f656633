"""Self-consistency: reason several times independently, and take the most frequent answer.

Wang et al. 2022, "Self-Consistency Improves Chain of Thought Reasoning in Language Models", arXiv:2203.11171.
Early stopping is from Aggarwal et al. 2023, "Let's Sample Step by Step: Adaptive-Consistency", arXiv:2305.11860. Other
options are from CISC (`weigh`, arXiv:2502.06233), short-m@k (`first`, arXiv:2505.17813) and arXiv:2311.17311 (`group`).

Algorithm, for a question with up to m samples:

    decide on m, and on how to sample a path                               multiple_path_sampling
    (r_i, a_i) ~ P(r, a | prompt, question), in parallel, in rounds of     reasoning_path_execution
        just enough samples to settle the vote, until it is settled
    a_1, …, a_k, normalised                                                answer_collection
    v(a) = Σ_i 1(a_i = a)                                                  consistency_analysis
    argmax_a v(a); on a tie, the answer that reached this count first      majority_selection

*Differs from the paper*: An instruction replaces the examples and asks for the answer at the end. Another strategy may
write the paths. A path without a readable answer is replaced. Sampling stops when the leader can no longer lose, which
does not change the answer. By default (`stop="beta"`), sampling also stops when the leader has the majority with
probability `confidence`. A refuted answer has no vote, and a proved answer ends the run. `weigh` weighs each vote by
the confidence that the reply states. `group` lets a judge group free answers in a single call. `at_once` and `first`
start all paths at once, and cancel unfinished paths when the vote is decided or the first m paths have arrived.
"""

import re
from collections.abc import Generator, Sequence
from math import comb, exp
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from ..blocks.answers import MARKED, UNREADABLE, ReasonedAnswer, answer_text
from ..blocks.drafts import (
    PLAIN_WRITER,
    Draft,
    DraftOptions,
    DraftState,
    Group,
    drafts_document,
    read_draft,
    too_few,
)
from ..blocks.judging import Groups, read_groups
from ..blocks.why import quote
from ..core.bodies import Body, Conclusion, Move, Request, Thought, go, request, stay
from ..core.effects import Ask, Effect, RunStrategy
from ..core.events import STOPPED, Failed, Finished, Reply
from ..core.readings import Unreadable
from ..core.strategy import Details, Field, Stage, Strategy, final_response, problem_reception
from ..core.type_schema import inlined_schema
from ..reading import form
from ..reading.vote import Vote, is_settled, options_in, tally
from ..text import lazy_pattern, shorten

SYSTEM = "Solve the problem by yourself, from scratch."

CONFIDENCE = (
    " After it write how certain you are of it, from 0 for a guess to 100, with <confidence> before the number and "
    "</confidence> after it."
)
"""Asks for the confidence in the same reply (arXiv:2502.06233), since another call would cost more than it gains."""

GROUP = """Now put the answers together that say the same, whatever their wording; an answer that no other agrees with \
is a group of its own. Reply with JSON, the numbers of each group:
{"groups": [[1, …], …]}"""

SHARPNESS = 0.5
"""The difference in confidence that multiplies the weight of a vote by e."""
GROUPED_CHARS = 2_000
_CONFIDENCE = lazy_pattern(r"<confidence>\s*(\d{1,3})\b[^<]{0,20}</confidence>", re.IGNORECASE)

LEAST_DRAWN_ANEW = 2
"""How many unreadable samples are replaced at most. If half of `samples` is more, half of `samples` is the limit."""

REASON = "Reason step by step until the answer is certain."
"""Replaces the paper's examples, which reason before they answer."""


class Options(DraftOptions, frozen=True, kw_only=True):
    """Options of self-consistency."""

    other_names: ClassVar[dict[str, str]] = {"n": "samples"}

    samples: Annotated[int, Meta(ge=1, le=1000, description="Most samples drawn.")] = 20
    window: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Samples in a round; none: as many as could settle the vote."),
    ] = None
    stop: Annotated[
        Literal["beta", "exact", "full"],
        Meta(description="When to stop early: if the winner is likely, if it is certain, or never."),
    ] = "beta"
    confidence: Annotated[float, Meta(gt=0.5, lt=1, description="Probability that ends a beta vote.")] = 0.95
    at_once: Annotated[bool, Meta(description="Draw all at once; cancel the rest when decided.")] = False
    first: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Draw all samples at once and count only the first N; the shortest wins a tie."),
    ] = None
    weigh: Annotated[bool, Meta(description="Weigh each vote by the confidence of its path.")] = False
    group: Annotated[bool, Meta(description="Ask once which answers say the same, if no rule tells.")] = True
    temperature: Annotated[float, Meta(ge=0, le=2, description="Temperature of samples of one call.")] = 0.7

    @property
    def draws_all(self) -> bool:
        """Whether the run starts all samples at once."""
        return self.at_once or self.first is not None


class WeighedSample(ReasonedAnswer, frozen=True, kw_only=True):
    """The reply of a path. `confidence` is from 0 to 1, or None if the reply states no confidence."""

    confidence: float | None = None


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the answers so far. Paths that were cut off are left out."""

    options: Options
    unfinished: str | None = None
    """The best answer of a path that was cut off. It has no vote."""
    groups: tuple[tuple[int, ...], ...] | None = None
    """The judge's groups of equal answers, as draft numbers. None before the judge is asked."""

    @property
    def valid(self) -> list[Draft]:
        """The drafts that have a vote."""
        return [draft for draft in self.drafts if draft.is_candidate]

    @property
    def votes(self) -> tuple[Vote, ...]:
        """The votes for each answer, most votes first. The option `weigh` sorts the votes by weight instead."""
        valid, merged = self.valid, dict[int, Vote]()
        owners = {number: place for place, group in enumerate(self.groups or ()) for number in group}
        for place, vote in enumerate(self.by_rule):
            owned = (owners[number] for at in vote.voters if (number := valid[at].number) in owners)
            owner = next(owned, -1 - place)
            first = merged.get(owner, Vote(vote.answer, 0, ()))
            voters = tuple(sorted(first.voters + vote.voters))
            merged[owner] = Vote(first.answer, len(voters), voters)
        found = sorted(merged.values(), key=lambda vote: (-vote.count, vote.voters[-1]))
        if self.options.weigh:
            found.sort(key=lambda vote: (-self.weight(vote), vote.voters[0]))
        elif self.options.first is not None:
            found.sort(key=lambda vote: (-vote.count, min(len(valid[at].answer) for at in vote.voters)))
        return tuple(found)

    @property
    def by_rule(self) -> tuple[Vote, ...]:
        """The votes, counted without the judge: rules alone decide which answers are equal."""
        return tally([draft.answer for draft in self.valid], options_in(self.problem))

    @property
    def leader(self) -> str | None:
        """The leading answer. With a verifier, checked answers take precedence."""
        if self.proved is not None:
            return self.proved.answer
        counted = self
        if self.options.verify:
            checked = tuple(draft for draft in self.drafts if draft.checked and draft.is_candidate)
            counted = replace(self, drafts=checked or tuple(self.valid[:1]))
        return counted.votes[0].answer if counted.votes else self.unfinished

    def weight(self, vote: Vote) -> float:
        """Return an answer's share of the total weight. The weights are the softmax of the voters' confidence."""
        confidences = [draft.confidence for draft in self.valid]
        known = [each for each in confidences if each is not None]
        middle = sum(known) / len(known) if known else 0.5
        weights = [exp((middle if each is None else each) / SHARPNESS) for each in confidences]
        return sum(weights[at] for at in vote.voters) / sum(weights)

    @property
    def remaining(self) -> int:
        """How many samples are left to draw. Unreadable samples are replaced, up to a limit."""
        unreadable = sum(draft.code == UNREADABLE for draft in self.drafts)
        drawn_anew = min(unreadable, max(LEAST_DRAWN_ANEW, self.options.samples // 2))
        return self.options.samples - len(self.drafts) + drawn_anew

    @property
    def width(self) -> int:
        """How many samples to draw in the next round. The width is 0 once sampling is over.

        The width is the count of all samples left, the option `window`, or the fewest samples that can settle the vote.
        """
        options, votes, remaining = self.options, self.votes, self.remaining
        answered = sum(bool(each.answer) for each in self.drafts)
        is_full = options.first is not None and answered >= options.first
        if self.proved or remaining <= 0 or is_full or self._is_settled(votes, remaining):
            return 0
        if options.stop == "full" or options.draws_all:
            return remaining
        if options.window is not None:
            return min(options.window, remaining)
        leader = votes[0] if votes else Vote("", 0, ())

        def settles(number: int) -> bool:
            ahead = replace(leader, count=leader.count + number)
            return self._is_settled((ahead, *votes[1:]), remaining - number)

        return next(filter(settles, range(1, remaining)), remaining)

    def _is_settled(self, votes: tuple[Vote, ...], remaining: int) -> bool:
        leads = max((vote.count for vote in votes), default=0)
        if self.options.stop == "full" or not votes or votes[0].count < leads:
            return False
        if self.options.weigh:
            votes = tuple(sorted(votes, key=lambda vote: -vote.count))
        likely = self.options.stop == "beta" and confidence(votes) >= self.options.confidence
        # With `first`, the shortest answer wins a tie, so a rival needs one vote less.
        return likely or is_settled(votes, remaining + (self.options.first is not None))


def lead_confidence(first: int, second: int) -> float:
    """Return the probability that the leader beats the runner-up in the long run, by the Beta rule of arXiv:2305.11860.

    `first` and `second` are their votes. For p ~ Beta(first + 1, second + 1), P(p > 1/2) is the regularised incomplete
    beta function I½(second + 1, first + 1): the chance of more than `second` heads in first + second + 1 fair tosses.
    """
    tosses = first + second + 1
    return sum(comb(tosses, heads) for heads in range(second + 1, tosses + 1)) / (1 << tosses)


def confidence(votes: Sequence[Vote]) -> float:
    """Return the `lead_confidence` of the leader over the runner-up, or 0 if there are no votes."""
    if not votes:
        return 0.0
    return lead_confidence(votes[0].count, votes[1].count if len(votes) > 1 else 0)


def sample_paths(s: State) -> Body:
    """Sample the next paths, with reasoning r_i and answer a_i: (r_i, a_i) ~ P(r, a | prompt, question)."""
    numbers = range(len(s.drafts), len(s.drafts) + s.width)

    def is_decided(paths: Sequence[Any]) -> bool:
        return _add_samples(s, paths)[0].width == 0

    enough = is_decided if s.options.draws_all else None
    paths = yield request(s, *(_path(s, number) for number in numbers), give_failures=True, enough=enough)
    s, thoughts = _add_samples(s, paths)
    yield request(s, *thoughts)
    s = yield from s.verify()
    found = s.by_rule
    is_open = len(found) > 1 and any(vote.is_open for vote in found)
    if s.options.group and s.groups is None and is_open and confidence(found) < s.options.confidence:
        s = yield from _group(s, found)
    if s.width:
        return stay(s)
    return go(s, "answer_collection") if s.votes else s.fail()


def _path(state: State, sample: int) -> Effect:
    options, about = state.options, f"sample-{sample + 1}"
    if options.over != PLAIN_WRITER or options.over_options:
        return RunStrategy(options.over, state.problem, options.over_options, sample, about)
    facts = {"kind": "sample", "problem": state.problem}
    # After an unmarked path, ask once for the mark. A second solution would be a sample of another question.
    return Ask(
        f"Problem: {state.problem}",
        SYSTEM,
        MARKED + (CONFIDENCE if options.weigh else ""),
        step_by_step=REASON,
        wants_value=True,
        facts=facts,
        sample=sample,
        retries=1,
        temperature=options.temperature,
        form=inlined_schema(ReasonedAnswer),
        about=about,
    )


def read_sample(s: State, ask: Ask, texts: Sequence[str]) -> tuple[Any, str] | Unreadable:
    """Read a path with a marked answer, or read the judge's groups of equal answers."""
    if ask.facts["kind"] == "group":
        grouping = read_groups(s, ask, texts)
        return grouping if isinstance(grouping, Unreadable) else (grouping[0].groups, grouping[1])
    reading = form.read_form([_CONFIDENCE.sub("", text).strip() for text in texts], ReasonedAnswer)
    if isinstance(reading, Unreadable):
        return reading
    found = next(filter(None, map(_CONFIDENCE.search, reversed(texts))), None) if s.options.weigh else None
    stated = min(100, int(found[1])) / 100 if found else None
    sample: ReasonedAnswer = reading[0]
    return WeighedSample(reasoning=sample.reasoning, answer=sample.answer, confidence=stated), reading[1]


def _add_samples(state: State, paths: Sequence[Any]) -> tuple[State, tuple[Thought, ...]]:
    """Add the finished paths to the state. Return the state and the thoughts of the paths."""
    drafts, thoughts, unfinished = list[Draft](), list[Thought](), None
    for number, path in enumerate(paths, len(state.drafts) + 1):
        was_cut = isinstance(path, Finished) and path.status == "cancelled"
        if path is None or was_cut or (isinstance(path, Failed) and path.code == STOPPED):
            unfinished = unfinished or (isinstance(path, Finished) and (path.short or path.answer)) or None
            continue
        if isinstance(path, Reply):
            sample: WeighedSample = path.value
            draft = Draft(number, answer_text(sample.answer), confidence=sample.confidence)
            reasoning = sample.reasoning
        else:
            draft = read_draft(number, path)
            reasoning = draft.answer
            draft = replace(draft, answer=draft.short or draft.answer, short="")
        drafts.append(draft)
        if draft.answer:
            data = {"answer": draft.answer, "node_id": f"sample-{draft.number}"}
            thoughts.append(Thought(reasoning or draft.answer, branch=f"path-{number}", data=data))
    return replace(state, drafts=(*state.drafts, *drafts), unfinished=unfinished), tuple(thoughts)


def _group(s: State, found: Sequence[Vote]) -> Generator[Request, Any, State]:
    listed = "\n".join(
        f"{number}. {shorten(vote.answer, GROUPED_CHARS)}" for number, vote in enumerate(found, 1)
    )
    facts = {"kind": "group", "problem": s.problem, "count": len(found)}
    prompt, form = f"Problem: {s.problem}\n\nAnswers:\n{listed}\n\n{GROUP}", inlined_schema(Groups)
    (reply,) = yield request(s, Ask(prompt, facts=facts, by="judge", form=form), give_failures=True)
    groups = reply.value if isinstance(reply, Reply) else ()
    members = ([at for number in group for at in found[number - 1].voters] for group in groups)
    return replace(s, groups=tuple(tuple(s.valid[at].number for at in group) for group in members))


def count_votes(s: State) -> Body:
    """Count the votes: v(a) = Σ_i 1(a_i = a)."""
    s = yield from s.verify()
    return go(s, "majority_selection") if s.valid else s.fail()


def select(state: State) -> Move:
    """Select the answer with the most votes: argmax_a v(a)."""
    lines = [f"{vote.answer}: {vote.count} of {len(state.valid)}" for vote in state.votes]
    chosen = conclude(state)
    data = {"answer": chosen.answer, **chosen.document}
    return go(state, "final_response", Thought("\n".join(lines), data=data))


class SelfConsistencyDetails(Details):
    """The details of a result."""

    votes: Annotated[list[dict[str, Any]], Meta(description="`answer`, `count` and, if weighed, `weight`.")]
    samples: Annotated[
        list[dict[str, Any]], Meta(description="`id`, `number`, `answer`, `vote`, `dropped`, `inside`.")
    ]
    samples_used: Annotated[int, Meta(description="Samples drawn.")]
    confidence: Annotated[float, Meta(description="How sure the vote is, from 0 to 1.")]
    samples_saved: Annotated[int, Meta(description="Samples that were not needed.")]
    samples_failed: Annotated[int, Meta(description="Samples without an answer.")]


def conclude(state: State) -> Conclusion:
    """Return the leading answer and the votes."""
    votes, valid, proved = state.votes, state.valid, state.proved
    groups = [Group(valid[vote.voters[0]], tuple(valid[at].number for at in vote.voters)) for vote in votes]
    document = _votes_document(state, votes, groups)
    lost: int = document["samples_failed"]
    drawn, count, leads = len(state.drafts), len(valid), votes[0].count if votes else 0
    few = "" if proved else too_few(drawn, drawn - lost, "samples")
    thin = "no two samples agree" if leads == 1 < count and not proved else ""
    if few or thin:
        document["diagnostics"] = {"warnings": [*filter(None, (few, thin))]}
    share = thin or (f"{leads} of {count} samples agree" if count > 1 else "")
    without = f", {lost} without an answer that could be read" if lost else ""
    drawing = f"{drawn} of {state.options.samples} samples drawn{without}"
    second = f"second: {quote(votes[1].answer, 60, before='')} ({votes[1].count})" if len(votes) > 1 else ""
    first = f"sample-{min(groups[0].voters)}" if groups else ""
    detail = "; ".join(filter(None, (few, share, drawing)))
    why = "; ".join(filter(None, (few, share, second, drawing)))
    certainty = "proved" if proved else "given"
    end = Conclusion(state.leader, detail=detail, document=document, certainty=certainty)
    return end.because(why, first, "majority_selection")


def _votes_document(state: State, votes: Sequence[Vote], groups: Sequence[Group]) -> dict[str, Any]:
    document: dict[str, Any] = drafts_document(state.drafts, groups, "sample") | {
        "confidence": 1.0 if state.proved else round(confidence(votes), 6),
        "samples_saved": 0 if state.width else max(0, state.options.samples - len(state.drafts)),
        "samples_failed": len([draft for draft in state.drafts if not draft.answer]),
    }
    if state.options.weigh:
        for entry, vote in zip(document["votes"], votes, strict=True):
            entry["weight"] = round(state.weight(vote), 4)
    return document


SELF_CONSISTENCY: Strategy[State, Options] = Strategy(
    name="self_consistency",
    title="Self-consistency",
    source="arXiv:2203.11171",
    summary="Draws independent solutions and takes the most frequent answer: for problems with a short answer.",
    options=Options,
    state=State,
    conclude=conclude,
    close=lambda s: go(s, "answer_collection") if s.votes else None,
    details=SelfConsistencyDetails,
    calls=4,
    least_calls=3,
    version=2,
    stages=(
        problem_reception(
            ("multiple_path_sampling",),
            "Say what is asked, and in which form, so that answers can be compared.",
        ),
        Stage(
            "multiple_path_sampling",
            ("reasoning_path_execution",),
            description="Set out several independent ways to reason about it.",
            guidance="Name three or more ways to set out. No path may lean on another's result.",
            fields=(Field.optional("paths", "texts", "One line for each path: how it sets out."),),
        ),
        Stage(
            "reasoning_path_execution",
            ("answer_collection",),
            description="Follow each path to its answer.",
            guidance="Reason along one path at a time, from problem to answer, as if it were the only one. "
            "Stay for the next path; go on when all have an answer.",
            fields=(
                Field.optional("path", "string", "Which path this is."),
                Field.optional("answer", "string", "Where the path ended."),
            ),
            body=sample_paths,
            example={"reasoning": "16 - 3 - 4 = 9 eggs are sold at 2 dollars each.", "answer": "18"},
            read=read_sample,
            value=WeighedSample | tuple[tuple[int, ...], ...],
        ),
        Stage(
            "answer_collection",
            ("consistency_analysis",),
            description="Collect the answers.",
            guidance="List the answer of every path in one form: same units, same notation.",
            fields=(Field.mandatory("answers", "texts", "Each path's answer, in order.", minItems=1),),
        ),
        Stage(
            "consistency_analysis",
            ("majority_selection",),
            description="Count which answers agree.",
            guidance="Count how often each answer came up; say how clear the lead is.",
            fields=(Field.optional("votes", "object", "How many paths gave each answer."),),
            body=count_votes,
        ),
        Stage(
            "majority_selection",
            ("final_response",),
            description="Take the answer with the most votes.",
            guidance="Take the most frequent answer; on a tie, the first to have it. Do not overrule the count.",
            body=select,
        ),
        final_response("State the answer alone, in the form that was asked for."),
    ),
)
