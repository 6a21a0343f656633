"""Prove and refute: fresh readers try to refute the claims of a text or the proofs of solvers; their votes decide.

The method is based on the solvers and attackers of proof-refutation loops (Huang & Yang 2025, "Winning Gold at IMO 2025
with a Model-Agnostic Verification-and-Refinement Pipeline", arXiv:2507.15855).

Algorithm, for a text x with claims c_1 … c_n and three lenses l (is c_i true, does c_i follow, what is missing):

    c_1 … c_n ← the given claims, or unchecked key claims of x    claim_selection
    settle c_i without a vote by a run, arithmetic or a verifier  claim_grouping
    if five or more are open: merge claims that say the same      claim_grouping
    v_i1, quote, reason ~ p(v | x, c_i, truth), one call each     claim_attack
    if v_i1 does not confirm c_i: v_il for the other lenses       claim_attack
    V_i ← the table below, applied to the v_il                    claim_attack, verdict_table

The table: a claim is `refuted` if two lenses vote `fails` or if the lens of truth does. A claim is `confirmed` if no
lens votes `fails` and two lenses vote `holds`. If only the lens of truth was asked, its `holds` is enough. Every other
claim is `undecided`. A vote counts only if it has a reason, and a `fails` only if it also has a quotation.

Algorithm, for a problem x with n solvers:

    y_1, …, y_n ~ π(y | x, angle_i), only the finished proofs            proof_writing
    refute y_i with a false equation or a marked gap; verify the others  proof_attack
    v_1, … ~ p(v | x, y_i), at most five independent votes: four `holds`
        confirm y_i, and two `fails` refute y_i; stop once this is settled
    y' ~ π(y | x, y_best, its holes), at most `revisions` times          proof_revision
    the confirmed proof; if there is none, abstain and list the holes    answer_selection

*Differs from the paper*: Claims of the caller are tested, but not corrected. Three different lenses replace many equal
attackers, since equal attackers find the same faults. No attacker sees a score, the verdict of another attacker, or the
author's name. There is no vote on a claim that a verifier, a run or exact arithmetic has settled. If every claim is
refuted, the result has a warning, since the verdicts of attackers that refute everything are worthless.
"""

import re
from collections.abc import Iterable, Sequence, Set
from itertools import cycle, islice, zip_longest
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, to_builtins
from msgspec.structs import replace

from ..blocks.answers import MARKED, UNREADABLE, ReasonedAnswer
from ..blocks.drafts import Draft, DraftState, answer_selection
from ..blocks.judging import Groups, read_groups
from ..blocks.why import quote
from ..core.bodies import (
    Answers,
    Body,
    Conclusion,
    Move,
    Thought,
    fail,
    go,
    raise_if_all_failed,
    request,
    stay,
)
from ..core.effects import Ask, Verify
from ..core.events import Failed, Reply, Verified
from ..core.problem import quoted_thoughts
from ..core.readings import Unreadable
from ..core.strategy import SHORT_REPLY, Details, Field, Stage, Strategy, final_response, problem_reception
from ..puzzles.equations import false_equations, is_true_equation
from ..reading.verdicts import Verdict, member, read_choice
from ..reading.words import VERDICTS
from ..text import lazy_pattern, shorten

SYSTEM = "You read a text by someone else with fresh eyes."

SELECT = """Name the claims that carry the conclusion of this text and were not checked, at most {count}: estimates \
and numbers that something rests on, causes, things said to be possible, safe or enough. Quote each as it stands. \
Reply with one JSON object:
{{"claims": [{{"claim": "…"}}, …]}}"""
SELECT_FROM_THOUGHTS = """Name the claims that carry the conclusion of these thoughts and were not checked, at most \
{count}: estimates and numbers that something rests on, causes, things said to be possible, safe or enough; none of \
a thought that is marked `ran`. Quote each as it stands, with the number of its thought. Reply with one JSON \
object:
{{"claims": [{{"claim": "…", "thought": 3}}, …]}}"""

VERDICT = """ Quote the place that decides it, word for word, and say why. Say `fails` only if you can show it, \
`holds` only if you checked each step, else `unsure`. Reply with one JSON object:
{"quote": "…", "reason": "…", "verdict": "holds" or "fails" or "unsure"}"""

CLAIM = 'A claim of this text: {place}"{claim}"'

GROUP = """Put the claims together that say the same, whatever their wording; a claim that no other agrees with is a \
group of its own. Reply with JSON, the numbers of each group:
{"groups": [[1, …], …]}"""

SOLVER = "You solve problems rigorously."
FINISHED = """Give each step with its reason, and nothing of how you found it; mark what you could not show: [GAP: \
what is missing]."""
SOLVE = f"""Solve the problem as it is worded. {{angle}} Check your result before you write. Then write the \
finished solution, as it would be handed in. {FINISHED}"""
ANGLES: Final = (
    "Work forwards from what is given.",
    "Work backwards from what is asked.",
    "Try small and extreme cases first, then generalize.",
    "Look for a quantity that stays the same, or for a contradiction.",
)
"""The approaches that the solvers take in turn, so that their proofs differ."""
SOLUTION = "A solution by someone else:\n{proof}"
ATTACK_PROOF = f"""Try to refute it as an answer to the problem as it is worded: compute again, look for a \
counterexample, for a step that does not follow, for a case that is left out.{VERDICT}"""
HOLES = "Readers found these holes in it:\n{holes}"
REVISE = f"""Write the finished solution anew, whole: close the holes, or take another way where the way is what is \
wrong. {FINISHED}"""

LENSES: Final = {
    "true": "Test whether it is true. Compute it again, recall what is known, look for a case in which it is false. A "
    "figure that is only estimated fails if your own reckoning, from usual sizes and rates, comes out far from it.",
    "follows": "Test whether it follows from what the text says before it, or is only asserted there.",
    "complete": "Look for what is missing: what else would have to hold, was not checked, and would overturn it.",
}

_VERDICTS: Final = ("refuted", "undecided", "confirmed")
"""The verdicts on a claim, in the order in which the result lists the claims."""
_WORD: Final = re.compile(r"\W+")
_SCORE: Final = lazy_pattern(
    r"\b(?:score|value[ds]?(?:\s+again)?|rat(?:ed|ing)|confidence)\s*[:=]?\s*(?:0?\.\d+|1\.0|\d{1,3}\s?%)\.?"
    r"|(?<=[.:;!?])[ \t]+(?:0\.\d+|1\.0)\.?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches the author's own score of a thought, which readers must not see."""
_QUOTED_CHARS: Final = 40
"""How many characters from the start of a quotation must occur in the text."""
_CLAIM_CHARS: Final = 200
_GAP: Final = lazy_pattern(r"\[GAP\b(?!: none)[^\]]*\]?")
GROUPED_FROM: Final = 5
"""Claims are grouped if at least this many are open."""
CONFIRM, REFUTE, VOTES = 4, 2, 5
"""How many votes confirm a proof, how many votes refute a proof, and how many votes a proof gets at most."""
_FIRST_VOTES: Final = 3


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of prove-and-refute."""

    claims: Annotated[
        tuple[Annotated[str, Meta(max_length=10_000)], ...],
        Meta(max_length=200, description="The claims; none: it selects them."),
    ] = ()
    max_claims: Annotated[int, Meta(ge=1, le=50, description="Most claims that the strategy selects.")] = 3
    verify: Annotated[bool, Meta(description="Let the run's verifier rule on claims and answers.")] = False
    solvers: Annotated[int, Meta(ge=0, le=16, description="Proofs to write; 0: the problem is a text.")] = 0
    revisions: Annotated[int, Meta(ge=0, le=10, description="Most revisions of unconfirmed proofs.")] = 3


class FoundClaim(Struct, frozen=True):
    """A claim of the text."""

    claim: Annotated[str, Meta(min_length=1, description="The claim, quoted.")]
    thought: Annotated[int | None, Meta(description="The number of the thought it is in.")] = None


class Selection(Struct, frozen=True):
    """The claims that carry the text."""

    claims: Annotated[tuple[FoundClaim, ...], Meta(min_length=1, description="Unchecked claims it rests on.")]


class Attack(Struct, frozen=True):
    """A reader's finding about a claim. The reason precedes the verdict."""

    quote: Annotated[str, Meta(description="The place of the text that decides it, word for word.")] = ""
    reason: Annotated[str, Meta(description="What shows it.")] = ""
    verdict: Annotated[Literal["holds", "fails", "unsure"], Meta(description="What was shown.")] = "unsure"

    def counts(self, text: str) -> bool:
        """Whether the vote counts. It needs a reason and, if its verdict is `fails`, a quotation from the text."""
        return bool(self.reason.strip()) and (self.verdict != "fails" or _is_quoted(text, self.quote))


class Claim(Struct, frozen=True):
    """A claim, its votes (one for each lens), and its verdict."""

    text: str = field(name="claim")
    thought: int | None = None
    votes: dict[str, Attack] = {}
    settled_by: str = ""
    verdict: Literal["", "confirmed", "refuted", "undecided"] = ""
    reason: str = ""
    quote: str = ""
    also: tuple[FoundClaim, ...] = ()
    """The other claims that say the same. They were merged into this claim."""

    @property
    def place(self) -> str:
        """A text that names the claim's thought, such as `thought 3, `. Empty if the claim has no thought."""
        return "" if self.thought is None else f"thought {self.thought}, "

    @property
    def line(self) -> str:
        """One line with the verdict, the claim and the reason."""
        return f"{self.verdict}: {self.place}{self.text} ({self.reason})"


class Proof(Draft, frozen=True, omit_defaults=True):
    """A finished solution, its votes, and the holes found in it."""

    votes: tuple[Attack, ...] = ()
    holes: tuple[str, ...] = ()

    @property
    def faults(self) -> list[str]:
        """The holes found in the proof. If a verifier refuted the proof, the reason is also in the list."""
        return [*self.holes, *filter(None, [self.why])]


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the text and its claims, or the proofs of the solvers."""

    options: Options
    claims: tuple[Claim, ...] = ()
    drafts: tuple[Proof, ...] = ()
    revisions: int = 0

    @property
    def solves(self) -> bool:
        """Whether the strategy writes proofs. If the caller gives claims, the strategy only tests the claims."""
        return self.options.solvers > 0 and not self.options.claims

    @property
    def ranking(self) -> list[Proof]:
        """The unrefuted proofs, best status first. Within a status, revisions come before first versions."""
        order = ("proved", "confirmed", "undecided", "open")
        found = (proof for proof in self.drafts if proof.status in order)
        return sorted(found, key=lambda proof: (order.index(proof.status), proof.repairs == 0))

    @property
    def best(self) -> Proof | None:
        """The first proof that a verifier or the readers confirmed. None if there is no such proof."""
        return next((proof for proof in self.ranking if proof.status in ("proved", "confirmed")), None)

    def fail(self) -> Move:
        """Return the move that ends the run without an answer. The detail of the move lists the holes of all proofs."""
        holes = "; ".join(dict.fromkeys(fault for proof in self.drafts for fault in proof.faults))
        detail = f"none of {len(self.drafts)} proofs was confirmed; {holes or 'no reader could decide'}"
        return fail(self, "abstained", shorten(detail, 1_000, one_line=True))

    def ask_reader(self, kind: str, task: str, *shown: str, **parts: Any) -> Ask:
        """Build a question to a reader. The author's own scores are removed from the text."""
        prompt = "\n\n".join([_SCORE.sub("", self.problem), *shown])
        return Ask(prompt, SYSTEM, task=task, facts={"kind": kind}, by="judge", **parts)

    def ask_solver(self, kind: str, task: str, *shown: str, **parts: Any) -> Ask:
        """Build a question to a solver."""
        prompt = "\n\n".join([f"Problem: {self.problem}", *shown])
        verify = self.options.verify
        return Ask(prompt, SOLVER, MARKED, task, wants_value=verify, facts={"kind": kind}, **parts)


def receive(s: State) -> Move:
    """Start with proofs if the strategy solves a problem. Otherwise, start with the claims of the text x."""
    return go(s, "proof_writing" if s.solves else "claim_selection")


# -- claims of a text


def select(s: State) -> Body:
    """Take the caller's claims c_1 … c_n. If there are none, ask for the key claims of text x."""
    count, thoughts = s.options.max_claims, quoted_thoughts(s.problem)
    claims = [
        Claim(text, next((each.number for each in thoughts if _is_quoted(each.text, text)), None))
        for text in s.options.claims
    ]
    if not claims:
        task = (SELECT_FROM_THOUGHTS if thoughts else SELECT).format(count=count)
        (reply,) = yield request(s, s.ask_reader("selection", task))
        found = dict.fromkeys((each.claim, each.thought) for each in reply.value.claims)
        claims = [Claim(*each) for each in found][:count]
    return go(replace(s, claims=tuple(claims)), "claim_grouping", *(Thought(claim.text) for claim in claims))


def group(s: State) -> Body:
    """Settle the claims that need no reader. If many claims are left, merge equal claims."""
    looks = [Verify(s.problem, (claim.text,), about=f"claim-{at}") for at, claim in enumerate(s.claims, 1)]
    verdicts = yield request(s, *(looks if s.options.verify else ()), give_failures=True)
    ran = {thought.number for thought in quoted_thoughts(s.problem) if thought.ran}
    claims = [_settle(s.problem, ran, *each) for each in zip_longest(s.claims, verdicts)]
    s = replace(s, claims=tuple(claims))
    unsettled = [claim for claim in claims if not claim.verdict]
    if len(unsettled) < GROUPED_FROM:
        return go(s, "claim_attack")
    texts = [
        f"{at}. {shorten(claim.text, _CLAIM_CHARS, one_line=True)}" for at, claim in enumerate(unsettled, 1)
    ]
    facts = {"kind": "group", "count": len(unsettled)}
    ask = Ask("\n".join(texts), SYSTEM, task=GROUP, facts=facts, by="judge")
    (reply,) = yield request(s, ask, give_failures=True)
    if isinstance(reply, Reply):
        grouped = ([unsettled[at - 1] for at in sorted(numbers)] for numbers in reply.value.groups)
        merged = (
            replace(first, also=tuple(FoundClaim(other.text, other.thought) for other in others))
            for first, *others in grouped
        )
        s = replace(s, claims=(*filter(lambda claim: claim.verdict, claims), *merged))
    return go(s, "claim_attack")


def attack(s: State) -> Body:
    """Ask readers to vote on the open claims. v_il is the vote on claim c_i through lens l."""
    first, *others = LENSES
    for lenses in ([first], others):
        asks: dict[tuple[int, str], Ask] = {}
        for at, claim in enumerate(s.claims):
            is_doubted = claim.votes and claim.verdict != "confirmed"
            for lens in lenses if is_doubted or not claim.verdict else ():
                shown = CLAIM.format(
                    place=claim.place, claim=shorten(claim.text, _CLAIM_CHARS, one_line=True)
                )
                asks[at, lens] = s.ask_reader(lens, LENSES[lens] + VERDICT, shown, about=f"claim-{at + 1}")
        answers = yield request(s, *asks.values(), give_failures=True)
        if lenses == [first]:
            _raise_if_nobody_replied(answers)
        claims = [*s.claims]
        for (at, lens), answer in zip(asks, answers, strict=True):
            if isinstance(answer, Reply):
                claims[at] = replace(claims[at], votes=claims[at].votes | {lens: answer.value})
        s = replace(s, claims=tuple(each if each.settled_by else judge(s.problem, each) for each in claims))
    return go(s, "verdict_table")


def _raise_if_nobody_replied(answers: Answers) -> None:
    """Raise the first failure if no question got a reply. An unreadable reply counts as a reply."""
    if not any(isinstance(answer, Failed) and answer.code == UNREADABLE for answer in answers):
        raise_if_all_failed(answers)


def read_attack(_: State, ask: Ask, texts: Sequence[str]) -> tuple[Attack, str] | Unreadable:
    """Read a reader's verdict, with its quotation and its reason."""
    found = read_choice(texts[-1], VERDICTS, ask.prompt)
    if not isinstance(found, Verdict):
        return found
    quote = member(found.data, frozenset({"quote"}))
    attack = Attack(quote if isinstance(quote, str) else "", found.reason)
    if found.word == "fails" and len(texts) == 1 and not _is_quoted(ask.prompt, attack.quote):
        return Unreadable("its quote is no place of the text; quote the place word for word", is_doubt=True)
    return replace(attack, verdict=found.word), found.mode


def _settle(problem: str, ran: Set[int], claim: Claim, ruled: Any) -> Claim:
    """Confirm a claim if its thought is marked as run. Otherwise, arithmetic or the verifier may settle the claim."""
    if claim.thought in ran:
        why = f"thought {claim.thought} is marked as run"
        return replace(claim, settled_by="run", verdict="confirmed", reason=why)
    if faults := false_equations(claim.text):
        why = faults[0]
        return replace(claim, settled_by="arithmetic", verdict="refuted", reason=why, quote=claim.text)
    if is_true_equation(claim.text, about=problem):
        return replace(claim, settled_by="arithmetic", verdict="confirmed", reason="the equation holds")
    if not isinstance(ruled, Verified) or ruled.verdict == "unknown":
        return claim
    verdict = "confirmed" if ruled.verdict == "right" else "refuted"
    why = ruled.detail or f"proved {ruled.verdict}"
    return replace(claim, settled_by="verifier", verdict=verdict, reason=why)


def judge(problem: str, claim: Claim) -> Claim:
    """Apply the table at the top of this file to a claim. Fill in the claim's verdict, reason and quotation."""
    counted = {lens: vote for lens, vote in claim.votes.items() if vote.counts(f"{problem}\n{claim.text}")}
    fails, holds = _sides(counted.values())
    if len(fails) >= 2 or counted.get("true") in fails:
        verdict, deciding = "refuted", fails
    elif not fails and len(holds) >= min(2, len(claim.votes)) > 0:
        verdict, deciding = "confirmed", holds
    else:
        found = list[str]()
        for lens, vote in claim.votes.items():
            lacks = " (no place of the text)" if vote.verdict == "fails" and lens not in counted else ""
            found.append(f"{lens}: {vote.verdict}{lacks}, {vote.reason.strip().rstrip('.') or 'no reason'}")
        return replace(claim, verdict="undecided", reason="; ".join(found) or "no reader gave a verdict")
    quote = next((vote.quote for vote in deciding if _is_quoted(problem, vote.quote)), "")
    return replace(claim, verdict=verdict, reason=deciding[0].reason, quote=quote)


def _sides(votes: Iterable[Attack]) -> tuple[list[Attack], list[Attack]]:
    """Split the votes into two lists: the `fails` votes and the `holds` votes."""
    fails, holds = ([vote for vote in votes if vote.verdict == side] for side in ("fails", "holds"))
    return fails, holds


def _is_quoted(text: str, quote: str) -> bool:
    wanted = _WORD.sub(" ", quote.casefold()).strip()[:_QUOTED_CHARS].strip()
    return bool(wanted) and wanted in _WORD.sub(" ", text.casefold())


def record(s: State) -> Move:
    """Record each verdict V_1 … V_n as a thought."""
    thoughts = [
        Thought(claim.line, data={"verdict": claim.verdict, "node_id": f"claim-{at}"})
        for at, claim in enumerate(s.claims, 1)
    ]
    return go(s, "final_response", *thoughts)


# -- proofs of a problem


def write_proofs(s: State) -> Body:
    """Ask n solvers for proofs, each from an angle of its own: y_1, …, y_n ~ π(y | x, angle_i)."""
    angles = enumerate(islice(cycle(ANGLES), s.options.solvers))
    asks = [s.ask_solver("proof", SOLVE.format(angle=angle), sample=place) for place, angle in angles]
    answers = yield request(s, *asks, give_failures=True)
    raise_if_all_failed(answers)
    return _add_proofs(s, answers)


def _add_proofs(s: State, answers: Sequence[Any], repairs: int = 0) -> Move:
    """Add the written proofs. A false equation or a marked gap refutes a proof at once."""
    proofs: list[Proof] = []
    for number, answer in enumerate((each for each in answers if isinstance(each, Reply)), len(s.drafts) + 1):
        value: ReasonedAnswer = answer.value
        proof = Proof(number, value.text, steps=tuple(filter(None, [value.reasoning])), repairs=repairs)
        faults = false_equations(proof.text, about=s.problem) or _GAP.findall(proof.text)
        proofs.append(replace(proof, status="refuted", holes=tuple(faults)) if faults else proof)
    s = replace(s, drafts=(*s.drafts, *proofs))
    return go(s, "proof_attack", *(Thought(proof.text) for proof in proofs))


def attack_proof(s: State) -> Body:
    """Ask readers for votes v_1, … on the first open proof. Stay until a proof is confirmed or none is open."""
    s = yield from s.verify()
    proof = next((proof for proof in s.ranking if proof.status == "open"), None)
    if s.best is not None or proof is None:
        can_revise = s.best is None and s.revisions < s.options.revisions
        return go(s, "proof_revision" if can_revise else "answer_selection")
    # Ask for the fewest votes that could decide the proof now.
    cast, (_, holds) = len(proof.votes), _sides(proof.votes)
    wanted = max(1, CONFIRM - len(holds)) if cast else _FIRST_VOTES
    shown, about = SOLUTION.format(proof=proof.text), f"proof-{proof.number}"
    samples = range(cast, min(cast + wanted, VOTES))
    asks = [s.ask_reader("attack", ATTACK_PROOF, shown, about=about, sample=sample) for sample in samples]
    answers = yield request(s, *asks, give_failures=True)
    if not cast:
        _raise_if_nobody_replied(answers)
    votes = [answer.value if isinstance(answer, Reply) else Attack() for answer in answers]
    proof = count_votes(s.problem, replace(proof, votes=(*proof.votes, *votes)))
    s = replace(s, drafts=tuple(proof if each.number == proof.number else each for each in s.drafts))
    if proof.status == "open":
        return stay(s)
    found = [f"Proof {proof.number}: {proof.status}", *proof.holes]
    return stay(s, Thought("\n- ".join(found), data={"verdict": proof.status}))


def count_votes(problem: str, proof: Proof) -> Proof:
    """Decide a proof by its votes, and collect its holes. The proof stays open while more votes are needed."""
    counted = [vote for vote in proof.votes if vote.counts(f"{problem}\n{proof.text}")]
    fails, holds = map(len, _sides(counted))
    left = VOTES - len(proof.votes)
    if fails < REFUTE and holds >= CONFIRM:
        return replace(proof, status="confirmed")
    if fails < REFUTE and (fails + left >= REFUTE or holds + left >= CONFIRM):
        return proof
    holes = tuple(f"{vote.quote}: {vote.reason}" for vote in counted if vote.verdict != "holds")
    return replace(proof, status="refuted" if fails >= REFUTE else "undecided", holes=holes)


def revise(s: State) -> Body:
    """Ask a solver to repair the holes of the best proof, y_best: y' ~ π(y | x, y_best, its holes)."""
    proof = min(s.drafts, key=lambda each: (each.status == "refuted", len(each.faults), -each.number))
    holes = "\n".join(f"- {fault}" for fault in proof.faults) or "- Not every step was shown."
    s = replace(s, revisions=s.revisions + 1)
    shown = (SOLUTION.format(proof=proof.text), HOLES.format(holes=holes))
    ask = s.ask_solver("revision", REVISE, *shown, about=f"proof-{proof.number}")
    answers = yield request(s, ask, give_failures=True)
    _raise_if_nobody_replied(answers)
    return _add_proofs(s, answers, proof.number)


# -- the result


class ProveAndRefuteDetails(Details, total=False):
    """The details of a result: proofs with solvers, else claims."""

    proofs: Annotated[list[dict[str, Any]], Meta(description="`answer`, `verdict`, `votes`, `holes`, …")]
    revisions: Annotated[int, Meta(description="Revisions made.")]
    claims: Annotated[list[dict[str, Any]], Meta(description="`claim`, `verdict`, `reason`, `also`, …")]
    at_most: Annotated[int, Meta(description="Before the first vote, the most questions to come.")]
    refutation_rate: Annotated[float, Meta(description="Share of the claims that were refuted.")]
    warning: Annotated[str, Meta(description="That every claim was refuted.")]


def conclude(state: State) -> Conclusion:
    """Return the best proof, or the verdicts on the claims."""
    return _conclude_proofs(state) if state.solves else _conclude_claims(state)


def _conclude_proofs(state: State) -> Conclusion:
    proofs = [
        {
            "number": proof.number,
            "answer": proof.answer,
            "verdict": None if proof.status == "open" else proof.status,
            "votes": [vote.verdict for vote in proof.votes],
            "holes": proof.faults,
            "revises": proof.repairs or None,
        }
        for proof in state.drafts
    ]
    document: dict[str, Any] = {"proofs": proofs, "revisions": state.revisions}
    if not state.ranking:
        return Conclusion(document=document)
    best = state.ranking[0]
    certainty = "proved" if best.status == "proved" else "given"
    holds = len(_sides(best.votes)[1])
    why = f"{holds} of {len(best.votes)} readers found no fault in proof {best.number}"
    end = Conclusion(best.text, document=document, short=best.answer, certainty=certainty)
    return end.because(why, "proof_attack")


def _conclude_claims(state: State) -> Conclusion:
    """Return the verdicts, with the refuted claims first."""
    claims = sorted(state.claims, key=lambda claim: (*_VERDICTS, "").index(claim.verdict))
    rate = sum(claim.verdict == "refuted" for claim in claims) / len(claims) if claims else 0.0
    shown = [
        to_builtins(claim)
        | {
            "votes": {lens: vote.verdict for lens, vote in claim.votes.items()},
            "also": [*map(to_builtins, claim.also)],
        }
        for claim in claims
    ]
    document: dict[str, Any] = {"claims": shown, "refutation_rate": round(rate, 3)}
    if not any(claim.votes for claim in claims):
        unsettled = sum(not claim.verdict for claim in claims) if claims else state.options.max_claims
        questions = len(LENSES) * unsettled + (unsettled >= GROUPED_FROM) + (not claims)
        document |= {"at_most": questions} if questions else {}
    if rate == 1 and len(claims) > 1:
        document["warning"] = "Every claim was refuted; look at the reasons before you believe it."
    if not any(claim.verdict for claim in claims):
        return Conclusion(document=document)
    first, count = claims[0], sum(claim.verdict == claims[0].verdict for claim in claims)
    found = f"{quote(first.text, 90)}{quote(first.reason, before='; ')}"
    why = f"{count} of {len(claims)} claims {first.verdict}{found}"
    end = Conclusion("\n".join(claim.line for claim in claims), document=document)
    return end.because(why, f"claim-{state.claims.index(first) + 1}")


PROVE_AND_REFUTE: Strategy[State, Options] = Strategy(
    name="prove_and_refute",
    version=2,
    title="Prove and refute",
    source="arXiv:2507.15855",
    summary="Lets fresh readers try to refute each claim of a text, a plan or a proof: before a step you cannot undo.",
    aliases=("refute",),
    options=Options,
    calls=4,
    least_calls=2,
    needs_least=True,
    state=State,
    conclude=conclude,
    close=lambda s: go(s, "verdict_table") if any(claim.verdict for claim in s.claims) else None,
    details=ProveAndRefuteDetails,
    task_after_thoughts="Refute these thoughts: which of their claims carry the conclusion and do not hold?",
    stages=(
        problem_reception(
            ("claim_selection", "proof_writing"),
            "Say what the text concludes, and what it costs if that is wrong; of a problem, what is asked.",
            description="Take in the text, or the problem.",
            body=receive,
        ),
        Stage(
            "claim_selection",
            ("claim_grouping",),
            description="Name the claims that carry the conclusion.",
            guidance="Quote each claim that the conclusion rests on and that nobody has checked.",
            fields=(Field.optional("claims", "texts", "The claims that carry the conclusion, quoted."),),
            body=select,
            reply=Selection,
            example={"claims": [{"claim": "Counting five tables takes 20 s.", "thought": 11}]},
        ),
        Stage(
            "claim_grouping",
            ("claim_attack",),
            description="Put claims together that say the same.",
            guidance="Compute what can be computed. Put claims together that say the same; each keeps its places.",
            body=group,
            reply=Groups,
            read=read_groups,
            example={"groups": [[1, 3], [2]]},
        ),
        Stage(
            "claim_attack",
            ("verdict_table",),
            description="Try to refute each claim, with each lens by itself.",
            guidance="Compute it again, look for a counterexample, for a step that does not follow, and for what is "
            "missing. Quote the place that decides.",
            body=attack,
            reply=Attack,
            read=read_attack,
            max_output_tokens=SHORT_REPLY,
            example={
                "quote": "count(*) on the five hot tables, 20 s",
                "reason": "A count reads the whole table; at 100 GB that takes minutes.",
                "verdict": "fails",
            },
        ),
        Stage(
            "verdict_table",
            ("final_response",),
            description="Count the verdicts.",
            guidance="Refuted where two lenses fail the claim or it is shown to be false; confirmed where none does "
            "and two hold; undecided else.",
            fields=(Field.optional("verdict", "string", "The verdict on the claim.", enum=[*_VERDICTS]),),
            body=record,
        ),
        Stage(
            "proof_writing",
            ("proof_attack",),
            tested_by="proof_attack",
            description="Write several proofs, each from another angle.",
            guidance="Write the finished proof alone, each step with its reason; mark what you could not show.",
            body=write_proofs,
            reply=ReasonedAnswer,
            example={"reasoning": "n(n + 1) is even, as one of two neighbors is.", "answer": "Yes"},
        ),
        Stage(
            "proof_attack",
            ("proof_revision", "answer_selection"),
            repeats=True,
            description="Have fresh readers try to refute a proof, blind to one another.",
            guidance="See the proof alone. Four of five readers confirm it, two refute it; stay for the next proof.",
            body=attack_proof,
            reply=Attack,
            read=read_attack,
            max_output_tokens=SHORT_REPLY,
            example={"quote": "so n is even", "reason": "n = 3 is a counterexample.", "verdict": "fails"},
        ),
        Stage(
            "proof_revision",
            ("proof_attack",),
            tested_by="proof_attack",
            description="Mend the best proof.",
            guidance="Write the proof anew from what was found wrong with it, not from who found it.",
            body=revise,
            reply=ReasonedAnswer,
            example={"reasoning": "One of n and n + 1 is even, so n(n + 1) is.", "answer": "Yes"},
        ),
        answer_selection(
            "Take the proof that stands.",
            "Take the confirmed proof; where none is, abstain and say which holes are left.",
        ),
        final_response(
            "List the refuted claims first, each with the quoted place and the reason; a proof whole.",
            description="Give the verdicts, or the proof.",
        ),
    ),
)
