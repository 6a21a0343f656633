"""What a real small model replied when it was held to no form: nothing is read in it that a person would not read."""

from __future__ import annotations

from msgspec.structs import replace

from .corpus import Found, Line, lines, measure

MISREAD = frozenset({"small-068", "small-162", "small-184", "small-211", "small-232", "small-284"})
"""Replies in which something is read that a person would not read; none is to be added."""

MISREAD_UNSAID = frozenset(
    {
        "small-024",
        "small-032",
        "small-045",
        "small-072",
        "small-080",
        "small-085",
        "small-130",
        "small-192",
        "small-217",
        "small-271",
        "small-274",
        "small-279",
        "small-282",
    }
)
"""Those besides, where the provider does not say that they were cut off; none is to be added."""


def replies() -> tuple[Line, ...]:
    return lines("small_model.jsonl")


def wrong(lines: tuple[Line, ...]) -> dict[str, Found]:
    return {line.id: found for line in lines if (found := measure(line)).outcome == "wrong"}


def shown(found: dict[str, Found]) -> str:
    return "\n".join(f"{name}: {one.detail}" for name, one in found.items())


def test_they_are_many_and_nearly_half_say_nothing() -> None:
    asked = [line for line in replies() if measure(line).outcome != "not asked"]
    assert len({line.id for line in replies()}) == len(replies()) >= 300
    assert len(asked) >= 290
    assert sum(line.asked_again is not None for line in asked) > len(asked) * 0.4


def test_nothing_is_read_that_a_person_would_not_read() -> None:
    found = wrong(replies())
    assert found.keys() <= MISREAD, shown(found)


def test_nor_is_it_where_nobody_says_that_a_reply_was_cut_off() -> None:
    whole = tuple(
        replace(line, setting=replace(line.setting, cut=False)) for line in replies() if line.setting.cut
    )
    found = wrong(whole)
    assert found.keys() <= MISREAD_UNSAID, shown(found)
