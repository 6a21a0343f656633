"""Direct: the problem alone, and the reply, as a whole or where it says its answer stands."""

import pytest

from reasonry.core.events import Verified
from reasonry.core.readings import EXTRACT
from reasonry.strategies.direct import DIRECT

from .walking import in_order, walk

PROBLEM = "What is 5 + 6?"


def test_the_problem_is_all_that_is_asked_and_every_edge_is_walked() -> None:
    walked = walk(DIRECT, PROBLEM, in_order("11"))
    (asked,) = walked.asks
    assert (asked.text, asked.retries, asked.spelled_out().prompt) == (PROBLEM, 0, PROBLEM)
    assert tuple(walked.edges) == DIRECT.edges
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Five and six are eleven.", "Five and six are eleven."),
        ("5 + 6 = 11.\nAnswer: 11", "11"),
        ("5 + 6 = 11.\n<answer>11</answer>", "11"),
        (r"It is \boxed{11}", "11"),
        ("none", "none"),
        ("Do you want the sum?", "Do you want the sum?"),
    ],
)
def test_any_reply_is_the_answer_where_it_does_not_say_which_part_is(said: str, answer: str) -> None:
    walked = walk(DIRECT, PROBLEM, in_order(said))
    assert (walked.conclusion.answer, len(walked.asks)) == (answer, 1)


def test_an_empty_reply_is_not_asked_for_again() -> None:
    walked = walk(DIRECT, PROBLEM, in_order(""))
    assert (walked.snapshot.error, len(walked.asks)) == ("output_invalid", 1)


def test_a_verifier_is_shown_the_answer_alone_and_no_reply_as_a_whole() -> None:
    prose = "Five and six are eleven."
    walked = walk(
        DIRECT, PROBLEM, in_order(prose, "<answer>11</answer>", Verified("right")), {"verify": True}
    )
    assert (walked.conclusion.answer, walked.asks[1].turns[0].objection) == ("11", EXTRACT)
    lost = walk(DIRECT, PROBLEM, in_order(prose, prose), {"verify": True})
    assert (lost.snapshot.error, lost.conclusion.answer, len(lost.performed)) == ("output_invalid", None, 2)
