"""Plans: nested steps, each with a status, and the rules for executing the steps (seed 001 in `tests/seeds`).

Rule 1: a step has one of three statuses. Capitals, spaces and punctuation in a status do not matter.
Rule 2: a step with sub-steps is done only when all sub-steps are done.
Rule 3: the last step is the conclusion. It is executed last, and only its execution ends the thinking.
Rule 4: every thought evaluates the thought before it, except the first thought and the concluding thought.
Rule 5: no step is lost. A step may be moved, split, reworded in place, or merged with its neighbors. An omitted step is
        kept unchanged. A step without a status is done if its parent is done. Otherwise, the step keeps its earlier
        status, or is pending if the step is new.
Each broken rule is reported as a sentence for the model that broke it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..text import lazy_pattern, plain_name

PENDING: Final = "Pending"
DONE: Final = "Done"
VERIFICATION_NEEDED: Final = "Verification Needed"
STATUSES: Final = (PENDING, DONE, VERIFICATION_NEEDED)

MAX_STEPS: Final = 500
"""How many steps a plan may have, sub-steps included."""

_STATUS_OF: Final = {plain_name(status): status for status in STATUSES}
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
"""How many characters at the start of a thought are searched for an evaluation that has no field of its own."""


class PlanStep(Struct, frozen=True):
    """A step of a plan."""

    description: Annotated[str, Meta(min_length=1, description="The work to do.")]
    status: Annotated[str, Meta(description="How it stands.", extra_json_schema={"enum": list(STATUSES)})] = (
        ""
    )
    result: Annotated[
        str | None,
        Meta(description="With Done: what came of it, in a few words; of the conclusion, the whole answer."),
    ] = None
    mark: Annotated[str | None, Meta(description="With Verification Needed: why.")] = None
    sub_steps: Annotated[
        tuple[PlanStep, ...] | None, Meta(description="The steps it is made of, if any.")
    ] = None

    @property
    def is_done(self) -> bool:
        """Whether the step is done."""
        return self.status == DONE


Plan = tuple[PlanStep, ...]


def number_steps(plan: Sequence[PlanStep], prefix: str = "") -> Iterator[tuple[str, PlanStep]]:
    """Yield each step with its number, such as `2` or `2.1`. A step comes before its sub-steps."""
    for place, step in enumerate(plan, 1):
        number = f"{prefix}{place}"
        yield number, step
        yield from number_steps(step.sub_steps or (), f"{number}.")


def conclusion(plan: Sequence[PlanStep]) -> PlanStep | None:
    """Return the conclusion: the last step, if its description calls it the conclusion."""
    return plan[-1] if plan and _CONCLUSION.match(plan[-1].description) else None


def with_conclusion(plan: Plan) -> Plan:
    """Add a conclusion at the end of a plan, unless a step is already called the conclusion."""
    if any(_CONCLUSION.match(step.description) for step in plan):
        return plan
    return (*plan, PlanStep("Conclusion", PENDING))


def only_conclusion_left(plan: Sequence[PlanStep]) -> bool:
    """Whether the conclusion is the only open step."""
    last = conclusion(plan)
    return last is not None and not last.is_done and all(step.is_done for step in plan[:-1])


def plan_faults(plan: Sequence[PlanStep], *, may_leave_open: bool = False) -> Iterator[str]:
    """Yield a sentence for each rule that a plan breaks.

    Args:
        may_leave_open: Whether the conclusion may be done while other steps are open.
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
        yield from _step_faults(number, step)
    if last is not None and last.is_done and not may_leave_open:
        left = [f'{n} ("{step.description[:60]}")' for n, step in number_steps(plan[:-1]) if not step.is_done]
        if left:
            more = f" and {len(left) - 10} more" if len(left) > 10 else ""
            yield f"""the conclusion is Done, but these steps are not: {", ".join(left[:10])}{more}; execute each \
first, or mark it Done with a result that says why it is not needed"""


def _step_faults(number: str, step: PlanStep) -> Iterator[str]:
    name = f'step {number} ("{step.description[:60]}")'
    if not step.description.strip():
        yield f"step {number} has no description"
    if step.status not in STATUSES:
        legal = ", ".join(f'"{status}"' for status in STATUSES)
        yield f'{name} has the status "{step.status[:40]}"; the statuses are {legal}'
    if step.is_done:
        left = [place for place, part in number_steps(step.sub_steps or (), f"{number}.") if not part.is_done]
        if left:
            yield f"{name} is Done, but its sub-steps {', '.join(left)} are not"


def with_plain_statuses(plan: Sequence[PlanStep], unsaid: str = "") -> Plan:
    """Convert each status in a plan to `Pending`, `Done` or `Verification Needed`.

    Text after a status, as in `Done: 42` or `Verification Needed (units?)`, becomes the step's result or mark. A step
    without a status gets the status `unsaid`.
    """
    steps: list[PlanStep] = []
    for step in plan:
        found = _STATUS.fullmatch(step.status.strip() or unsaid)
        if found and (status := _STATUS_OF.get(plain_name(found["words"]))):
            more = found["more"].strip() or None
            result = step.result or (more if status == DONE else None)
            mark = step.mark or (more if status == VERIFICATION_NEEDED else None)
            step = replace(step, status=status, result=result, mark=mark)
        parts = with_plain_statuses(step.sub_steps or (), DONE if step.is_done else "")
        steps.append(replace(step, sub_steps=parts or None))
    return tuple(steps)


def updated_plan(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Plan:
    """Merge a new version of a plan with the old version. Steps that the new version omits are kept unchanged.

    A step is not omitted if the new version has a step with its name, or new steps at its position. If the new version
    has a step that is done and has no sub-steps, the sub-steps of the old version count as done and are dropped.
    """
    known = {_name(step): step for _, step in reversed(list(number_steps(before)))}
    return _Update(known, {_name(step) for _, step in number_steps(after)}).level(before, after)


class _Update(Struct, frozen=True):
    """Merges two versions of a plan. `known` has the old steps by name. `there` has the names of the new steps."""

    known: dict[str, PlanStep]
    there: set[str]

    def level(self, before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Plan:
        """Merge one level of the plan: put the omitted steps back in their places."""
        found: list[PlanStep] = []
        names = [_names(before), _names(after)]
        for _, start, end, new_start, new_end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
            new = after[new_start:new_end]
            lost = [] if names[0][start:end] == names[1][new_start:new_end] else self._lost(before[start:end])
            reworded = sum(_name(step) not in self.known for step in new)
            if reworded:
                lost = [step for step in lost[reworded:] if step.is_done]
            found += [*lost, *map(self._with_parts, new)]
        return tuple(found)

    def _lost(self, steps: Sequence[PlanStep]) -> list[PlanStep]:
        """Return the steps that are missing from the new plan, each with its missing sub-steps."""
        lost: list[PlanStep] = []
        for step in steps:
            parts = self._lost(step.sub_steps or ())
            if _name(step) not in self.there and (parts or not step.sub_steps):
                lost.append(replace(step, sub_steps=tuple(parts) or None))
        return lost

    def _with_parts(self, step: PlanStep) -> PlanStep:
        stood = self.known.get(_name(step))
        if not step.status.strip():
            step = replace(step, status=stood.status if stood else PENDING)
            if stood is not None:
                step = replace(step, result=step.result or stood.result, mark=step.mark or stood.mark)
        parts = step.sub_steps or ()
        if stood is None or not stood.sub_steps or (step.is_done and not parts):
            return replace(step, sub_steps=tuple(map(self._with_parts, parts)) or None)
        return replace(step, sub_steps=self.level(stood.sub_steps, parts) or None)


def _names(plan: Sequence[PlanStep]) -> list[str]:
    """Return the names of steps. The conclusion always has the name `conclusion`."""
    names = [_name(step) for step in plan]
    return [*names[:-1], "conclusion"] if conclusion(plan) else names


def _name(step: PlanStep) -> str:
    """Return the name of a step: the words of the step's description in lower case."""
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
    """Yield a sentence for each rule that a thought breaks.

    Args:
        plan: The plan after the thought; see `updated_plan`.
        first: Whether the thought has no predecessor to evaluate.
        last: Whether this thought is the last possible thought, which may leave steps open.
        evaluation: The evaluation of the previous thought. If empty, `thinking` may begin with an English evaluation.
    """
    if not thinking.strip():
        yield "`current_thinking` is empty"
    is_judged = (evaluation or "").strip() or _EVALUATION.search(thinking.lstrip()[:_OPENING])
    if next_needed and not first and not is_judged:
        yield "the evaluation of the previous thought is missing: say in `evaluation` whether it holds, and why"
    faults = list(plan_faults(plan, may_leave_open=last))
    yield from faults
    end = conclusion(plan)
    if next_needed and not faults and not last and end is not None and end.is_done:
        yield "the conclusion is Done, so next_thought_needed must be false; leave it Pending to think on"


def format_plan(plan: Sequence[PlanStep], indent: int = 0) -> str:
    """Format a plan as an indented list, with lines such as `- [Done] Add up: 42`."""
    lines: list[str] = []
    for step in plan:
        result = f": {step.result}" if step.result else ""
        mark = f" ({step.mark})" if step.mark else ""
        lines.append(f"{'  ' * indent}- [{step.status}] {step.description}{result}{mark}")
        if step.sub_steps:
            lines.append(format_plan(step.sub_steps, indent + 1))
    return "\n".join(lines)


def plan_data(plan: Sequence[PlanStep]) -> list[dict[str, Any]]:
    """Return a plan as JSON data with every field of every step."""
    return msgspec.json.decode(msgspec.json.encode(plan))
