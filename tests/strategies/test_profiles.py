"""Profiles: chain of verification, least to most, skeleton of thought."""

from reasonry.blocks.answers import MARKED
from reasonry.core.events import Failed
from reasonry.strategies.profiles import (
    CHAIN_OF_VERIFICATION,
    LEAST_TO_MOST,
    REPLIED,
    SKELETON,
    WRITTEN,
)

from .walking import in_order, stopped_after, walk


def listed(*entries: str) -> dict[str, list[str]]:
    return {"entries": list(entries)}


# Of least-to-most prompting, arXiv:2205.10625, section 1.
SLIDE = (
    "It takes Amy 4 minutes to climb to the top of a slide. It takes her 1 minute to slide down. The slide closes in "
    "15 minutes. How many times can she slide before it closes?"
)
TRIP, LEFT = "How long does each trip take?", "How many minutes are left?"


def test_least_to_most_answers_each_question_with_the_answers_before_it() -> None:
    events = in_order(
        listed(f"1. {TRIP}", LEFT),
        "4 + 1 = 5.\n<answer>Each trip takes 5 minutes</answer>",
        "<answer>15 minutes are left</answer>",
        "15 / 5 = 3.\n<answer>3</answer>",
    )
    walked = walk(LEAST_TO_MOST, SLIDE, events)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("3", "success")
    assert set(walked.edges) == set(LEAST_TO_MOST.edges)
    assert walked.conclusion.document["entries"] == [TRIP, LEFT]
    first, second, third, last = walked.asks
    assert first.task.endswith('At most 6. Reply with one JSON object:\n{"entries": ["…", …]}')
    assert second.prompt == f"Problem: {SLIDE}\n\nQuestion: {TRIP}"
    known = f"Problem: {SLIDE}\n\n{TRIP}\nEach trip takes 5 minutes"
    assert third.prompt == f"{known}\n\nQuestion: {LEFT}"
    assert last.prompt == f"{known}\n\n{LEFT}\n15 minutes are left"
    assert [one.mark for one in walked.asks] == ["", REPLIED, REPLIED, MARKED]


def test_chain_of_verification_checks_the_draft_without_it_and_answers_again() -> None:
    draft = "I recall three.\n<answer>\n- Bern\n- Zug\n- Wien\n</answer>"
    questions = listed("Is Zug in Switzerland?", "Is Wien in Switzerland?")
    events = in_order(
        draft, questions, "<answer>Yes</answer>", "<answer>No</answer>", "<answer>Bern, Zug</answer>"
    )
    walked = walk(CHAIN_OF_VERIFICATION, "Name Swiss cities.", events)
    assert walked.conclusion.answer == "Bern, Zug"
    assert tuple(walked.edges) == CHAIN_OF_VERIFICATION.edges
    assert walked.conclusion.document["draft"] == "- Bern\n- Zug\n- Wien"
    assert walked.conclusion.why == (
        "the answer corrects the draft after 2 of 2 questions about its facts, answered without the draft"
    )
    assert [one.mark for one in walked.asks] == [MARKED, "", REPLIED, REPLIED, MARKED]
    assert [one.prompt for one in walked.asks[2:4]] == [f"Question: {each}" for each in questions["entries"]]
    assert [one.round for one in walked.performed] == [1, 2, 3, 3, 4]
    assert "Draft:\n- Bern\n- Zug\n- Wien\n\nIs Zug in Switzerland?\nYes" in walked.asks[-1].prompt


POINTS = ("First point.\n\nWith two paragraphs.", "Second point (`</answer>` is a tag).")


def test_skeleton_joins_its_points_as_they_stand() -> None:
    events = in_order(listed("One", "Two"), *(f"Sure:\n<answer>\n{point}\n</answer>" for point in POINTS))
    walked = walk(SKELETON, "Write a short text.", events)
    assert walked.conclusion.answer == "\n\n".join(POINTS)
    assert tuple(walked.edges) == SKELETON.edges
    assert [one.mark for one in walked.asks] == ["", WRITTEN, WRITTEN]
    outline = "Problem: Write a short text.\n\nOutline:\nOne\nTwo"
    assert [one.prompt for one in walked.asks[1:]] == [f"{outline}\n\nPoint: One", f"{outline}\n\nPoint: Two"]


def test_an_entry_that_is_lost_says_so_and_all_lost_end_the_run() -> None:
    down = Failed("provider_error", "down")
    walked = walk(SKELETON, "p", in_order(listed("One", "Two"), down, "<answer>It is two</answer>"))
    assert walked.conclusion.answer == "(no answer: down)\n\nIt is two"
    lost = walk(SKELETON, "p", in_order(listed("One", "Two"), down, down))
    assert (lost.snapshot.status, lost.snapshot.error) == ("failed", "provider_error")


def test_a_list_is_cut_at_its_limit() -> None:
    events = in_order(listed("a", "b", "c"), "<answer>1</answer>", "<answer>2</answer>")
    walked = walk(SKELETON, "p", events, {"max_entries": 2})
    assert (walked.conclusion.answer, walked.conclusion.document["entries"]) == ("1\n\n2", ["a", "b"])
    assert "At most 2." in walked.asks[0].task


def test_a_limit_gives_the_draft_or_the_points_as_they_stand() -> None:
    draft = {"reasoning": "", "answer": "a draft"}
    assert stopped_after(CHAIN_OF_VERIFICATION, "p", draft).answer == "a draft"
    assert stopped_after(LEAST_TO_MOST, "p", listed("One")).answer is None
