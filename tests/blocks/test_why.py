"""The reason for a result, from its conclusion, its thoughts and its options."""

from typing import Any

import pytest

from reasonry.blocks.why import Why, explain, quote
from reasonry.core.bodies import Conclusion, Thought

CHAIN = (Thought("2 and 2 are 4.", "reasoning"), Thought("4", "formulation", data={"answer": "4"}))
CHECKED = Thought("4 - 2 is 2.", "check", data={"correct": True})


@pytest.mark.parametrize(
    ("end", "more", "options", "wanted"),
    [
        (Conclusion("4"), (), {}, Why("Thought 2 ends in the answer; no check was asked for", (2,))),
        (
            Conclusion("4").because("", "reasoning"),
            (),
            {"verify": True},
            Why("Thought 2 ends in the answer and rests on thought 1; its check did not decide", (1, 2)),
        ),
        (
            Conclusion("4"),
            (CHECKED,),
            {},
            Why("Thought 2 ends in the answer; thought 3 confirms it: 4 - 2 is 2", (2, 3)),
        ),
        (
            Conclusion("4", certainty="proved").because("4 of 5 drafts agree", "reasoning"),
            (),
            {},
            Why("Thought 2 ends in the answer and rests on thought 1; a verifier confirmed it", (1, 2)),
        ),
        (
            Conclusion("4").because("4 of 5 drafts agree", "reasoning", "formulation"),
            (),
            {},
            Why("4 of 5 drafts agree (thoughts 1 and 2)", (1, 2)),
        ),
        (
            Conclusion("4", "max_calls", certainty="best_so_far"),
            (),
            {},
            Why("The run was stopped before its answer (max calls); the last thought is thought 2", (2,)),
        ),
        (
            Conclusion(None, "verification_failed").because("4 of 5 drafts agree"),
            (),
            {},
            Why("There is no answer (verification failed); the last thought is thought 2", (2,)),
        ),
    ],
)
def test_a_reason_names_the_thoughts_it_rests_on(
    end: Conclusion, more: tuple[Thought, ...], options: dict[str, Any], wanted: Why
) -> None:
    assert explain(end, (*CHAIN, *more), options) == wanted


def test_a_run_without_thoughts_has_a_reason_without_links() -> None:
    assert explain(Conclusion("4"), (), {}) == Why("No thought was recorded; no check was asked for")
    assert explain(Conclusion(None, "error"), (), {}).thoughts == ()


def test_a_long_reason_ends_with_a_whole_word_and_keeps_its_thoughts() -> None:
    why = explain(Conclusion("4").because("word " * 200, "reasoning"), CHAIN, {})
    assert len(why.text) <= 300
    assert why.text.endswith("word… (thought 1)")


@pytest.mark.parametrize("text", ['{"status": "ok"}', "[1, 2]", 'It said {"status": "error"}.', "", None])
def test_data_is_not_quoted(text: Any) -> None:
    assert quote(text) == ""


def test_a_quotation_is_shortened_between_words() -> None:
    assert quote("It lies on the Itchen.") == ": It lies on the Itchen"
    assert quote("one two three four", 12, before="") == "one two…"
