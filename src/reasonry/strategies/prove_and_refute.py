"""Prove and refute, for given claims: fresh readers try to refute what a text rests on, and a table counts.

After the attackers of proof-refutation loops (Huang & Yang 2025, "Winning Gold at IMO 2025 with a Model-Agnostic
Verification-and-Refinement Pipeline", arXiv:2507.15855), without the solvers.

Algorithm, for a text x with claims c_1 … c_n and lenses l (is it true, does it follow, what is missing):

    c_1 … c_n ← given, or the claims that carry x, unchecked      claim_selection
    c_i false by arithmetic, run, or settled by a verifier: exempt claim_attack
    v_il, quote, reason ~ p(v | x, c_i, l), each by itself        claim_attack
    V_i ← the table of the v_il                                   claim_attack, verdict_table

The table is exhaustive: `refuted` where two lenses fail the claim, or the lens of truth does; `confirmed` where none
does and two hold; `undecided` else. A verdict counts only with a reason, and a failure only with a quoted place.

The claims of quoted thoughts are found without a model (`core/carrying_claims.py`), those of other texts by a reader.

*Differs from the paper*: the claims are given, so there is nothing to solve and to correct; three different lenses
replace many equal attackers, as equal ones find the same; no attacker sees a score, another attacker's verdict, or who
wrote the text; what a verifier, a test or exact arithmetic has settled is not put to the vote; where every claim is
refuted the result warns, as an attacker that refutes everything says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.carrying_claims import carrying_claims, quoted_thoughts
from ..core.effects import Ask, Verify
from ..core.events import Failed, Verified
from ..core.strategy import (
    SHORT_REPLY,
    Body,
    Conclusion,
    EffectFailed,
    Field,
    Move,
    Stage,
    Strategy,
    Thought,
    go,
    request,
    text_list,
)
from ..core.text import first_words
from ..patterns import lazy_pattern
from ..puzzles import false_equations

SYSTEM = """You read a text by someone else with fresh eyes. You owe it nothing: what is wrong in it is to be found \
before it is acted upon; what is right is to be left alone. You are told at the end what to do now."""

SELECT = """Now name the claims that carry the conclusion of this text and were not checked, at most {count}: \
estimates and numbers that something rests on, causes, things said to be possible, safe or enough. Quote each as it \
stands, with the number of the thought it is in. Leave out what a run, a test or a verifier has settled (thoughts \
marked `ran`).
{{"claims": [{{"claim": "quoted", "thought": 3 or null}}]}}"""

ATTACK = """A claim of this text: {place}"{claim}"

Now {task} Quote the place of the text that decides it, word for word, and say why. Say `fails` only if you can show \
it, `holds` only if you checked it, else `unsure`.
{{"quote": "…", "reason": "…", "verdict": "holds" or "fails" or "unsure"}}"""

Lens = Literal["true", "follows", "complete"]
LENSES: Final[dict[Lens, str]] = {
    "true": "test whether it is true. Compute it again, recall what is known, look for a case in which it is false. A "
    "figure that is only estimated fails if your own reckoning, from usual sizes and rates, comes out far from it.",
    "follows": "test whether it follows from what the text says before it, or is only asserted there.",
    "complete": "look for what is missing: what else would have to hold, was not checked, and would overturn it.",
}

_WORD: Final = re.compile(r"\W+")
_SCORE: Final = lazy_pattern(
    r"\b(?:score|value[ds]?(?:\s+again)?|rat(?:ed|ing)|confidence)\s*[:=]?\s*(?:0?\.\d+|1\.0|\d{1,3}\s?%)\.?"
    r"|(?<=[.:;!?])[ \t]+(?:0\.\d+|1\.0)\.?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""The author's own score of a thought, which no reader is shown."""
_QUOTED_CHARS: Final = 40
"""So much of a quotation must stand in the text."""
_CLAIM_CHARS: Final = 200


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of prove-and-refute."""

    claims: Annotated[
        tuple[str, ...], Meta(max_length=50, description="The claims; none: the strategy selects them.")
    ] = ()
    max_claims: Annotated[int, Meta(ge=1, le=50, description="Most claims that the strategy selects.")] = 8
    lenses: Annotated[tuple[Lens, ...], Meta(min_length=1, description="Tests of each claim.")] = (
        "true",
        "follows",
        "complete",
    )
    verify: Annotated[bool, Meta(description="Let the run's verifier settle claims first.")] = False


class FoundClaim(Struct, frozen=True):
    """A claim of the text."""

    claim: Annotated[str, Meta(min_length=1, description="The claim, quoted.")]
    thought: Annotated[int | None, Meta(description="The number of the thought it is in.")] = None


class Selection(Struct, frozen=True):
    """The claims that carry the text."""

    claims: Annotated[
        tuple[FoundClaim, ...], Meta(min_length=1, description="Unchecked claims that carry it.")
    ]


class Attack(Struct, frozen=True):
    """What one reader found of one claim; the reason stands before the verdict."""

    quote: Annotated[str, Meta(description="The place of the text that decides it, word for word.")] = ""
    reason: Annotated[str, Meta(description="What shows it.")] = ""
    verdict: Annotated[Literal["holds", "fails", "unsure"], Meta(description="What was shown.")] = "unsure"


class Claim(Struct, frozen=True, omit_defaults=True):
    """A claim, what each lens found of it, and the verdict of the table."""

    text: str
    thought: int | None = None
    found: tuple[tuple[Lens, Attack], ...] = ()
    settled_by: str = ""
    """What decided it without a vote."""
    verdict: Literal["", "confirmed", "refuted", "undecided"] = ""
    reason: str = ""
    quote: str = ""


class State(Struct, frozen=True, omit_defaults=True):
    """The text and its claims."""

    problem: str
    options: Options
    claims: tuple[Claim, ...] = ()


def select(s: State) -> Body:
    """c_1 … c_n: those given, else those that carry x unchecked."""
    count = s.options.max_claims
    claims = tuple(Claim(text, _thought_of(s.problem, text)) for text in s.options.claims)
    claims = claims or tuple(
        Claim(text, number) for text, number in carrying_claims(quoted_thoughts(s.problem), count)
    )
    if not claims:
        task = SELECT.format(count=count)
        (reply,) = yield request(s, _question(s, "selection", task, count=count))
        found: Selection = reply.value
        claims = tuple(Claim(claim.claim, claim.thought) for claim in found.claims[:count])
    return go(replace(s, claims=claims), "claim_attack", *(Thought(claim.text) for claim in claims))


def attack(s: State) -> Body:
    """v_il: each open claim is put to each lens by itself; arithmetic, runs and the verifier come first."""
    ran = {thought.number for thought in quoted_thoughts(s.problem) if thought.evidence == "ran"}
    claims = tuple(_by_arithmetic(_by_run(claim, ran)) for claim in s.claims)
    if s.options.verify and claims:
        looks = [Verify(s.problem, (claim.text,), about=_name(place)) for place, claim in enumerate(claims)]
        verdicts = yield request(s, *looks, give_failures=True)
        claims = tuple(map(_by_verifier, claims, verdicts))
    s = replace(s, claims=claims)
    put: list[tuple[int, Lens]] = [
        (place, lens)
        for place, claim in enumerate(claims)
        if not claim.settled_by
        for lens in s.options.lenses
    ]
    asks = [
        _question(
            s,
            lens,
            ATTACK.format(
                place=_place(claims[place]),
                claim=first_words(claims[place].text, _CLAIM_CHARS),
                task=LENSES[lens],
            ),
            about=_name(place),
        )
        for place, lens in put
    ]
    replies: tuple[Any, ...] = (yield request(s, *asks, give_failures=True)) if asks else ()
    answered = [
        (place, lens, reply.value)
        for (place, lens), reply in zip(put, replies, strict=True)
        if not isinstance(reply, Failed)
    ]
    if asks and not answered:
        raise EffectFailed(replies[0], replies)
    claims = tuple(
        replace(claim, found=tuple((lens, found) for at, lens, found in answered if at == place))
        for place, claim in enumerate(claims)
    )
    claims = tuple(claim if claim.verdict else judge(s.problem, claim) for claim in claims)
    return go(replace(s, claims=claims), "verdict_table")


def record(s: State) -> Move:
    """V_1 … V_n, each a thought of its own."""
    thoughts = [
        Thought(f"{claim.text}: {claim.verdict}. {claim.reason}", data={"verdict": claim.verdict})
        for claim in s.claims
    ]
    return go(s, "final_response", *thoughts)


def judge(problem: str, claim: Claim) -> Claim:
    """Return a claim with the verdict of the table, the reason and the quoted place that decided."""
    counted = [(lens, found) for lens, found in claim.found if _counts(problem, claim, found)]
    votes = Counter(found.verdict for _, found in counted)
    is_false = any(lens == "true" and found.verdict == "fails" for lens, found in counted)
    if is_false or votes["fails"] >= 2:
        verdict, side = "refuted", "fails"
    elif not votes["fails"] and votes["holds"] >= min(2, len(claim.found) or 1):
        verdict, side = "confirmed", "holds"
    else:
        verdict, side = "undecided", "fails" if votes["fails"] else "unsure"
    deciding = [found for _, found in counted if found.verdict == side] or [found for _, found in claim.found]
    reason = deciding[0].reason if deciding else "no reader gave a verdict with a reason"
    if verdict == "undecided":
        reason = "; ".join(_why(problem, claim, lens, found) for lens, found in claim.found) or reason
    quote = next((found.quote for found in deciding if _is_quoted(problem, found.quote)), "")
    return replace(claim, verdict=verdict, reason=reason, quote=quote)


def _counts(problem: str, claim: Claim, found: Attack) -> bool:
    """Whether a verdict counts: it has a reason, and a failure quotes a place of the text."""
    is_placed = found.verdict != "fails" or _is_quoted(f"{problem}\n{claim.text}", found.quote)
    return bool(found.reason.strip()) and is_placed


def _why(problem: str, claim: Claim, lens: Lens, found: Attack) -> str:
    """Return what a lens found of a claim that the table cannot decide."""
    why = found.reason.strip().rstrip(".") or "no reason"
    is_out = found.verdict == "fails" and not _counts(problem, claim, found)
    return f"{lens}: {found.verdict}{' (no place of the text)' * is_out}, {why}"


def _is_quoted(text: str, quote: str) -> bool:
    wanted = _WORD.sub(" ", quote.casefold()).strip()[:_QUOTED_CHARS].strip()
    return bool(wanted) and wanted in _WORD.sub(" ", text.casefold())


def _by_run(claim: Claim, ran: Collection[int | None]) -> Claim:
    if claim.thought is None or claim.thought not in ran:
        return claim
    reason = f"thought {claim.thought} is marked as run"
    return replace(claim, settled_by="run", verdict="confirmed", reason=reason)


def _by_arithmetic(claim: Claim) -> Claim:
    faults = false_equations(claim.text)
    if not faults:
        return claim
    return replace(claim, settled_by="arithmetic", verdict="refuted", reason=faults[0], quote=claim.text)


def _by_verifier(claim: Claim, verdict: Any) -> Claim:
    result = verdict.verdict if isinstance(verdict, Verified) else "unknown"
    if claim.settled_by or result == "unknown":
        return claim
    found = "confirmed" if result == "right" else "refuted"
    return replace(claim, settled_by="verifier", verdict=found, reason=verdict.detail or f"proved {result}")


def _thought_of(problem: str, text: str) -> int | None:
    """Return the number of the thought that a given claim is in, where thoughts are quoted below the problem."""
    return next(
        (thought.number for thought in quoted_thoughts(problem) if _is_quoted(thought.text, text)), None
    )


def conclude(state: State) -> Conclusion:
    """Return the verdicts, refuted claims first; before there are any, the claims."""
    order = ("refuted", "undecided", "confirmed", "")
    is_judged = any(claim.verdict for claim in state.claims)
    claims = sorted(state.claims, key=lambda claim: order.index(claim.verdict))
    rate = sum(claim.verdict == "refuted" for claim in claims) / len(claims) if claims else 0.0
    document: dict[str, Any] = {
        "claims": [_document(claim) for claim in claims],
        "refutation_rate": round(rate, 3),
    }
    if rate == 1 and len(claims) > 1:
        document["warning"] = "Every claim was refuted; look at the reasons before you believe it."
    lines = [f"{claim.verdict}: {_place(claim)}{claim.text} ({claim.reason})" for claim in claims]
    return Conclusion("\n".join(lines) if is_judged else None, document=document)


def _document(claim: Claim) -> dict[str, Any]:
    return {
        "claim": claim.text,
        "thought": claim.thought,
        "verdict": claim.verdict or None,
        "reason": claim.reason,
        "quote": claim.quote,
        "settled_by": claim.settled_by or None,
        "votes": {lens: found.verdict for lens, found in claim.found},
    }


def _place(claim: Claim) -> str:
    return "" if claim.thought is None else f"thought {claim.thought}, "


def _name(place: int) -> str:
    return f"claim-{place + 1}"


def _question(state: State, kind: str, task: str, count: int = 0, about: str = "") -> Ask:
    text = _SCORE.sub("", state.problem)
    facts = {"kind": kind, "problem": text, **({"count": count} if count else {})}
    return Ask(f"{text}\n\n{task}", SYSTEM, facts, by="judge", about=about)


_CLAIMS = text_list("The claims that carry the conclusion, quoted.")
_VERDICT = {
    "type": "string",
    "enum": ["confirmed", "refuted", "undecided"],
    "description": "What came of the claim.",
}

PROVE_AND_REFUTE: Strategy[State, Options] = Strategy(
    name="prove_and_refute",
    title="Prove and refute",
    source="arXiv:2507.15855",
    summary="Lets fresh readers try to refute the claims of a text or plan: before you act on it.",
    aliases=("refute",),
    options=Options,
    calls=4,
    state=State,
    conclude=conclude,
    progress=lambda state: {"claims": len(state.claims)},
    task_after_thoughts="Refute these thoughts: which of their claims carry the conclusion and do not hold?",
    stages=(
        Stage(
            "problem_reception",
            ("claim_selection",),
            description="Take in the text.",
            guidance="Say what the text concludes, and what it would cost if that were wrong.",
        ),
        Stage(
            "claim_selection",
            ("claim_attack",),
            description="Name the claims that carry the conclusion.",
            guidance="Quote each claim that the conclusion rests on and that nobody has checked.",
            fields=(Field("claims", _CLAIMS, required=False),),
            body=select,
            reply=Selection,
            example={"claims": [{"claim": "Counting five tables takes 20 s.", "thought": 11}]},
        ),
        Stage(
            "claim_attack",
            ("verdict_table",),
            description="Try to refute each claim, with each lens by itself.",
            guidance="Compute it again, look for a counterexample, for a step that does not follow, and for what is "
            "missing. Quote the place that decides.",
            body=attack,
            reply=Attack,
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
            fields=(Field("verdict", _VERDICT, required=False),),
            body=record,
        ),
        Stage(
            "final_response",
            description="Give the verdicts.",
            guidance="List the refuted claims first, each with the quoted place and the reason.",
        ),
    ),
)
