"""Data sets and judges: what is read, what is refused, what counts as right."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.compare.grading import (
    Item,
    all_found,
    check_items,
    number_in,
    read_dataset,
)
from reasonry.compare.problem_set import find_judge
from reasonry.errors import UsageError

PUZZLE = "Use 4, 9, 10 and 13 to make 24"


def right(
    spec: str, answer: str, expected: Any = None, problem: str = PUZZLE, path: tuple[str, ...] = ()
) -> bool:
    judge = find_judge(spec)
    assert judge is not None
    return judge(Item(problem, expected), "\n".join(path) or answer)


def test_a_data_set_is_one_object_a_line_and_ids_count_from_1() -> None:
    text = '{"problem": "a", "answer": 3}\n\n{"problem": "b", "id": "x"}\n{"problem": "c", "id": 7, "answer": "yes"}\n'
    items = read_dataset(text, "data")
    assert [(one.id, one.problem, one.expected) for one in items] == [
        ("1", "a", "3"),
        ("x", "b", None),
        ("7", "c", "yes"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"text"',
        "{}",
        '{"problem": ""}',
        '{"problem": 3}',
        '{"problem": "a", "answer": [1]}',
        '{"problem": "a", "anser": 1}',
        "[" * 100_000,
    ],
)
def test_a_broken_line_is_named_by_its_number(line: str) -> None:
    with pytest.raises(UsageError, match="data, line 3: ") as caught:
        read_dataset(f'{{"problem": "a"}}\n\n{line}\n{{"problem": "b"}}', "data")
    assert caught.value.details["lines"] == [3]


def test_an_id_that_stands_twice_and_an_empty_set_are_refused() -> None:
    with pytest.raises(UsageError, match="line 2: its id is that of line 1"):
        read_dataset('{"problem": "a"}\n{"problem": "b", "id": 1}', "data")
    with pytest.raises(UsageError, match="holds no problem"):
        read_dataset("\n \n", "data")


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("**0.50**", "1/2", True),
        ("The answer is 0.50.", "1/2", False),
        ("18 dollars", 18, True),
        ("PARIS", "Paris", True),
        ("$1,000", "1000", True),
        ("18 eggs, I think", 18, False),
        ("", "x", False),
    ],
)
def test_exact_compares_what_answers_say(answer: str, expected: Any, same: bool) -> None:
    assert right("exact", answer, expected) is same


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("16 - 3 - 4 = 9, so 18 dollars", 18, True),
        ("about 0.3333333", "1/3", True),
        ("0.33", "1/3", False),
        ("none", 0, False),
        ("-5", 5, False),
        ("0", "0.0", True),
    ],
)
def test_numeric_looks_at_the_last_number(answer: str, expected: Any, same: bool) -> None:
    assert right("numeric", answer, expected) is same


@pytest.mark.parametrize(
    ("answer", "made"),
    [
        ("(13 - 9) * (10 - 4) = 24", True),
        ("The answer is (13 - 9) * (10 - 4).", True),
        ("(13 - 9) * (10 - 4) = 25", False),
        ("4 * 6", False),
        ("24", False),
        ("__import__('os')", False),
    ],
)
def test_arithmetic_wants_the_target_from_exactly_the_numbers(answer: str, made: bool) -> None:
    assert right("arithmetic:24", answer) is made


def test_arithmetic_takes_the_moves_of_a_path_for_a_solution() -> None:
    moves = ("13 - 9 = 4 (left: 4 4 10)", "10 - 4 = 6 (left: 4 6)", "4 * 6 = 24 (left: 24)")
    assert right("arithmetic:24", moves[-1], path=moves)
    assert not right("arithmetic:24", moves[1], path=moves[:2])
    assert not right("arithmetic:24", "4 * 6 = 24", path=("4 * 6 = 24",))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,000", 1000),
        ("$5.50 in total", Fraction(11, 2)),
        ("it is 3/4 of it", Fraction(3, 4)),
        ("between 2-3", 3),
        ("x = -5", -5),
        ("4.", 4),
        ("1/0 of it", None),
        ("no number", None),
    ],
)
def test_the_last_number_of_a_text_is_read(text: str, number: Fraction | int | None) -> None:
    assert number_in(text) == number


@given(st.text(max_size=200))
def test_judging_any_text_never_raises(answer: str) -> None:
    for spec, expected in (("exact", answer), ("numeric", "3"), ("arithmetic:24", None)):
        assert right(spec, answer, expected) in (True, False)
    assert right("exact", answer, answer)


@pytest.mark.parametrize("spec", ["", "exactly", "arithmetic:", "arithmetic:x", "modell"])
def test_an_unknown_judge_is_refused(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_judge(spec)
    assert caught.value.details["option"] == "judge"


@pytest.mark.parametrize(
    ("line", "spec", "message"),
    [
        ({"problem": "a"}, "exact", "problem 1 has no answer"),
        ({"problem": "a", "answer": "x"}, "numeric", "holds no number"),
        ({"problem": "a", "answer": "24"}, "arithmetic:24", "no number puzzle"),
    ],
)
def test_a_data_set_that_does_not_suit_the_judge_is_refused(
    line: dict[str, Any], spec: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_items(read_dataset(json.dumps(line), "data"), spec)


def test_all_that_was_found_is_the_answer_the_candidates_and_the_votes() -> None:
    document = {
        "answer": "a",
        "candidates": [{"content": "b", "path_text": ["root", "b"]}],
        "votes": [{"answer": "c", "count": 2}],
    }
    assert all_found(document) == ["a", "b", "root\nb", "c"]
    assert all_found({"answer": None}) == []
