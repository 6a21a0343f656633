"""Replies of judges in other words than their prompts': each is read as a person reads it or asked again, never wrong.

A line of `judges.jsonl` is a reply to one kind of judge, and the same judgement in the form of its prompt: null where a
person takes no judgement from the reply.
"""

import json
from typing import Any

import pytest

from reasonry.core.machine import Pending
from reasonry.strategies import STRATEGIES

from ..strategies.walking import Walked, reply, walk
from . import lines_of

PROBLEM = "How many sheep are left of 17 if all but 9 die?"
JUDGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "pair": ("best_of_n", {"candidates": ["8 sheep", "9 sheep"]}, "comparison"),
    "rating": ("refine", {"critique": True, "rounds": 2}, "answer_check"),
    "attack": ("prove_and_refute", {"claims": ["Of 17, all but 9 die."]}, "claim_attack"),
    "scores": ("tree_of_thoughts", {"max_depth": 1, "score_with_proposals": False}, "branch_evaluation"),
    "check": ("chain_of_thought", {"check": True}, "answer_verification"),
}
"""A strategy with the judge, its options, and the stage that asks."""
PROPOSED = '{"thoughts": ["8 die", "9 die", "17 die"]}'
LINES = lines_of("judges")


class AskedAgain(Exception):
    """The machine asked a judge again."""


def judged(kind: str, *texts: str) -> Any:
    """Return what a run takes from the replies of its judge: every question gets the first, and asked again the next.

    Raises:
        AskedAgain: The judge was asked again after the last reply.
    """
    name, options, stage = JUDGES[kind]

    def answer(one: Pending) -> Any:
        if one.stage != stage:
            return reply(PROPOSED if one.stage == "approach_exploration" else "<answer>8</answer>")
        tries = int((*one.id.split("."), "1")[1])
        if tries > len(texts):
            raise AskedAgain
        return reply(texts[tries - 1])

    return taken(kind, walk(STRATEGIES[name], PROBLEM, answer, options))


def taken(kind: str, run: Walked) -> Any:
    document = run.conclusion.document
    match kind:
        case "pair":
            return document["comparisons"][0]["ratings"]
        case "attack":
            return document["claims"][0]["verdict"]
        case "check":
            return run.conclusion.answer
        case _:
            stage = JUDGES[kind][2]
            return [(thought.score, thought.data) for thought in run.thoughts if thought.stage == stage]


@pytest.mark.parametrize("line", LINES, ids=[f"{n}-{line['kind']}" for n, line in enumerate(LINES)])
def test_a_judge_in_other_words_is_read_right_or_asked_again(line: dict[str, Any]) -> None:
    kind, first, in_form = line["kind"], line["reply"], json.dumps(line["in_form"])
    try:
        found = judged(kind, first)
    except AskedAgain:
        if line["in_form"]:
            assert judged(kind, first, in_form) == judged(kind, in_form)
    else:
        assert line["in_form"]
        assert found == judged(kind, in_form)


@pytest.mark.parametrize("kind", JUDGES)
def test_each_judgement_of_a_kind_is_told_from_the_others(kind: str) -> None:
    forms = {json.dumps(line["in_form"]) for line in LINES if line["kind"] == kind and line["in_form"]}
    assert len({str(judged(kind, form)) for form in forms}) == len(forms) > 1
