"""The claims that thoughts rest on: what is settled is none, what the conclusion uses comes first."""

from __future__ import annotations

from typing import Any

from reasonry.blocks.key_claims import QuotedThought, key_claims, quoted_thoughts
from reasonry.core.problem import with_quoted

PLAN = [
    "Move the service with at most 10 min of downtime. Which order is best?",
    "Warm the new cache from 3 replicas first, which takes 40 min.",
    "Switch: drain (20 s); rebuild the index of orders (90 s); flip DNS (30 s). Sum about 140 s.",
    "Decision: switch in 140 s. No client keeps the old address, as the TTL is 60 s.",
]


def claims(*texts: str, most: int = 8, **about: dict[int, Any]) -> list[tuple[str, int | None]]:
    thoughts = [
        QuotedThought(number, text, **{name: of[number] for name, of in about.items() if number in of})
        for number, text in enumerate(texts, 1)
    ]
    return key_claims(thoughts, most)


def test_the_largest_part_of_a_total_that_the_conclusion_uses_comes_first() -> None:
    found = claims(*PLAN)
    assert ("rebuild the index of orders (90 s)", 3) in found[:3]
    assert ("Warm the new cache from 3 replicas first, which takes 40 min.", 2) in found
    assert ("No client keeps the old address, as the TTL is 60 s.", 4) in found
    assert not any("10 min" in claim or claim.endswith("?") for claim, _ in found)


def test_what_was_run_or_revised_is_no_claim_and_what_is_assumed_comes_first() -> None:
    assert 2 not in {number for _, number in claims(*PLAN, evidence={2: "ran"})}
    assert 2 not in {number for _, number in claims(*PLAN, revises={4: 2})}
    assert claims(*PLAN, evidence={2: "assumed"})[0][1] == 2


def test_a_branch_that_was_left_carries_less_than_the_one_that_was_taken() -> None:
    texts = ["Which way?", "A takes 40 min.", "B takes 50 min.", "Taken: B, in one go."]
    branches = {2: ("A",), 3: ("B",), 4: ("B",)}
    assert [number for _, number in claims(*texts, branches=branches)][:1] == [3]
    assert len(claims(*texts, branches=branches, most=1)) == 1


def test_no_thought_takes_all_places_and_no_figure_is_named_twice() -> None:
    found = claims("Why?", "a b 5 s; c d 6 s; e f 7 s; g h 8 s", "Total is 26 s.", "It is 26 s in all.")
    assert [number for _, number in found] == [3, 2, 2]


def test_thoughts_are_read_from_where_they_are_quoted() -> None:
    quoted = (
        "Thought 1: Go.\nThought 7 is meant.\n"
        "Thought 2 (branch b, revises thought 1, ran): It took 5 s.\n\n"
        "Thought 3 (takes branch b back in): End."
    )
    assert quoted_thoughts(with_quoted("Refute these.", quoted)) == [
        QuotedThought(1, "Go.\nThought 7 is meant."),
        QuotedThought(2, "It took 5 s.", "ran", ("b",), 1),
        QuotedThought(3, "End.", branches=("b",)),
    ]
    assert quoted_thoughts("A plan. Thought 1: none of these is quoted.") == []
    assert key_claims([], 8) == key_claims([QuotedThought(1, "Why?")], 8) == []
