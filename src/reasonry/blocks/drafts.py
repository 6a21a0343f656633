"""Drafts: an inner strategy writes several answers in parallel. The drafts are verified, and equal drafts are grouped.

Rule 1: a refuted draft is no candidate. A proved draft cancels the drafts that are still being written.
Rule 2: equal drafts form one candidate with one vote each. The first draft, or a proved draft, represents the group.
Rule 3: a draft that was cut off is no candidate. It becomes the answer only if there is no candidate.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.bodies import Body, Conclusion, Move, Request, Thought, fail, go, request
from ..core.effects import RunStrategy, Verify
from ..core.events import STOPPED, Delivered, Failed, Finished
from ..core.problem import IMPROVE, with_quoted
from ..core.strategy import Field, Stage
from ..reading.vote import tally
from ..text import shorten, strip_blank_lines
from .answers import FinalAnswer
from .programs import code_in, code_key

SHOWN_CHARS: Final = 12_000
"""How many characters of a draft are shown to its reviewer or its author."""

FRESH: Final = (None, "")
"""The entry in `DraftState.draw(earlier)` for a draft that is written from scratch: no draft, no review."""
PLAIN_WRITER: Final = "chain_of_thought"
"""The default inner strategy."""
_DRAWN: Final = ("tree", "best", "drafts", "samples", "votes", "iterations", "tasks")


class DraftOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every strategy that collects drafts. Subclasses add their own options."""

    over: Annotated[str, Meta(min_length=1, description="Strategy that writes a draft.")] = PLAIN_WRITER
    over_options: Annotated[dict[str, Any], Meta(description="Options of that strategy.")] = {}
    verify: Annotated[bool, Meta(description="Let the run's verifier check each answer.")] = False

    @property
    def drawn_with(self) -> dict[str, Any]:
        """The options of the inner strategy. By default, the inner strategy does not repair its answer."""
        if self.over_options or self.over != PLAIN_WRITER:
            return self.over_options
        return {"verify": self.verify, "max_repairs": 0}


class Draft(Struct, frozen=True, omit_defaults=True):
    """A draft: an answer, or a failed attempt at an answer.

    Attributes:
        number: The index of the draft in the run, from 1.
        short: The bare answer that votes compare, if `answer` contains additional text.
        steps: The steps of the reasoning, if the inner strategy states them.
        status: `proved` or `refuted` by a verifier; `confirmed` or `undecided` by readers; `unfinished` if it was
            cut off; `lost` if the draft has no answer.
        checked: Whether the verifier, if any, has checked the draft.
        why: The reason for `refuted` or `lost`.
        code: The code of the failure for `lost`.
        repairs: The number of the draft that this draft improves, or 0.
        confidence: The confidence that the draft's author states, from 0 to 1.
        inside: The parts of the inner run's document that are shown beneath the draft.
    """

    number: int
    answer: str = ""
    short: str = ""
    steps: tuple[str, ...] = ()
    status: Literal["open", "proved", "confirmed", "undecided", "refuted", "unfinished", "lost"] = "open"
    checked: bool = False
    why: str = ""
    code: str | None = None
    repairs: int = 0
    confidence: float | None = None
    inside: dict[str, Any] = {}

    @property
    def is_candidate(self) -> bool:
        """Whether the draft has an answer that is complete and not refuted."""
        return self.status in ("open", "proved")

    @property
    def id(self) -> str:
        """The id of the draft in the result document."""
        return f"draft-{self.number}"

    @property
    def text(self) -> str:
        """The whole draft: its reasoning and its answer."""
        return "\n".join([*self.steps, f"Answer: {self.answer}"]) if self.steps else self.answer

    @property
    def shown(self) -> str:
        """The text that a judge sees. The reasoning is shown only if the answer is one line and is not code."""
        return code_in(self.answer) or (self.answer if "\n" in self.answer else self.text)


class Group(Struct, frozen=True):
    """A group of equal drafts: the draft that represents the group, and the numbers of all its drafts."""

    draft: Draft
    voters: tuple[int, ...]

    @property
    def number(self) -> int:
        """The number of the draft that represents the group."""
        return self.draft.number


class DraftState(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The state of a strategy that collects drafts. Subclasses add their options and their own state."""

    problem: str
    options: Any
    drafts: tuple[Draft, ...] = ()

    @property
    def candidates(self) -> tuple[Group, ...]:
        """The groups of equal drafts that are complete and not refuted, best group first."""
        return candidates(self.drafts)

    def votes_for(self, draft: Draft) -> int:
        """Count the drafts that have the answer of `draft`. If `draft` is not a candidate, return 0."""
        return next((len(each.voters) for each in self.candidates if draft.number in each.voters), 0)

    @property
    def best(self) -> Draft | None:
        """The best draft so far. If there is no candidate, the first draft that was cut off."""
        if found := self.candidates:
            return found[0].draft
        return next((draft for draft in self.drafts if draft.status == "unfinished"), None)

    @property
    def proved(self) -> Draft | None:
        """The first proved draft."""
        return next((draft for draft in self.drafts if draft.status == "proved"), None)

    def draw(
        self, earlier: Sequence[tuple[Draft | None, str]], *, by: str = "writer"
    ) -> Generator[Request, Any, tuple[Self, Thought]]:
        """Let the inner strategy write drafts in parallel. Return the new state, and a thought that lists the drafts.

        A proved draft cancels the other drafts. A draft that its inner run left unchecked must still be verified.

        Args:
            earlier: For each new draft, the draft to improve and the review of that draft, or `FRESH`.
            by: The role that writes the drafts. `seat` gives each draft a seat of its own: `seat-1`, `seat-2`, …
        """
        over, drawn_with = self.options.over, self.options.drawn_with
        numbers = range(len(self.drafts) + 1, len(self.drafts) + len(earlier) + 1)
        effects: list[RunStrategy] = []
        for number, (draft, review) in zip(numbers, earlier, strict=True):
            written = shorten(draft.shown, SHOWN_CHARS) if draft and draft.answer else ""
            parts = (("Earlier answer", written), ("Review" if written else "What went wrong", review))
            below = "\n\n".join(f"{name}:\n{text}" for name, text in parts if text)
            problem = with_quoted(self.problem, below, IMPROVE)
            writer = f"seat-{number}" if by == "seat" else by
            effects.append(RunStrategy(over, problem, drawn_with, number, f"draft-{number}", writer))

        def has_proof(brought: Iterable[Delivered | None]) -> bool:
            return any(isinstance(each, Finished) and each.certainty == "proved" for each in brought)

        brought = yield request(self, *effects, enough=has_proof)
        drawn: list[Draft] = []
        for number, each, (draft, _) in zip(numbers, brought, earlier, strict=True):
            is_left = bool(getattr(each, "document", {}).get("unchecked"))
            checked, repairs = bool(drawn_with.get("verify")) and not is_left, draft.number if draft else 0
            drawn.append(replace(read_draft(number, each), checked=checked, repairs=repairs))
        return replace(self, drafts=(*self.drafts, *drawn)), list_drafts(drawn)

    def verify(self) -> Generator[Request, Any, Self]:
        """Verify the unchecked drafts. Equal answers are verified only once in a run."""
        if not self.options.verify:
            return self
        written = [draft for draft in self.drafts if draft.is_candidate or draft.checked]
        groups = [[written[at] for at in vote.voters] for vote in tally(_voices(written))]
        new = [group[0] for group in groups if not any(draft.checked for draft in group)]
        claims = [Verify(self.problem, (*draft.steps, draft.answer), final=True) for draft in new]
        verdicts = yield request(self, *claims, give_failures=True)
        ruled = {draft.number: _rule_on(draft, each) for draft, each in zip(new, verdicts, strict=True)}
        for group in groups:
            known = next(each for each in (ruled.get(each.number, each) for each in group) if each.checked)
            ruled |= {each.number: _settle(each, known) for each in group if not each.checked}
        return replace(self, drafts=tuple(ruled.get(draft.number, draft) for draft in self.drafts))

    def choose(self) -> Body:
        """Verify the drafts, and move to the final response with the best draft. If no draft has an answer, fail."""
        s = yield from self.verify()
        best = s.best
        if best is None:
            return s.fail()
        text = f"Draft {best.number}:\n{best.text}"
        return go(s, "final_response", Thought(text, data={"answer": best.answer}))

    def close(self) -> Move | None:
        """Return a move to the stage that chooses the best draft so far. If there is no candidate, return None."""
        return go(self, "answer_selection") if self.candidates else None

    def fail(self) -> Move:
        """Return a move that ends a run whose drafts are all refuted or lost."""
        refuted = [draft for draft in self.drafts if draft.status == "refuted"]
        if refuted:
            all_answers = "the answer was" if len(refuted) == 1 else f"all {len(refuted)} answers were"
            detail = f"{all_answers} proved wrong; {refuted[-1].why}"
            return fail(self, "verification_failed", detail)
        lost = next((draft for draft in reversed(self.drafts) if draft.code != STOPPED), self.drafts[-1])
        detail = f"none of {len(self.drafts)} drafts has an answer; the last: {lost.why}"
        return fail(self, "all_samples_failed", detail, lost.code)

    def conclude(
        self, details: dict[str, Any], unchecked: str = "", authors: str = "", warnings: Sequence[str] = ()
    ) -> Conclusion:
        """Return the conclusion: the best draft as the answer, all drafts, and `details`.

        Args:
            unchecked: The reason why the answer is unchecked, if it is.
            authors: The noun for the drafts' authors in a warning that few of them replied. Empty for no warning.
        """
        best, document = self.best, drafts_document(self.drafts) | details
        document |= {"unchecked": unchecked} if unchecked else {}
        first = [bool(draft.answer) for draft in self.drafts if not draft.repairs]
        few = authors and not self.proved and too_few(len(first), sum(first), authors)
        if warnings := [*([few] if few else []), *warnings]:
            document["diagnostics"] = {"warnings": warnings}
        if best is None:
            return Conclusion(document=document)
        certainty, detail = "proved" if best.status == "proved" else "given", "; ".join(warnings)
        conclusion = Conclusion(
            best.answer, detail=detail, document=document, short=best.short or None, certainty=certainty
        )
        agree = self.votes_for(best)
        why = f"{agree} of {len(self.drafts)} drafts agree" if agree and len(self.drafts) > 1 else ""
        return conclusion.because(why, "answer_selection")


def too_few(asked: int, replied: int, noun: str) -> str:
    """Return a warning if too few questions got a reply. If enough got a reply, or none did, return ""."""
    if not replied or asked < 2 or (replied > 1 and 2 * replied >= asked):
        return ""
    alone = ": this is one model's answer" if replied == 1 else ""
    return f"{replied} of {asked} {noun} replied{alone}"


def answer_selection(
    description: str,
    guidance: str,
    *fields: Field,
    body: Callable[[Any], Body] = DraftState.choose,
    **parts: Any,
) -> Stage[Any]:
    """Build the stage that chooses the best draft. It precedes the last stage."""
    return Stage("answer_selection", ("final_response",), description, guidance, fields, body=body, **parts)


def read_draft(number: int, brought: Finished | Failed) -> Draft:
    """Turn the result of an inner run into a draft."""
    if isinstance(brought, Failed):
        return Draft(number, status="lost", why=brought.message, code=brought.code)
    answer, steps = strip_blank_lines(brought.answer or ""), brought.document.get("steps")
    inside = drawn_parts(brought.document)
    if not answer:
        refuted = brought.document.get("objections") if brought.reason == "verification_failed" else None
        why = refuted[-1] if refuted else brought.detail or brought.reason
        status = "refuted" if refuted else "lost"
        return Draft(number, status=status, why=str(why), code=brought.code, inside=inside)
    lines = tuple(map(str, steps)) if isinstance(steps, list | tuple) else ()
    shorten = brought.status == "cancelled"
    status = "proved" if brought.certainty == "proved" else "unfinished" if shorten else "open"
    return Draft(number, answer, brought.short or "", lines, status, inside=inside)


def drawn_parts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a result document that the web page shows as nodes."""
    return {name: document[name] for name in _DRAWN if document.get(name)}


def list_drafts(drafts: Sequence[Draft]) -> Thought:
    """Build the thought that lists drafts. Each draft is shown as the beginning of its answer."""
    lines = [
        f"Draft {draft.number}: {shorten(draft.answer or draft.why, 200, one_line=True)}" for draft in drafts
    ]
    return Thought("\n".join(lines), data={"drafts": [draft.answer for draft in drafts]})


def _settle(draft: Draft, ruled: Draft) -> Draft:
    """Give a draft the verdict that an equal draft received."""
    if ruled.status == "open":
        return replace(draft, checked=True)
    answer = ruled.answer if ruled.status == "proved" else draft.answer
    return replace(draft, answer=answer, status=ruled.status, why=ruled.why, checked=True)


def _rule_on(draft: Draft, verdict: Any) -> Draft:
    final = FinalAnswer(draft.answer).apply_verdict(verdict)
    if final.text is None:
        return replace(draft, status="refuted", why=final.objections[-1], checked=True)
    status = "proved" if final.verification == "proved" else "open"
    return replace(draft, status=status, answer=final.text, checked=True)


def _voices(drafts: Sequence[Draft]) -> list[str]:
    """Return, for each draft, the text that is compared when votes are counted."""
    is_code = any(code_in(draft.answer) for draft in drafts)
    return [draft.short or code_key(draft.answer, is_code=is_code) or draft.answer for draft in drafts]


def candidates(drafts: Sequence[Draft]) -> tuple[Group, ...]:
    """Group equal drafts that are complete and not refuted. Proved groups come first, then groups with more votes."""
    valid = [draft for draft in drafts if draft.is_candidate]
    found: list[Group] = []
    for vote in tally(_voices(valid)):
        voters = [valid[place] for place in vote.voters]
        first = min(voters, key=lambda draft: (draft.status != "proved", draft.number))
        found.append(Group(first, tuple(draft.number for draft in voters)))
    return tuple(sorted(found, key=lambda each: each.draft.status != "proved"))


def drafts_document(
    drafts: Sequence[Draft], groups: Sequence[Group] | None = None, noun: str = "draft"
) -> dict[str, Any]:
    """Return the drafts for a result document: the votes, and the status of each draft.

    A draft that improves another draft, such as the synthesis of a council, has an answer but no vote.

    Args:
        groups: The groups of equal drafts, most votes first. Defaults to the candidates.
        noun: The strategy's word for a draft.
    """
    found = candidates(drafts) if groups is None else groups
    voices = {draft.number for draft in drafts if not draft.repairs}
    sides = {number: each.draft.answer for each in found for number in each.voters}
    return {
        "votes": [{"answer": each.draft.answer, "count": len(voices & {*each.voters})} for each in found],
        f"{noun}s": [_entry(draft, sides.get(draft.number), noun) for draft in drafts],
        f"{noun}s_used": len(drafts),
    }


def _entry(draft: Draft, side: str | None, noun: str) -> dict[str, Any]:
    entry = {
        "id": f"{noun}-{draft.number}",
        "number": draft.number,
        "answer": draft.answer or None,
        "vote": side,
    }
    entry |= {"improves": draft.repairs} if draft.repairs else {}
    entry |= {"inside": draft.inside} if draft.inside else {}
    if side is not None:
        return entry
    code = {"refuted": "verifier", "unfinished": "cancelled"}.get(draft.status, "failed")
    return {**entry, "dropped": {"code": code, "text": draft.why or "it was cut off"}}
