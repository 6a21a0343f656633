"""Plans: nested steps with a status each, and the rules a thinker keeps when it works one off (seed 001).

Rule 1: a status is one of three; a step that is done says what came of it, one that needs verification says why.
Rule 2: a step with sub-steps is done only when all of them are.
Rule 3: the last step is the conclusion; it is executed last, and executing it ends the thinking, nothing else does.
Rule 4: every thought but the first evaluates the one before.
Rule 5: no step that is open vanishes: it may move, be broken up, or be reworded in its place.

A rule that is broken is a sentence that can be put to whoever broke it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

PENDING: Final = "Pending"
DONE: Final = "Done"
VERIFICATION_NEEDED: Final = "Verification Needed"
STATUSES: Final = (PENDING, DONE, VERIFICATION_NEEDED)

MAX_STEPS: Final = 500
"""Steps of a plan, sub-steps included."""

_CONCLUSION = re.compile(
    r"[\W\d_]*(?:(?:step|final|the|a|overall|draw|state|write|formulate|give|reach)[\W\d_]+)*conclu(?:sions?|de)\b",
    re.IGNORECASE,
)
_EVALUATION = re.compile(
    r"\b(?:re-?)?evaluat(?:e|ed|ing|ion)(?:\s+(?:of|the|my|our|previous|last|prior|preceding|earlier))*\s+thoughts?\b"
    r"|^\W*evaluation\s*\W{0,3}:",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING = 400
"""Characters at the beginning of a thought in which an evaluation without a field of its own has to begin."""


class PlanStep(Struct, frozen=True, omit_defaults=True):
    """One step of a plan."""

    description: Annotated[str, Meta(min_length=1, description="What is to be done.")]
    status: Annotated[str, Meta(description="How it stands.", extra_json_schema={"enum": list(STATUSES)})]
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


def numbered(plan: Sequence[PlanStep], prefix: str = "") -> Iterator[tuple[str, PlanStep]]:
    """Yield every step with its number (`2`, `2.1`), each before its sub-steps."""
    for place, step in enumerate(plan, 1):
        number = f"{prefix}{place}"
        yield number, step
        yield from numbered(step.sub_steps or (), f"{number}.")


def conclusion(plan: Sequence[PlanStep]) -> PlanStep | None:
    """Return the conclusion step: the last one, if it is called that."""
    return plan[-1] if plan and _CONCLUSION.match(plan[-1].description) else None


def only_conclusion_left(plan: Sequence[PlanStep]) -> bool:
    """Whether everything before the conclusion is done and the conclusion is not."""
    last = conclusion(plan)
    return last is not None and not last.is_done and all(step.is_done for step in plan[:-1])


def plan_faults(plan: Sequence[PlanStep]) -> Iterator[str]:
    """Yield the rules a plan breaks, taken by itself."""
    if not plan:
        yield "the plan is empty; it needs at least a conclusion step"
        return
    steps = list(numbered(plan))
    if len(steps) > MAX_STEPS:
        yield f"the plan has {len(steps)} steps; keep it under {MAX_STEPS}"
        return
    last = conclusion(plan)
    if last is None:
        yield f'the plan must end with a step called "Conclusion", not with "{plan[-1].description[:60]}"'
    for number, step in steps:
        yield from _step_faults(number, step, is_conclusion=step is last)
    if last is not None and last.is_done:
        open_steps = ", ".join(number for number, step in numbered(plan[:-1]) if not step.is_done)
        if open_steps:
            yield f"the conclusion is Done, but these steps are not: {open_steps}"


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
        left = [place for place, part in numbered(step.sub_steps or (), f"{number}.") if not part.is_done]
        if left:
            yield f"{name} is Done, but its sub-steps {', '.join(left)} are not"


def vanished(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Iterator[tuple[str, PlanStep]]:
    """Yield the steps that were open and are gone, with the numbers they had.

    A step is still there if one of its name is, anywhere, or if a new one stands in its place. Steps that are done
    may go, and so may a conclusion: a plan without one is at fault by itself.
    """
    steps, ends = dict(numbered(after)), (conclusion(before), conclusion(after))
    there = Counter(_name(step) for step in steps.values())
    known = {_name(step) for _, step in numbered(before)}
    for number, step in numbered(before):
        if step.is_done or step is ends[0]:
            continue
        there[_name(step)] -= 1
        instead = steps.get(number)
        is_reworded = instead is not None and instead is not ends[1] and _name(instead) not in known
        if there[_name(step)] < 0 and not is_reworded:
            yield number, step


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
    before: Sequence[PlanStep] = (),
) -> Iterator[str]:
    """Yield the rules a thought breaks.

    Args:
        first: Whether there is no thought before it to evaluate.
        last: Whether no thought can follow it; it may then end with steps left open.
        evaluation: What it says of the thought before; may stand at the beginning of the thinking instead, in English.
        before: The plan as it stood.
    """
    if not thinking.strip():
        yield "current_thinking is empty"
    if not first and not (evaluation or "").strip() and not _EVALUATION.search(thinking.lstrip()[:_OPENING]):
        yield "the evaluation of the previous thought is missing: say in `evaluation` whether it holds, and why"
    gone = [f'{number} ("{step.description[:60]}")' for number, step in vanished(before, plan)]
    if gone:
        names = ", ".join(gone[:10]) + (f" and {len(gone) - 10} more" if len(gone) > 10 else "")
        yield f"""these steps were open and are gone: {names}; keep each of them by its name, or mark it Done with a \
result that says why it is not needed"""
    faults = list(plan_faults(plan))
    yield from faults
    end = conclusion(plan)
    if faults or end is None:
        return
    if not next_needed and not end.is_done and not last:
        left = ", ".join(number for number, step in numbered(plan) if not step.is_done)
        yield f"next_thought_needed may be false only when the conclusion is executed and Done; still open: {left}"
    if next_needed and end.is_done:
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
