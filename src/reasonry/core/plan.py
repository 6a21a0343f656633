"""Plans: nested steps with a status each, and the rules a thinker keeps when it works one off (seed 001).

Rule 1: a status is one of three, whatever words it comes in; a step that is done says what came of it, one that needs
        verification says why.
Rule 2: a step with sub-steps is done only when all of them are.
Rule 3: the last step is the conclusion; it is executed last, and executing it ends the thinking, nothing else does.
Rule 4: every thought evaluates the one before, but for the first and for the one that concludes.
Rule 5: no step vanishes: it may move, be broken up, or be reworded in its place, alone or as one with its neighbours;
        one that is left out stands as it stood (`updated_plan`), and so does one without a status, which begins as
        pending.

A rule that is broken is a sentence that can be put to whoever broke it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..patterns import lazy_pattern

PENDING: Final = "Pending"
DONE: Final = "Done"
VERIFICATION_NEEDED: Final = "Verification Needed"
STATUSES: Final = (PENDING, DONE, VERIFICATION_NEEDED)

MAX_STEPS: Final = 500
"""Steps of a plan, sub-steps included."""

_STATUS_WORDS: Final = {
    DONE: "done|complete|completed|finished|executed|solved|resolved|verified|confirmed",
    PENDING: "pending|open|todo|to do|not started|not yet started|not done|in progress|in work|ongoing|started|planned|"
    "next|waiting|incomplete|unfinished",
    VERIFICATION_NEEDED: "verification needed|needs verification|need verification|verification required|"
    "requires verification|verify|to verify|to be verified|needs checking|to be checked|unverified|in doubt",
}
_STATUS_OF: Final = {
    words.replace(" ", ""): status for status, listed in _STATUS_WORDS.items() for words in listed.split("|")
}
_STATUS = lazy_pattern(r"(?P<words>[^:;(–—]*)[:;(–—]?\s*(?P<more>.*?)\)?", re.DOTALL)

_CONCLUSION = lazy_pattern(
    r"[\W\d_]*(?:(?:step|final|the|a|overall|draw|state|write|formulate|give|reach)[\W\d_]+)*conclu(?:sions?|de)\b",
    re.IGNORECASE,
)
_EVALUATION = lazy_pattern(
    r"\b(?:re-?)?evaluat(?:e|ed|ing|ion)(?:\s+(?:of|the|my|our|previous|last|prior|preceding|earlier))*\s+thoughts?\b"
    r"|^\W*evaluation\s*\W{0,3}:",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING = 400
"""Characters at the beginning of a thought in which an evaluation without a field of its own has to begin."""


class PlanStep(Struct, frozen=True, omit_defaults=True):
    """One step of a plan."""

    description: Annotated[str, Meta(min_length=1, description="What is to be done.")]
    status: Annotated[str, Meta(description="How it stands.", extra_json_schema={"enum": list(STATUSES)})] = (
        ""
    )
    result: Annotated[str | None, Meta(description="With Done: what came of it, in a few words.")] = None
    mark: Annotated[str | None, Meta(description="With Verification Needed: why.")] = None
    sub_steps: Annotated[
        tuple[PlanStep, ...] | None, Meta(description="The steps it is made of, if any.")
    ] = None

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do about it."""
        return self.status == DONE


Plan = tuple[PlanStep, ...]


def number_steps(plan: Sequence[PlanStep], prefix: str = "") -> Iterator[tuple[str, PlanStep]]:
    """Yield every step with its number (`2`, `2.1`), each before its sub-steps."""
    for place, step in enumerate(plan, 1):
        number = f"{prefix}{place}"
        yield number, step
        yield from number_steps(step.sub_steps or (), f"{number}.")


def conclusion(plan: Sequence[PlanStep]) -> PlanStep | None:
    """Return the conclusion step: the last one, if it is called that."""
    return plan[-1] if plan and _CONCLUSION.match(plan[-1].description) else None


def only_conclusion_left(plan: Sequence[PlanStep]) -> bool:
    """Whether everything before the conclusion is done and the conclusion is not."""
    last = conclusion(plan)
    return last is not None and not last.is_done and all(step.is_done for step in plan[:-1])


def plan_faults(plan: Sequence[PlanStep], *, may_leave_open: bool = False) -> Iterator[str]:
    """Yield the rules a plan breaks, taken by itself.

    Args:
        may_leave_open: The conclusion may be done before all other steps are.
    """
    if not plan:
        yield "the plan is empty; it needs at least a conclusion step"
        return
    steps = list(number_steps(plan))
    if len(steps) > MAX_STEPS:
        yield f"the plan has {len(steps)} steps; keep it under {MAX_STEPS}"
        return
    last = conclusion(plan)
    if last is None:
        yield f'the plan must end with a step called "Conclusion", not with "{plan[-1].description[:60]}"'
    for number, step in steps:
        yield from _step_faults(number, step, is_conclusion=step is last)
    if last is not None and last.is_done and not may_leave_open:
        left = [f'{n} ("{step.description[:60]}")' for n, step in number_steps(plan[:-1]) if not step.is_done]
        if left:
            more = f" and {len(left) - 10} more" if len(left) > 10 else ""
            yield f"""the conclusion is Done, but these steps are not: {", ".join(left[:10])}{more}; execute each \
first, or mark it Done with a result that says why it is not needed"""


def _step_faults(number: str, step: PlanStep, *, is_conclusion: bool) -> Iterator[str]:
    name = f'step {number} ("{step.description[:60]}")'
    if not step.description.strip():
        yield f"step {number} has no description"
    if step.status not in STATUSES:
        legal = ", ".join(f'"{status}"' for status in STATUSES)
        yield f'{name} has the status "{step.status[:40]}"; the statuses are {legal}'
    if step.status == VERIFICATION_NEEDED and not (step.mark or "").strip():
        yield f"{name} is Verification Needed, but has no mark that says why"
    # What sub-steps brought stands with them; what the conclusion brings is the thought that executes it.
    says_itself = bool(step.sub_steps) or is_conclusion
    if step.is_done and not says_itself and not (step.result or "").strip():
        yield f"{name} is Done, but has no result"
    if step.is_done:
        left = [place for place, part in number_steps(step.sub_steps or (), f"{number}.") if not part.is_done]
        if left:
            yield f"{name} is Done, but its sub-steps {', '.join(left)} are not"


def with_plain_statuses(plan: Sequence[PlanStep]) -> Plan:
    """Return a plan whose statuses are those of rule 1, where their words say which is meant.

    What follows a status, as in `Done: 42` or `Verification Needed (units?)`, is its result or its mark.
    """
    return tuple(_with_plain_status(step) for step in plan)


def _with_plain_status(step: PlanStep) -> PlanStep:
    step = replace(step, sub_steps=with_plain_statuses(step.sub_steps or ()) or None)
    found = _STATUS.fullmatch(step.status.strip())
    status = _STATUS_OF.get(re.sub(r"[\W_]+", "", found["words"].casefold())) if found else None
    if found is None or status is None:
        return step
    more = found["more"].strip() or None
    return replace(
        step,
        status=status,
        result=step.result or (more if status == DONE else None),
        mark=step.mark or (more if status == VERIFICATION_NEEDED else None),
    )


def updated_plan(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Plan:
    """Return a plan as it stands when a thinker has given it anew: what was left out stands in it as it stood.

    A step was not left out if one of its name is there, anywhere, or if a new one stands in its place, or between its
    neighbours (steps that became one). Parts of a step that is given as done without any are done with it.
    """
    return _Update(before, after).level(before, after)


class _Update:
    """What a plan is brought up to date from."""

    def __init__(self, before: Sequence[PlanStep], after: Sequence[PlanStep]) -> None:
        self.by_name = {_name(step): step for _, step in reversed(list(number_steps(before)))}
        steps, ends = dict(number_steps(after)), (conclusion(before), conclusion(after))
        there = Counter(_name(step) for step in steps.values())
        self.missing: set[int] = set()
        """Steps of the plan before, by identity, whose name is not there any more."""
        self.in_place: set[int] = set()
        """Those of them in whose place a new step stands."""
        for number, step in number_steps(before):
            there[_name(step)] -= 1
            if there[_name(step)] < 0 and not (step is ends[0] and ends[1]):
                self.missing.add(id(step))
                instead = steps.get(number)
                if instead is not None and instead is not ends[1] and self.is_new(instead):
                    self.in_place.add(id(step))
        self.ends = ends

    def is_new(self, step: PlanStep) -> bool:
        return _name(step) not in self.by_name

    def level(self, before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Plan:
        """Return steps that stand beside one another, those that were left out back in their places."""
        found = [self._with_parts(step) for step in after]
        kept = [
            step for step in before if id(step) in self.missing and not self._is_replaced(step, before, after)
        ]
        for step in kept:
            found.insert(self._place(step, before, found), self._as_it_stood(step))
            self.missing.discard(id(step))
        return tuple(found)

    def _with_parts(self, step: PlanStep) -> PlanStep:
        stood = self.by_name.get(_name(step))
        if not step.status.strip():
            step = replace(step, status=stood.status if stood else PENDING)
            if stood is not None:
                step = replace(step, result=step.result or stood.result, mark=step.mark or stood.mark)
        parts = step.sub_steps or ()
        if stood is None or not stood.sub_steps or (step.is_done and not parts):
            return replace(step, sub_steps=tuple(map(self._with_parts, parts)) or None)
        return replace(step, sub_steps=self.level(stood.sub_steps, parts) or None)

    def _is_replaced(self, step: PlanStep, before: Sequence[PlanStep], after: Sequence[PlanStep]) -> bool:
        parts = step.sub_steps or ()
        if id(step) in self.in_place or (parts and not any(id(part) in self.missing for part in parts)):
            return True
        if step.is_done or step is self.ends[0]:
            return False
        places = {_name(other): place for place, other in enumerate(after)}
        at = next(place for place, other in enumerate(before) if other is step)
        left = (places[_name(other)] for other in reversed(before[:at]) if _name(other) in places)
        right = (self._found_at(other, places, after) for other in before[at + 1 :])
        is_top = self.ends[0] is not None and before[-1] is self.ends[0]
        end = next((place for place in right if place is not None), None if is_top else len(after))
        return end is not None and any(self.is_new(other) for other in after[next(left, -1) + 1 : end])

    def _found_at(self, step: PlanStep, places: dict[str, int], after: Sequence[PlanStep]) -> int | None:
        if step is self.ends[0] and self.ends[1] is not None:
            return len(after) - 1
        return places.get(_name(step))

    def _place(self, step: PlanStep, before: Sequence[PlanStep], found: Sequence[PlanStep]) -> int:
        """Return where a step goes back: after the nearest that stood before it, and before the conclusion."""
        if step is self.ends[0]:
            return len(found)
        at = next(place for place, other in enumerate(before) if other is step)
        places = {_name(other): place for place, other in enumerate(found)}
        place = next(
            (places[_name(other)] + 1 for other in reversed(before[:at]) if _name(other) in places), 0
        )
        while place and place < len(found) and self.is_new(found[place]):
            place += 1
        last = len(found) - (conclusion(found) is not None)
        return min(place, last)

    def _as_it_stood(self, step: PlanStep) -> PlanStep:
        parts = tuple(self._as_it_stood(part) for part in step.sub_steps or () if id(part) in self.missing)
        return replace(step, sub_steps=parts or None)


def _name(step: PlanStep) -> str:
    """What a step is told by: its words, whatever their case and what stands between them."""
    return " ".join(re.findall(r"\w+", step.description.casefold())) or step.description.strip()


def thought_faults(
    thinking: str,
    plan: Sequence[PlanStep],
    next_needed: bool,
    *,
    first: bool,
    last: bool = False,
    evaluation: str | None = None,
) -> Iterator[str]:
    """Yield the rules a thought breaks.

    Args:
        plan: As it stands with what the thought left out, see `updated_plan`.
        first: Whether there is no thought before it to evaluate.
        last: Whether no thought can follow it; it may then end with steps left open.
        evaluation: What it says of the thought before; may stand at the beginning of the thinking instead, in English.
    """
    if not thinking.strip():
        yield "current_thinking is empty"
    is_judged = (evaluation or "").strip() or _EVALUATION.search(thinking.lstrip()[:_OPENING])
    if next_needed and not first and not is_judged:
        yield "the evaluation of the previous thought is missing: say in `evaluation` whether it holds, and why"
    faults = list(plan_faults(plan, may_leave_open=last))
    yield from faults
    end = conclusion(plan)
    if faults or end is None:
        return
    if not next_needed and not end.is_done and not last:
        left = ", ".join(number for number, step in number_steps(plan) if not step.is_done)
        yield f"next_thought_needed may be false only when the conclusion is executed and Done; still open: {left}"
    if next_needed and end.is_done and not last:
        yield "the conclusion is Done, so next_thought_needed must be false; leave it Pending to think on"


def format_plan(plan: Sequence[PlanStep], indent: int = 0) -> str:
    """Return a plan as an indented list: `- [Done] Add up: 42`, `- [Verification Needed] Check (units?)`."""
    lines: list[str] = []
    for step in plan:
        result = f": {step.result}" if step.result else ""
        mark = f" ({step.mark})" if step.mark else ""
        lines.append(f"{'  ' * indent}- [{step.status}] {step.description}{result}{mark}")
        if step.sub_steps:
            lines.append(format_plan(step.sub_steps, indent + 1))
    return "\n".join(lines)


def plan_data(plan: Sequence[PlanStep]) -> list[dict[str, Any]]:
    """Return a plan as JSON data, every field of every step there."""
    return [
        {
            "description": step.description,
            "status": step.status,
            "result": step.result,
            "mark": step.mark,
            "sub_steps": plan_data(step.sub_steps) if step.sub_steps else None,
        }
        for step in plan
    ]
