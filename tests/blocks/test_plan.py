import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.plan import (
    DONE,
    MAX_STEPS,
    PENDING,
    STATUSES,
    VERIFICATION_NEEDED,
    PlanStep,
    conclusion,
    format_plan,
    number_steps,
    only_conclusion_left,
    plan_data,
    plan_faults,
    thought_faults,
    updated_plan,
    with_conclusion,
    with_plain_statuses,
)


def step(
    description: str,
    status: str = PENDING,
    result: str | None = None,
    *subs: PlanStep,
    mark: str | None = None,
):
    return PlanStep(description, status, result, mark, subs or None)


END = step("Conclusion")
ENDED = step("Conclusion", DONE, "42")
WELL = (
    step("Understand the problem", DONE, "a sum"),
    step(
        "Compute", PENDING, None, step("Add", DONE, "42"), step("Check", VERIFICATION_NEEDED, mark="units?")
    ),
    END,
)


def test_a_plan_that_keeps_the_rules_has_no_faults() -> None:
    assert list(plan_faults(WELL)) == []
    assert list(plan_faults((step("Add", DONE), step("Check", VERIFICATION_NEEDED), END))) == []
    assert list(thought_faults("Set the plan up.", WELL, True, first=True)) == []


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ((), "the plan is empty; it needs at least a conclusion step"),
        ((step("Add"),), 'the plan must end with a step called "Conclusion", not with "Add"'),
        ((END, step("Add")), 'the plan must end with a step called "Conclusion", not with "Add"'),
        (
            (step("Add", "Finished"), END),
            'step 1 ("Add") has the status "Finished"; the statuses are "Pending", "Done", "Verification Needed"',
        ),
        (
            (step("Add", DONE, "42", step("Carry"), step("Sum", DONE, "42")), END),
            'step 1 ("Add") is Done, but its sub-steps 1.1 are not',
        ),
        (
            (step("Add", DONE, "42", step("Carry", PENDING, None, step("Deep"))), END),
            'step 1 ("Add") is Done, but its sub-steps 1.1, 1.1.1 are not',
        ),
        ((step("Add", PENDING, None, step("Carry", "?")), END), 'step 1.1 ("Carry") has the status "?"'),
        ((step("Add"), ENDED), 'the conclusion is Done, but these steps are not: 1 ("Add"); execute each'),
        ((step("   "), END), "step 1 has no description"),
    ],
)
def test_each_broken_rule_is_a_sentence_that_names_the_step(plan: tuple[PlanStep, ...], fault: str) -> None:
    (found,) = plan_faults(plan)
    assert found.startswith(fault)


def test_only_a_plan_without_a_conclusion_gets_one() -> None:
    assert [with_conclusion(plan) for plan in ((), (step("Add"),))] == [(END,), (step("Add"), END)]
    assert [with_conclusion(plan) for plan in (WELL, (END, step("Add")))] == [WELL, (END, step("Add"))]


def test_an_endless_plan_is_refused() -> None:
    plan = (*(step(f"Step {n}") for n in range(MAX_STEPS)), END)
    assert list(plan_faults(plan)) == [f"the plan has {MAX_STEPS + 1} steps; keep it under {MAX_STEPS}"]


@pytest.mark.parametrize(
    ("thinking", "evaluation"),
    [
        ("Evaluation of Thought 1: Correct. Next.", None),
        ("**Evaluation of the previous thought:** minor issues.", None),
        ("Evaluating thought 2 first: it holds.", None),
        ("Ich rechne.", "Bewertung: richtig."),
        ("Ich rechne.", "正确"),
    ],
)
def test_a_thought_begins_with_the_evaluation_of_the_one_before_or_has_it_in_a_field_in_any_language(
    thinking: str, evaluation: str | None
) -> None:
    assert list(thought_faults(thinking, WELL, True, first=False, evaluation=evaluation)) == []


@pytest.mark.parametrize(
    "thinking",
    ["Now I add.", "Let me evaluate 3x at x = 2.", "x" * 1000 + " evaluation of thought 1: correct"],
)
def test_a_thought_without_the_evaluation_is_refused(thinking: str) -> None:
    for evaluation in (None, "", "  "):
        (fault,) = thought_faults(thinking, WELL, True, first=False, evaluation=evaluation)
        assert fault.startswith("the evaluation of the previous thought is missing")


def test_an_empty_thought_is_refused() -> None:
    assert list(thought_faults(" ", WELL, True, first=True)) == ["`current_thinking` is empty"]


def test_the_thinking_ends_with_the_conclusion_and_its_thought_need_not_evaluate_the_one_before() -> None:
    over = (step("Add", DONE, "42"), ENDED)
    for first in (True, False):
        assert list(thought_faults("Done.", over, False, first=first)) == []
    (fault,) = thought_faults("Done.", over, True, first=True)
    assert fault.startswith("the conclusion is Done, so next_thought_needed must be false")


@pytest.mark.parametrize("plan", [WELL, (*WELL[:2], ENDED)])
def test_the_last_thought_there_is_room_for_may_end_with_steps_left_open(plan) -> None:
    assert list(thought_faults("Evaluation: fine.", plan, False, first=False, last=True)) == []


@pytest.mark.parametrize(
    ("written", "status"),
    [
        *((word, DONE) for word in ("done", "DONE.", "✅ Done", "**Done**")),
        *((word, PENDING) for word in ("pending", "PENDING")),
        *((word, VERIFICATION_NEEDED) for word in ("verification_needed", "Verification needed")),
    ],
)
def test_a_status_is_one_however_it_is_spelled(written: str, status: str) -> None:
    part = step("Carry", written, "1", mark="why")
    (read,) = with_plain_statuses((step("Add", written, "42", part, mark="why"),))
    assert [read.status, *(one.status for one in read.sub_steps or ())] == [status, status]


def test_a_step_without_a_status_is_done_under_a_done_step_alone() -> None:
    parts = step("Carry", "", "", step("Add up", "")), step("Check", PENDING)
    done, open_ = with_plain_statuses((step("Add", DONE, "42", *parts), step("Tell", PENDING, "", *parts)))
    assert [part.status for _, part in number_steps((done,))] == [DONE, DONE, DONE, PENDING]
    assert [part.status for _, part in number_steps((open_,))] == [PENDING, "", "", PENDING]


def test_what_follows_a_status_is_its_result_or_its_mark() -> None:
    done, doubted, kept = with_plain_statuses(
        (
            step("Add", "Done: 42"),
            step("Check", "Verification Needed (units?)"),
            step("Sum", "done - 7", "42"),
        )
    )
    assert (done.status, done.result) == (DONE, "42")
    assert (doubted.status, doubted.mark) == (VERIFICATION_NEEDED, "units?")
    assert (kept.status, kept.result) == ("done - 7", "42"), "a hyphen may belong to the word"


@pytest.mark.parametrize("status", ["completed", "Halfway", "", "done or pending", "?"])
def test_a_status_that_is_none_stays_what_it_was(status: str) -> None:
    assert with_plain_statuses((step("Add", status),)) == (step("Add", status),)


@pytest.mark.parametrize(
    "name",
    ["Conclusion", "**Conclusion**", "4. conclusion: sum up", "Final Conclusion", "Draw the conclusions"],
)
def test_the_last_step_is_the_conclusion_by_its_name(name: str) -> None:
    assert conclusion((step("Add"), step(name))) is not None


@pytest.mark.parametrize(
    "name", ["Inconclusive tests: draw no conclusions", "Check the conclusion drawn in step 2", "Concluded"]
)
def test_a_step_that_only_mentions_a_conclusion_is_none(name: str) -> None:
    assert conclusion((step("Add"), step(name))) is None


ADD, CHECK = step("Add", DONE, "42"), step("Check the sum", VERIFICATION_NEEDED, mark="carry?")


def names(plan) -> list[str]:
    return [f"{number} {one.description}" for number, one in number_steps(plan)]


@pytest.mark.parametrize(
    "after",
    [
        (ADD, CHECK, END),
        (ADD, step("check  the SUM.", DONE, "42"), END),
        (ADD, step("More"), CHECK, END),
        (step("All", PENDING, None, ADD, CHECK), END),
        (ADD, step("Compare the sum with an estimate"), END),
        (ADD, step("Check the sum", PENDING, None, step("tens"), step("ones")), END),
    ],
)
def test_a_step_may_move_be_broken_up_or_be_reworded_in_its_place(after: tuple[PlanStep, ...]) -> None:
    assert updated_plan((ADD, CHECK, END), after) == after


TWO = (step("Cost of A"), step("Cost of B"), step("Compare"), END)


@pytest.mark.parametrize(
    "after",
    [
        (step("Cost of both", DONE, "23 and 22"), step("Compare"), END),
        (step("Cost of both", DONE, "23 and 22"), step("Which is lower"), END),
        (step("All of it", DONE, "B"), step("Final conclusion")),
    ],
)
def test_steps_that_became_one_are_reworded(after: tuple[PlanStep, ...]) -> None:
    assert updated_plan(TWO, after) == after


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ((END,), [ADD, CHECK, END]),
        ((CHECK, END), [ADD, CHECK, END]),
        ((ADD, END), [ADD, CHECK, END]),
        ((ADD, ENDED), [ADD, CHECK, ENDED]),
        ((ADD, step("Final conclusion")), [ADD, CHECK, step("Final conclusion")]),
        ((ADD, CHECK), [ADD, CHECK, END]),
        ((CHECK, step("More"), END), [ADD, CHECK, step("More"), END]),
        ((), [ADD, CHECK, END]),
    ],
)
def test_a_step_that_was_left_out_stands_where_and_as_it_stood(
    after: tuple[PlanStep, ...], expected: list[PlanStep]
) -> None:
    assert list(updated_plan((ADD, CHECK, END), after)) == expected


def test_parts_that_were_left_out_go_back_under_their_step_unless_it_is_done() -> None:
    carry, total = step("Carry", DONE, "1"), step("Sum")
    before = (step("Add", PENDING, None, carry, total), END)
    assert names(updated_plan(before, (step("Add"), END))) == [
        "1 Add",
        "1.1 Carry",
        "1.2 Sum",
        "2 Conclusion",
    ]
    one_more = (step("Add", PENDING, None, step("Carry", DONE, "1"), step("Check")), END)
    assert names(updated_plan(before, one_more))[1:3] == ["1.1 Carry", "1.2 Check"], "`Sum` is reworded"
    done = (step("Add", DONE, "42"), END)
    assert updated_plan(before, done) == done
    assert updated_plan(before, (END,)) == before


def test_only_the_conclusion_is_left_when_everything_before_it_is_done() -> None:
    assert only_conclusion_left((step("Add", DONE, "42"), END))
    assert not only_conclusion_left(WELL)
    assert not only_conclusion_left((step("Add", DONE, "42"), ENDED))
    assert conclusion((END, step("Add"))) is None


STEPS = st.recursive(
    st.builds(
        PlanStep, st.text(min_size=1), st.sampled_from(STATUSES), st.none() | st.text(), st.none() | st.text()
    ),
    lambda inner: st.builds(
        PlanStep,
        st.text(min_size=1),
        st.sampled_from(STATUSES),
        st.none() | st.text(),
        st.none() | st.text(),
        st.none() | st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=12,
)


@given(st.lists(STEPS, max_size=4).map(tuple), st.text(), st.booleans(), st.booleans(), st.booleans())
def test_no_plan_makes_the_checks_stumble(plan, thinking: str, needed: bool, first: bool, last: bool) -> None:
    for fault in thought_faults(thinking, plan, needed, first=first, last=last):
        assert fault
    assert len([line for line in format_plan(plan).split("\n- ") if line]) >= bool(plan)
    read = msgspec.convert(json.loads(json.dumps(plan_data(plan))), tuple[PlanStep, ...])
    assert plan_data(read) == plan_data(plan)


@given(st.lists(STEPS, max_size=4).map(tuple), st.lists(STEPS, max_size=4).map(tuple))
def test_a_plan_brought_up_to_date_loses_nothing_that_was_said(before, after) -> None:
    plan = updated_plan(before, after)
    said = [one.description for _, one in number_steps(after)]
    there = [one.description for _, one in number_steps(plan)]
    assert all(there.count(name) >= said.count(name) for name in said)
    end = conclusion(after) or conclusion(before)
    assert end is None or conclusion(plan) is not None


@given(st.lists(STEPS, max_size=6).map(tuple), st.data())
def test_a_plan_of_which_steps_were_left_out_is_the_plan_as_it_stood(plan, data) -> None:
    named = tuple(
        msgspec.structs.replace(one, description=f"Step {n}", sub_steps=None) for n, one in enumerate(plan)
    )
    kept = tuple(one for one in named if data.draw(st.booleans()))
    assert updated_plan(named, kept) == named


@given(st.lists(STEPS, min_size=1, max_size=4).map(tuple))
def test_a_plan_without_faults_has_no_parent_done_before_its_children(plan) -> None:
    if not list(plan_faults(plan)):
        for _, one in number_steps(plan):
            assert not one.is_done or all(part.is_done for _, part in number_steps(one.sub_steps or ()))
