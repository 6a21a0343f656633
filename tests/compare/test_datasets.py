"""The data sets: the judge accepts the right answer and no other, and everybody gets the same problems."""

import hashlib
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.compare.datasets import DATASETS, LEVELS
from reasonry.compare.datasets.facts import PEOPLE, TOWNS, look_up

NAMES = sorted(DATASETS)
levels, seeds, indices = st.sampled_from(LEVELS), st.integers(1, 1000), st.integers(0, 200)


def with_another_digit(text: str) -> Iterator[str]:
    for found in re.finditer(r"\d", text):
        for more in range(1, 10):
            yield f"{text[: found.start()]}{(int(found[0]) + more) % 10}{text[found.end() :]}"


def with_another_letter(text: str) -> Iterator[str]:
    for at, letter in enumerate(text):
        for other in "bkz":
            yield f"{text[:at]}{other if letter.lower() != other else 'm'}{text[at + 1 :]}"


NO_ANSWERS = ["", "I do not know.", "none", "?", "0.5", "12345678", "It depends.", "all of them", "x", "-"]
OTHER_WORDS = (
    "{}", "{}.", "**{}**", "{}, it is not", "The answer is {}.", "{0}, {0}", "{} it is", "I say {}", "{}!", "({})"
)  # fmt: skip


def mutations(name: str, right: str) -> list[str]:
    """Return at least ten and about twenty answers that are wrong and as near to the right one as can be."""
    if name == "claims":
        other = {"yes": "no", "no": "yes"}[right]
        mutated = [*(words.format(other) for words in OTHER_WORDS), f"{right}, or rather {other}"]
    elif name in ("facts", "facts_text"):
        mutated = [
            *with_another_letter(right),
            f"not {right}",
            f"{right} or another",
            right[:-1],
            right[::-1],
        ]
    else:
        mutated = [*with_another_digit(right), f"1{right}"]
    wrong = sorted({answer for answer in mutated if answer != right})
    return wrong[:: max(1, len(wrong) // 20)]


@pytest.mark.parametrize("name", NAMES)
@given(indices, seeds, levels)
def test_the_judge_accepts_the_answer_of_the_generator_and_rejects_mutations(
    name: str, index: int, seed: int, level: int
) -> None:
    judge, item = DATASETS[name].judge, DATASETS[name].item(index, seed, level)
    assert item.expected
    assert judge(item, item.expected)
    mutated = mutations(name, item.expected)
    assert len(mutated) >= 10
    assert [answer for answer in (*mutated, *NO_ANSWERS) if judge(item, answer)] == []


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("arithmetic", "The answer is {}."),
        ("planted", "Draft {}"),
        ("game24", "{} = 24"),
        ("claims", "{}."),
        ("facts", "**{}**"),
    ],
)
def test_a_right_answer_may_be_written_in_other_ways(name: str, written: str) -> None:
    for item in DATASETS[name].items(20):
        assert DATASETS[name].judge(item, written.format(item.expected))


@pytest.mark.parametrize("name", NAMES)
def test_an_item_is_the_same_whatever_the_size_and_another_for_each_index_seed_and_level(name: str) -> None:
    items = DATASETS[name].items(6)
    assert DATASETS[name].items(3) == items[:3]
    ids = {
        str(DATASETS[name].item(index, seed, level).id)
        for index in (0, 1)
        for seed in (1, 2)
        for level in LEVELS
    }
    assert len(ids) == 2 * 2 * len(LEVELS)
    assert len({item.problem for item in items}) > 1


PINNED = "cd85ef54ac816c3e"


def test_everybody_gets_the_same_problems() -> None:
    """Where this fails, a generator makes other problems: raise its version, and pin anew."""
    written = [
        f"{item.id} {item.problem} {item.answer}" for name in NAMES for item in DATASETS[name].items(3)
    ]
    assert hashlib.sha256("\n".join(written).encode()).hexdigest()[:16] == PINNED


def test_the_tool_of_facts_knows_each_name_and_says_where_it_knows_none() -> None:
    names = [*PEOPLE, *TOWNS]
    assert all(name in look_up(f" {name.lower()} ") for name in names)
    assert look_up("Paris") == "Nothing is known about 'Paris'."
