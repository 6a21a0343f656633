"""Best of N: write several answers, and let a judge compare them.

The method combines ratings of candidates that are shown together ("LLM-as-a-Verifier", 2026, arXiv:2607.05391, and
"V1", arXiv:2603.04304), lists in several orders (arXiv:2311.17311), sequential halving (Karnin, Koren and Somekh, ICML
2013), and inputs on which programs differ (S*, arXiv:2502.14382).

Algorithm, for a problem x:

    y_1, …, y_n ~ π(y | x), in parallel                                  draft_generation
    drop each y_i proved wrong; a y_i proved right ends the run          draft_verification
    merge equal answers into one candidate, with its votes as prior
    for programs: find inputs t on which they differ; run each y_i(t)    differential_testing
    r ~ judge(x, y_a, y_b, …), each y once in each position of the list  comparison
    keep the better half; compare again until one candidate is left
    argmax_y score(y)                                                    answer_selection

*Differs from the papers*: A verifier checks the drafts before any judge, and no judge is asked if all drafts agree. A
reply states the ratings; the first paper takes ratings from token probabilities. Halving replaces that paper's
tournament, since halving is right at least as often with fewer calls (`bench/selection.py`). A safe lead ends a round.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from ..blocks.answers import REFUTED
from ..blocks.drafts import FRESH, SHOWN_CHARS, Draft, DraftState, Group, answer_selection, list_drafts
from ..blocks.judging import JudgedOptions, Judgement, judge_question, ratings_of, read_judgement, with_names
from ..blocks.programs import SANDBOX_TOOL, UNAVAILABLE, output_of, program_in
from ..blocks.toolcard import ToolCard
from ..blocks.tournament import ROOM, Contender, Ratings, Rules, Tournament
from ..blocks.why import quote
from ..core.bodies import Body, Conclusion, Move, Thought, fail, go, request, stay
from ..core.budget import DEFAULT_CALLS
from ..core.effects import Ask, CallTool
from ..core.events import Reply
from ..core.problem import check_characters
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

DISTINGUISH = """These programs answer the same problem. Write up to {count} Python expressions that call what they \
define, on inputs where they may return different values: edge cases first. Reply with one JSON object:
{{"calls": ["f([])", …]}}"""
"""Asks for inputs on which programs differ, as S* does (arXiv:2502.14382, section 3.2)."""

NOT_JUDGED = "no reply of the judge could be read; the answer is the one with the most votes"

MAX_CALLS = 6
USUAL_MODULES = ("collections", "datetime", "decimal", "itertools", "json", "math", "random", "re")
"""Modules that every sandbox has. An expression may use them even if the program does not import them."""
RAISES = "raises "
"""The prefix of an error that an expression raised instead of returning a value."""

UNDECIDED = "nothing decided between {count} candidates: no verdict of the verifier, and no rating of a judge"

MAX_GIVEN = 64
MAX_GIVEN_CHARS = 1_000_000


class Options(JudgedOptions, frozen=True, kw_only=True):
    """Options of best of N."""

    n: Annotated[int, Meta(ge=1, le=64, description="Drafts.")] = 5
    judge: Annotated[
        Rules | Literal["off"] | None,
        Meta(
            description="How a judge compares candidates; off: not; none: halving, or heats if calls are few."
        ),
    ] = None
    candidates: Annotated[
        tuple[str, ...] | dict[str, str] | None,
        Meta(description="Texts to judge, or texts by name; no draft is written."),
    ] = None
    criteria: Annotated[
        dict[str, str],
        Meta(max_length=20, description="The criteria of the judge: a sentence for each name."),
    ] = field(default_factory=dict[str, str])
    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools that the strategy may call.")] = ()

    def __post_init__(self) -> None:
        if self.candidates is not None and not self.candidates:
            raise ValueError("candidates take at least one text")
        for place, (name, text) in enumerate(self.by_name.items(), 1):
            check_characters(text, name)
            size = len(text) if text.strip() else 0
            if not 0 < size <= MAX_GIVEN_CHARS or place > MAX_GIVEN:
                limits = f"at most {MAX_GIVEN} candidates of 1 to {MAX_GIVEN_CHARS:,} characters"
                raise ValueError(f"{name} is {'too much' if size else 'empty'}; {limits}")

    @property
    def by_name(self) -> dict[str, str]:
        """The candidates of the option `candidates`, by name. Empty if the strategy writes the drafts."""
        if isinstance(self.candidates, dict):
            return self.candidates
        return {f"candidate {place}": text for place, text in enumerate(self.candidates or (), 1)}


class DistinguishingInputs(Struct, frozen=True):
    """Calls that may tell programs apart."""

    calls: Annotated[tuple[str, ...], Meta(min_length=1, description="Python expressions.")]


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the drafts, the judge's ratings, and the ranking."""

    options: Options
    outputs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Maps the number of a draft to the outputs of its program, one output for each of `inputs`."""
    inputs: tuple[str, ...] = ()
    verdicts: tuple[Ratings, ...] = ()
    """The judge's ratings so far."""
    ranking: tuple[int, ...] = ()
    """The numbers of the drafts after the tournament, winner first. Empty before the end of the tournament."""
    calls_left: int | None = None
    rules: Rules = "halving"

    @property
    def rivals(self) -> list[Group]:
        """The groups of equal drafts that can still win. Programs with equal outputs are in one group."""
        found = [each for each in self.candidates if each.draft.status == "proved" or not self.proved]
        merged: dict[Any, Group] = {}
        for each in found:
            returned = self.outputs.get(str(each.number), ())
            # A program that failed on every input is not merged.
            key = each.number if all(value.startswith(RAISES) for value in returned) else returned
            first = merged.get(key)
            merged[key] = replace(first, voters=(*first.voters, *each.voters)) if first else each
        return sorted(merged.values(), key=lambda each: -len(each.voters))

    def name(self, number: int) -> str:
        """Return the name of the candidate with this number."""
        return list(self.options.by_name)[number - 1] if self.options.candidates else f"draft {number}"

    @property
    def tournament(self) -> Tournament:
        """The tournament so far. Each contender starts with its share of the votes."""
        rivals = self.rivals
        total = sum(len(each.voters) for each in rivals)
        contenders = [
            Contender(each.number, len(each.voters) / total, len(each.draft.text)) for each in rivals
        ]
        return Tournament(self.rules, contenders, self.verdicts, self.options.seed)

    def choose_rules(self) -> Rules:
        """Choose the tournament's rules, based on the option `judge`, the number of rivals and the calls left."""
        count, options = len(self.rivals), self.options
        if options.judge == "off" or count == 1:
            return "points"
        if options.judge:
            return options.judge
        left = DEFAULT_CALLS if self.calls_left is None else self.calls_left
        if options.candidates and 2 * count >= left:
            return "heats"
        return "halving"

    @property
    def is_undecided(self) -> bool:
        """Whether the comparison of the caller's candidates ended without ratings, so that no candidate leads."""
        is_over = bool(self.ranking) or self.options.judge == "off"
        is_open = bool(self.options.candidates) and not self.proved and len(self.rivals) > 1
        return is_over and is_open and not any(verdict.ratings for verdict in self.verdicts)

    @property
    def best(self) -> Draft | None:
        """The best draft so far: the winner, or the leader of an unfinished tournament. None if `is_undecided`."""
        if self.is_undecided:
            return None
        if not self.candidates:
            return super().best
        leader = self.ranking[0] if self.ranking else self.tournament.leader_so_far()
        return self.drafts[leader - 1]


def write_drafts(s: State) -> Body:
    """Write n drafts for problem x in parallel: y_1, …, y_n ~ π(y | x). Skip this if the caller gives candidates."""
    if texts := s.options.by_name:
        drafts = tuple(Draft(number, text) for number, text in enumerate(texts.values(), 1))
        return go(replace(s, drafts=drafts), "draft_verification", list_drafts(drafts))
    s, drafts = yield from s.draw([FRESH] * s.options.n)
    return go(s, "draft_verification", drafts)


def verify(s: State) -> Body:
    """Drop refuted drafts. If a draft is proved, or only one candidate is left, skip the comparison.

    Texts from the caller are an exception: several proved texts are compared, and a text that all share is rated.
    """
    s = yield from s.verify()
    rivals = s.rivals
    is_given = bool(s.options.candidates)
    is_open = len(rivals) > 1 and (is_given or not s.proved)
    is_alone = is_given and not s.proved and [len(each.voters) for each in rivals] == [len(s.drafts)]
    if s.is_undecided:
        return _give_up(s)
    if not (is_open or is_alone) or s.options.judge == "off":
        return go(s, "answer_selection")
    longest = sorted(rivals, key=lambda each: len(each.draft.shown))[-2:]
    if is_given and (size := sum(len(each.draft.shown) for each in longest)) > ROOM:
        named = " and ".join(s.name(each.number) for each in longest)
        detail = f"{named} have {size:,} characters; a judge has room for {ROOM:,}"
        return fail(s, "too_large", detail, "payload_too_large")
    return go(replace(s, rules=s.choose_rules()), "differential_testing")


def _give_up(s: State) -> Move:
    return fail(s, "undecided", UNDECIDED.format(count=len(s.rivals)))


def distinguish(s: State) -> Body:
    """Ask for inputs t on which the programs may differ, and run each program: y_i(t)."""
    programs = {each.number: code for each in s.rivals if (code := program_in(each.draft.answer))}
    has_sandbox = any(card.name == SANDBOX_TOOL for card in s.options.tools)
    if len(programs) < 2 or not has_sandbox:
        return go(s, "comparison")
    shown = [f"Program {place}:\n{code}" for place, code in enumerate(programs.values(), 1)]
    prompt, task = "\n\n".join([f"Problem: {s.problem}", *shown]), DISTINGUISH.format(count=MAX_CALLS)
    question = Ask(prompt, task=task, facts={"kind": "inputs"}, by="judge")
    (reply,) = yield request(s, question, give_failures=True)
    if not isinstance(reply, Reply):
        return go(s, "comparison")
    inputs = reply.value.calls[:MAX_CALLS]
    calls = [CallTool(SANDBOX_TOOL, {"code": _trial(code, inputs)}) for code in programs.values()]
    returned = yield request(s, *calls, give_failures=True)
    if any(getattr(each, "code", "") == UNAVAILABLE for each in returned):
        # If only some programs ran, the judge would count the missing outputs against the other programs.
        return go(s, "comparison")
    outputs: list[list[str]] = []
    for output in map(output_of, returned):
        # A program that fails to run gets its error as the output for all inputs.
        values = output.value if isinstance(output.value, list) else [f"{RAISES}{output.error}"] * len(inputs)
        outputs.append([shorten(str(value), 200, one_line=True) for value in values])
    returning = [any(not run[at].startswith(RAISES) for run in outputs) for at in range(len(inputs))]
    inputs = tuple(compress(inputs, returning))
    returned = {str(n): tuple(compress(run, returning)) for n, run in zip(programs, outputs, strict=True)}
    lines = "\n".join(f"Draft {number}: {', '.join(run)}" for number, run in returned.items())
    thoughts = [Thought(lines, data={"inputs": list(inputs)})] if inputs else []
    return go(replace(s, inputs=inputs, outputs=returned), "comparison", *thoughts)


def _trial(program: str, inputs: Sequence[str]) -> str:
    """Extend a program with code that evaluates each expression in `inputs`, and collects the values and errors."""
    imports = "".join(f"\ntry: {name}\nexcept NameError: import {name}" for name in USUAL_MODULES)
    tries = "".join(
        f"\ntry:\n    tried.append(repr({call}))\nexcept Exception as error:"
        f"\n    tried.append(f'{RAISES}{{type(error).__name__}}: {{error}}')"
        for call in inputs
    )
    return f"{program}\n{imports}\n\ntried = []{tries}\ntried"


def compare(s: State) -> Body:
    """Ask the judge to rate drafts for problem x: r ~ judge(x, y_a, y_b, …). Stay until the tournament is over."""
    tournament = s.tournament
    questions, verdicts = tournament.next_questions(), tournament.verdicts
    if not questions:
        s = replace(s, ranking=tuple(tournament.standings()))
        return _give_up(s) if s.is_undecided else go(s, "answer_selection")

    def enough(replies: Sequence[Any]) -> bool:
        came = {place: ratings_of(questions[place], reply) for place, reply in enumerate(replies) if reply}
        known = tuple(came.get(place, Ratings(shown)) for place, shown in enumerate(questions))
        after = replace(tournament, verdicts=(*verdicts, *known))
        return not after.next_questions() and tournament.is_decided(questions, came)

    texts, criteria = {each.number: _with_run(s, each) for each in s.rivals}, s.options.criteria
    limit = ROOM if s.options.candidates else SHOWN_CHARS
    had = (sum(verdict.shown == shown for verdict in verdicts) for shown in questions)
    asks = [
        judge_question(s.problem, shown, texts, criteria=criteria, limit=limit, sample=sample)
        for shown, sample in zip(questions, had, strict=True)
    ]
    replies = yield request(s, *asks, enough=enough)
    new = tuple(ratings_of(shown, reply) for shown, reply in zip(questions, replies, strict=True))
    s = replace(s, verdicts=(*verdicts, *new))
    lines = [f"Drafts {', '.join(map(str, each.shown))}: {each.reason or 'no rating'}" for each in new]
    return stay(s, Thought("\n".join(lines), data={"comparisons": [_as_data(each) for each in new]}))


def _with_run(s: State, each: Group) -> str:
    """Return a candidate's text for a judge. A program is followed by its outputs for the distinguishing inputs."""
    run = zip(s.inputs, s.outputs.get(str(each.number), ()), strict=False)
    lines = [f"{call} → {value}" for call, value in run]
    return "\n".join([each.draft.shown, *(["Run:", *lines] if lines else [])])


class BestOfNDetails(DraftsDetails, total=False):
    """The details of a result."""

    comparisons: Annotated[list[dict[str, Any]], Meta(description="`drafts`, `ratings` and the `reason`.")]
    winner: Annotated[str, Meta(description="The id of the chosen draft.")]
    ranking: Annotated[
        list[dict[str, Any]],
        Meta(description="Given candidates, best first: `candidate`, `same`, `score`, `reasons`, `failed`."),
    ]


def conclude(state: State) -> Conclusion:
    """Return the best draft so far, the votes and the comparisons."""
    chosen, verdicts = state.best, state.verdicts
    details: dict[str, Any] = {"comparisons": [_as_data(verdict) for verdict in verdicts]}
    if chosen is not None:
        details["winner"] = chosen.id
    if state.options.candidates and state.drafts:
        details["ranking"] = _rank_given(state)
    is_left = bool(state.options.candidates and state.options.judge == "off") and len(state.rivals) > 1
    is_rated = any(verdict.ratings for verdict in verdicts)
    is_unread = chosen is not None and (is_left or bool(verdicts)) and not is_rated
    if not (is_unread and state.proved):
        conclusion = state.conclude(details, NOT_JUDGED if is_unread else "", "drafts")
        why = _preference(state, chosen, verdicts)
        return conclusion.because(why, "comparison") if why else conclusion
    warning = f"{len(state.rivals)} candidates passed, and no judge compared them: the answer is one of them"
    return state.conclude(details, "", "", [warning])


def _preference(s: State, chosen: Draft | None, verdicts: Sequence[Ratings]) -> str:
    """Return a sentence with the judge's latest reason for preferring `chosen`, or "" if the judge gave none."""
    for each in reversed(verdicts):
        reason = quote(each.reason, before="")
        if reason and chosen and chosen.number in each.shown and each.preference(chosen.number) > 0.5:
            others = [s.name(number) for number in each.shown if number != chosen.number]
            liked = " to ".join([s.name(chosen.number), *(others if len(others) == 1 else [])])
            return f"the judge prefers {liked}: {with_names(reason, each.shown, s.name)}"
    return ""


def _rank_given(s: State) -> list[dict[str, Any]]:
    """Return a table of the caller's candidates, best first, with their scores and the reasons."""
    groups = {each.number: each.voters for each in (*s.candidates, *s.rivals)}
    equal = {each for number, voters in groups.items() for each in voters if each != number}
    order: Sequence[int] = s.ranking
    if not order and s.best:
        order = [s.best.number, *s.tournament.standings()]
    refuted = [draft.number for draft in s.drafts if draft.status == "refuted"]
    numbers = dict.fromkeys([*order, *groups, *refuted])
    return [_describe_given(s, number, groups.get(number, ())) for number in numbers if number not in equal]


def _describe_given(s: State, number: int, voters: Sequence[int]) -> dict[str, Any]:
    judged = [verdict for verdict in s.verdicts if verdict.ratings and number in verdict.shown]
    shares = [verdict.preference(number) for verdict in judged]
    row = {
        "candidate": s.name(number),
        "same": [s.name(each) for each in voters if each != number],
        "score": round(sum(shares) / len(shares), 2) if shares else None,
        "reasons": [with_names(each.reason, each.shown, s.name) for each in judged if each.reason][-2:],
        "failed": s.drafts[number - 1].why.rpartition(REFUTED.partition("}")[2])[2].strip(),
    }
    return {name: value for name, value in row.items() if value not in ("", [], None)}


def _as_data(verdict: Ratings) -> dict[str, Any]:
    names = [f"draft-{number}" for number in verdict.shown]
    return {"drafts": names, "ratings": list(verdict.ratings), "reason": verdict.reason}


BEST_OF_N: Strategy[State, Options] = Strategy(
    name="best_of_n",
    version=5,
    title="Best of N",
    source="arXiv:2607.05391",
    summary="Writes several answers and lets a judge compare them: for texts and code.",
    options=Options,
    calls=14,
    least_calls=4,
    state=State,
    conclude=conclude,
    close=State.close,
    details=BestOfNDetails,
    resources=(SANDBOX_TOOL,),
    suits=("checked_drafts",),
    stages=(
        problem_reception(
            ("draft_generation",),
            "Say what is asked, and by which marks a right answer can be told from a wrong one.",
        ),
        Stage(
            "draft_generation",
            ("draft_verification",),
            description="Write several answers.",
            guidance="Write each draft from the beginning, as if there were no other; stay for the next one.",
            body=write_drafts,
        ),
        Stage(
            "draft_verification",
            ("differential_testing", "answer_selection"),
            description="Drop the drafts that can be proved wrong.",
            guidance="Run the tests there are. Put drafts that say the same together.",
            fields=(Field.optional("answers", "texts", "Each draft's answer.", minItems=1),),
            body=verify,
        ),
        Stage(
            "differential_testing",
            ("comparison",),
            description="Find inputs on which programs differ.",
            guidance="Where the drafts are programs, run them on inputs that tell them apart.",
            body=distinguish,
            reply=DistinguishingInputs,
            max_output_tokens=SHORT_REPLY,
            example={"calls": ["median([])", "median([1, 3])"]},
        ),
        Stage(
            "comparison",
            ("answer_selection",),
            repeats=True,
            compares=True,
            description="Compare the drafts in pairs.",
            guidance="Look for the first error in each of two drafts; say which is right. Stay for the next pair.",
            fields=(Field.optional("ratings", "object", "How each draft compares with the others."),),
            body=compare,
            reply=Judgement,
            read=read_judgement,
            max_output_tokens=SHORT_REPLY,
            example={"reason": "A drops the last element.", "ratings": {"A": 2, "B": 9}},
        ),
        answer_selection(
            "Choose the draft that stood best.",
            "Choose the draft that won its comparisons; never one that was proved wrong.",
            Field.optional("chosen", "string", "The draft that is chosen."),
        ),
        final_response("Give the chosen draft as it stands, whole."),
    ),
)
