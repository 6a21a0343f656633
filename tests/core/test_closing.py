from __future__ import annotations

import pytest

from reasonry.core.answering import CheckReply
from reasonry.core.closing import Closing, propose, reviewed, ruled
from reasonry.core.events import Failed, Verified


def test_an_answer_is_looked_at_by_the_verifier_first_and_then_by_its_author() -> None:
    closing = Closing()
    assert closing.wants(verify=True, review=True) == "answer"
    closing = propose(closing, "42")
    assert closing.wants(verify=True, review=True) == "verdict"
    closing = ruled(closing, Verified("unknown"))
    assert closing.wants(verify=True, review=True) == "review"
    closing = reviewed(closing, CheckReply(True, "fits"), 1)
    assert closing.wants(verify=True, review=True) is None
    assert closing.document == {"verification": "reviewed", "objections": []}


def test_nobody_is_asked_where_nobody_is_wanted() -> None:
    closing = propose(Closing(), "42")
    assert closing.wants(verify=False) is None
    assert closing.document["verification"] == "open"


def test_a_proof_settles_an_answer_and_may_write_it_down() -> None:
    closing = ruled(propose(Closing(), "about 42"), Verified("right", answer="42"))
    assert (closing.answer, closing.wants(verify=True, review=True)) == ("42", None)
    assert ruled(propose(Closing(), "42"), Verified("right")).answer == "42"


def test_what_is_proved_wrong_is_gone_and_its_successor_is_looked_at_anew() -> None:
    closing = ruled(propose(Closing(), "41"), Verified("wrong", "Odd."))
    assert closing.answer is None
    assert closing.objections == ("The answer '41' was checked and is wrong. Odd.",)
    closing = propose(closing, "42")
    assert closing.wants(verify=True) == "verdict"
    assert len(closing.objections) == 1


def test_a_verifier_that_failed_has_said_nothing() -> None:
    closing = ruled(propose(Closing(), "42"), Failed("tool_error", "crashed"))
    assert (closing.answer, closing.wants(verify=True), closing.proved) == ("42", None, False)


@pytest.mark.parametrize(
    ("correction", "repairs", "answer", "doubted"),
    [("43", 1, "43", False), (None, 1, None, False), ("42", 1, None, False), ("43", 0, "42", True)],
)
def test_a_failed_review_makes_room_for_a_correction_while_repairs_are_left(
    correction: str | None, repairs: int, answer: str | None, doubted: bool
) -> None:
    closing = reviewed(propose(Closing(), "42"), CheckReply(False, "no", correction), repairs)
    assert (closing.answer, closing.doubted) == (answer, doubted)
    assert closing.objections == ("The answer '42' did not pass the check: no",)
